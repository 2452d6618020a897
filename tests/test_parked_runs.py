"""Runs that cannot go on with what they paused with: parked with a reason for people, their call never made."""

import json
from pathlib import Path

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from django.conf import settings

from agents_app import sealing
from agents_app.sealing import Kept
from agents_app.teams import Team
from conversations.actions import approvals
from conversations.models import Approval, Run, ToolCall
from tests.agents_running import over, say, told, working
from tests.cast import cast

pytestmark = pytest.mark.django_db(transaction=True)


class Desk:
    """A team whose `file` asks; as each process would make it."""

    def __init__(self):
        self.filed = []

    def team(self, *steps):
        @function_tool(needs_approval=True)
        def file() -> str:
            """File."""
            self.filed.append(1)
            return "filed"

        clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[file])
        return Team(name="desk", agents=[clerk], entry=["Clerk"])


@pytest.fixture
def parked():
    """Have a run wait, put other states in its place one after the other, and let each be resumed."""
    people, desk = cast(), Desk()

    def go_on(states):
        with working(desk.team(*[[function_call("file", {}, call_id=f"c{n}")] for n in range(len(states))])):
            for n in range(len(states)):
                say(key=f"k{n}")
            over(len(states))
        kept = Run.objects.order_by("id").first()
        tools = (kept.sdk or "").rpartition("/")[2]
        good = json.loads(kept.state)["state"]
        for run, change in zip(Run.objects.order_by("id"), states, strict=True):
            state, mac, sdk = sealing.seal(run.id, Kept(change(good), 1), tools)
            Run.objects.filter(id=run.id).update(state=state, state_mac=mac, sdk=sdk)
        for approval in Approval.objects.all():
            approvals.decide(people["approver"], approval.id, "approve")
        with working(desk.team([assistant_message("Done.")])):
            runs = over(len(states))
        return desk, runs

    return go_on


def changed(**more):
    return lambda good: json.dumps(json.loads(good) | more)


def without(name):
    return lambda good: json.dumps({key: value for key, value in json.loads(good).items() if key != name})


CHANGES = {
    "of a newer SDK": changed(**{"$schemaVersion": "9.9"}),
    "of no version": without("$schemaVersion"),
    "cut off": lambda good: good[: len(good) // 2],
    "not an object": lambda good: "[]",
    "of another agent": changed(current_agent={"name": "Somebody else"}),
    "without an agent": without("current_agent"),
    "empty": lambda good: "",
}


def test_states_that_do_not_fit_park_their_runs_with_a_reason(parked):
    desk, runs = parked(list(CHANGES.values()))

    assert {run.status for run in runs} == {"incompatible"}
    assert desk.filed == []
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"blocked"}
    reasons = [told("run.incompatible", f"k{n}")[0]["reason"] for n in range(len(CHANGES))]
    assert all(reason and "\n" not in reason.strip() and len(reason) < 1000 for reason in reasons), reasons


def test_recorded_states_of_every_version_are_parked_readably(parked):
    folder = Path(settings.SAMPLES_DIR) / "openai-agents-run-state"
    texts = [path.read_text() for path in sorted(folder.glob("*.json"))]
    if not texts:
        pytest.skip(f"no sample data: openai-agents-run-state is not in {settings.SAMPLES_DIR}")

    desk, runs = parked([lambda good, text=text: text for text in texts])

    assert {run.status for run in runs} == {"incompatible"}
    assert desk.filed == []
    for n in range(len(texts)):
        reason = told("run.incompatible", f"k{n}")[0]["reason"]
        assert "agent" in reason.lower(), reason
