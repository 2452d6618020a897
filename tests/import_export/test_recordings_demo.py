"""The demo: a conversation worth looking at, in loops, only while it is needed."""

import asyncio
import json
from collections import defaultdict

import pytest

from conversations.core import principals
from conversations.events import log
from conversations.import_export import demo
from conversations.import_export.demo import DemoDecision
from conversations.models import Conversation


class Town:
    """Everything the demo touches, with a clock on which time passes at once."""

    def __init__(self, loops=1):
        self.loops, self.time = loops, 0.0
        self.published, self.forgotten = [], []
        self.viewers = lambda: True
        self.decided = DemoDecision("approve", by="user:ada")

    async def publish(self, key, payload):
        self.published.append((self.time, key, payload))
        return len(self.published)

    async def request(self, key, payloads, schema):
        self.published += [(self.time, key, payload) for payload in payloads]
        self.asked_at = self.time

    async def decision(self, approval):
        return self.decided if self.time >= self.asked_at + 5 else None

    async def forget(self, key):
        self.forgotten.append(key)

    async def sleep(self, seconds):
        self.time += seconds

    def is_real(self):
        return self.endings() >= self.loops

    def endings(self):
        return sum(payload.get("content", "").startswith("Que bom") for _, _, payload in self.published)

    def run(self, **more):
        asyncio.run(demo.run(self.publish, lambda: self.viewers(), self.is_real, self.forget, self, clock=self, **more))
        return self

    @property
    def payloads(self):
        return [payload for _, _, payload in self.published]

    @property
    def keys(self):
        return list(dict.fromkeys(key for _, key, _ in self.published))

    def of(self, kind):
        return [p for p in self.payloads if (p.get("event") or p["type"]) == kind]


@pytest.fixture(scope="module")
def town():
    return Town().run()


def test_demo_takes_a_minute_or_so(town):
    assert 60 <= town.published[-1][0] <= 90


def test_demo_says_that_it_is_one(town):
    assert town.payloads[0] | {"id": "", "created_at": ""} == {
        "event": "conversation.opened",
        "title": "Dark footpath along the canal",
        "handler": "Dialogue",
        "demo": True,
        "id": "",
        "created_at": "",
    }


def test_demo_shows_agents_handoffs_calls_and_a_control_message(town):
    agents = {p["agent"] for p in town.payloads if "agent" in p}

    assert {"Dialogue", "Triage", "Format Coordinator", "Incident Formatter", "Feedback Formatter"} <= agents
    assert len(town.of("agent.handoff")) >= 3
    assert len(town.of("control")) == 1
    assert sum(p["status"] == "error" for p in town.of("tool_step")) == 1
    assert any(isinstance(p.get("output", {}).get("lamps"), list) for p in town.of("tool_step"))
    assert any(p["text"].startswith("{") and json.loads(p["text"]) for p in town.of("output"))


def test_every_turn_that_streamed_ends_with_its_output(town):
    streamed, outputs = defaultdict(str), {}
    for p in town.of("token"):
        streamed[p["run_id"], p["turn"]] += p["text"]
    for p in town.of("output"):
        outputs[p["run_id"], p["turn"]] = p["text"]

    assert streamed
    assert streamed == outputs


def test_every_call_ends_and_every_run_is_an_answer(town):
    starts = {p["tool_call"] for p in town.of("tool_step") if p["status"] == "start"}
    ends = [p["tool_call"] for p in town.of("tool_step") if p["status"] != "start"]

    assert sorted(ends) == sorted(starts)
    assert len({p["run_id"] for p in town.payloads if "run_id" in p}) == 2


def test_message_after_an_output_names_it(town):
    ids = {p["id"] for p in town.of("output")}
    spoken = [p for p in town.of("message") if p["sender"].startswith("agent:")]

    assert spoken
    assert {p["metadata"]["output_id"] for p in spoken} <= ids


def test_demo_keeps_its_last_three_conversations():
    town = Town(loops=4).run(existing=["old-1", "old-2"])

    assert len(town.keys) == 4
    assert town.forgotten == ["old-1", "old-2", town.keys[0]]


def test_demo_waits_while_nobody_looks():
    town = Town()
    town.viewers = lambda: not 20 <= town.time < 500

    town.run()

    assert not [at for at, _, _ in town.published if 21 < at < 500]
    assert town.published[-1][0] > 500


def test_demo_does_not_begin_beside_real_conversations():
    assert Town(loops=0).run().published == []


def test_demo_finishes_its_run_when_something_real_comes():
    town = Town()
    town.is_real = lambda: town.time > 30

    town.run()

    assert town.payloads[-2]["content"].startswith("Thank you for waiting")
    assert town.payloads[-1]["event"] == "run.done"


def test_demo_waits_for_a_person_as_long_as_it_takes_and_only_while_somebody_looks():
    town = Town()
    requests = []

    async def decision(approval):
        requests.append(town.time)
        return DemoDecision("approve") if town.time > 5000 else None

    town.decision = decision
    town.viewers = lambda: not 100 <= town.time < 4000

    town.run()

    assert not [at for at in requests if 101 < at < 4000]
    assert town.published[-1][0] > 5000


@pytest.mark.parametrize("decision", ["reject", "respond", "ended"])
def test_demo_ends_otherwise_when_the_call_is_not_made(decision):
    town = Town()
    town.decided = DemoDecision(decision, output="by phone", by="user:ada")
    town.is_real = lambda: town.time > 50

    town.run()

    names = [p["name"] for p in town.of("tool_step") if p["status"] == "start"]
    assert "file_incident" not in names
    assert not [p for p in town.of("message") if "INC-2291" in p["content"]]
    assert [p["event"] for p in town.of("run.done")] == ([] if decision == "ended" else ["run.done"])


@pytest.mark.parametrize("away_from", [0, 25])  # before the first run, and before one in the middle
def test_demo_begins_no_run_when_viewers_come_back_to_something_real(away_from):
    """Nobody looks, something real is recorded meanwhile, then somebody opens it."""
    town = Town()
    town.viewers = lambda: not away_from <= town.time < 500
    town.is_real = lambda: town.time > 400

    town.run()

    begun = [(at, p["content"]) for at, _, p in town.published if p.get("sender", "").startswith("user:") and at > 400]
    assert begun == []


def test_demo_opens_no_conversation_beside_something_real():
    town = Town(loops=9)
    town.is_real = lambda: len(town.forgotten) > 0

    town.run(existing=["old-1", "old-2", "old-3"])

    assert town.published == []


@pytest.mark.django_db(transaction=True)
def test_record_takes_the_demo_as_it_is(town):
    events = [log.from_internal("demo", payload, principals.SYSTEM) for payload in town.payloads]

    stored = log.append(events)

    row = Conversation.objects.get(key="demo")
    calls = len(town.of("tool_step")) // 2
    assert all(s.is_new for s in stored)
    assert (row.is_demo, row.title, row.tool_calls, row.errors) == (True, "Dark footpath along the canal", calls, 1)
    assert row.messages == len(town.of("output")) + len([p for p in town.of("message") if not p["metadata"]])
