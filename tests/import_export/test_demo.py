"""What the demo touches: it removes its own conversations, and nothing that somebody else put there."""

import asyncio
import re
from datetime import UTC, date, datetime

import pytest

from conversations.access.authentication import Caller
from conversations.core import principals
from conversations.core.errors import Conflict, Unavailable
from conversations.events import log
from conversations.import_export import demo as player
from conversations.import_export.demo_script import SCRIPT
from conversations.models import Agent, Approval, Conversation, Event, Run, ToolCall
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_registry import GuardedRequest
from conversations.redaction import legal_holds
from conversations.runs import claims, stop_and_rerun
from conversations.runs.approvals.decide import decide
from dashboard import demo
from tests.support.cast import cast
from tests.support.claiming import served_agents
from tests.support.live import until
from tests.support.tiers import variants

pytestmark = pytest.mark.django_db


def opened(key):
    log.append(
        [log.from_internal(key, {"event": "conversation.opened", "title": "T", "demo": True}, principals.SYSTEM)]
    )


def test_the_dates_of_the_report_follow_from_the_day_on_which_it_is_played():
    today = datetime.now(UTC).date()
    days = {
        name: (date.fromisoformat(day) - today).days
        for name, day in re.findall(r"'(since|date_of_occurrence|repair_by)': '([-\d]+)'", repr(SCRIPT))
    }

    assert {name for name, ahead in days.items() if -7 <= ahead < 0} == {"since", "date_of_occurrence"}
    assert 0 < days["repair_by"] <= 7


def test_a_demo_conversation_is_removed_whole():
    opened("demo-1")

    demo._remove("demo-1")

    assert not Conversation.objects.exists()
    assert not Event.objects.exists()


def test_what_somebody_published_into_the_demo_stays_and_ends_it():
    opened("demo-1")
    assert not demo._is_real()
    log.append([log.from_internal("demo-1", {"event": "log", "text": "mine"}, principals.token_principal("robot"))])

    demo._remove("demo-1")

    assert log.head("demo-1") == 2
    assert demo._is_real()


@pytest.mark.parametrize("target", ["demo-1", legal_holds.EVERYTHING])
def test_what_is_held_in_the_demo_stays(target):
    opened("demo-1")
    legal_holds.place(principals.SYSTEM, target, "a case")

    demo._remove("demo-1")

    assert (log.head("demo-1"), Conversation.objects.get().is_staged) == (1, False)


def test_a_staged_conversation_that_cannot_be_deleted_keeps_its_events_and_no_server_from_starting(caplog):
    for key in ("demo-1", "demo-2"):
        opened(key)
    legal_holds.place(principals.SYSTEM, "demo-1", "a case")
    for conversation in Conversation.objects.all():
        Conversation.objects.filter(pk=conversation.pk).update(key=f"staged:{conversation.key}", is_staged=True)

    log.discard_staged()

    assert [(row.key, row.events.count()) for row in Conversation.objects.all()] == [("staged:demo-1", 1)]
    assert "staged:demo-1 stays: a fork, a legal hold or a redaction needs it" in caplog.text


def test_the_demo_ends_once_something_real_is_there_though_a_look_for_it_has_failed(monkeypatch):
    answers = iter([False, Unavailable("the database is away"), True])  # the first when it starts

    def look():
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    async def play(publish, has_viewers, is_real, *more, **named):
        await asyncio.to_thread(until, is_real, within=30, what="the demo to see something real")

    monkeypatch.setattr(demo, "_is_real", look)
    monkeypatch.setattr(demo, "POLL_EVERY_IDLE_S", 0.0)
    monkeypatch.setattr(demo, "POLL_EVERY_S", 0.01)
    for name in ("_end_left_runs", "_demos"):
        monkeypatch.setattr(demo, name, list)
    monkeypatch.setattr(player, "run", play)

    asyncio.run(demo.Demo(ServerRuntime()).run())


def test_only_the_demos_own_conversations_are_removed():
    log.append([log.from_internal("real", {"event": "log", "text": "x"}, principals.token_principal("robot"))])

    demo._remove("real")

    assert log.head("real") == 1


@pytest.mark.django_db(transaction=True)
def test_no_agent_answers_the_demo():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    runtime = ServerRuntime()
    runtime.writer.start()
    payload = {"type": "message", "sender": "user:Inês", "recipient": "agent:Dialogue", "content": "a dark footpath"}

    asyncio.run(demo.Demo(runtime)._publish("demo-1", payload))
    runtime.writer.close()

    assert log.head("demo-1") == 1
    assert not Run.objects.exists()


def test_a_request_that_takes_long_is_no_viewer_of_the_demo_and_no_socket():
    runtime = ServerRuntime()
    shown, caller = demo.Demo(runtime), Caller(principals.SYSTEM, frozenset())

    with runtime.socket_registry.reading(caller) as reader:
        assert runtime.socket_registry.guarded == {reader}
        assert not shown._has_viewers()
        assert runtime.socket_registry.admit(responses := GuardedRequest(caller), most=1, is_response=True)
        assert runtime.socket_registry.guarded == {reader, responses}
        assert not shown._has_viewers()
        assert runtime.socket_registry.admit(GuardedRequest(caller), most=1)
        assert shown._has_viewers()
    assert not runtime.socket_registry.guarded - runtime.socket_registry.sockets - {responses}


class Stage:
    """Plays the demo into the database at once; `decides(approval)` is what the person does when it is their turn."""

    def __init__(self, decides):
        self.decides = decides

    async def publish(self, key, payload):
        (stored,) = await asyncio.to_thread(log.append, [demo._recorded(key, payload)])
        return stored.seq

    async def sleep(self, seconds):
        await asyncio.to_thread(self._decide)

    def _decide(self):
        for approval in Approval.objects.filter(status="pending"):
            self.decides(approval.id)

    def is_real(self):
        return Approval.objects.exclude(status="pending").exists()

    def play(self):
        async def forget(key):
            raise AssertionError(key)

        is_over = [False]

        async def main():
            looking = asyncio.create_task(self._look(is_over))
            await player.run(self.publish, lambda: True, lambda: is_over[0], forget, demo._Approvals(), clock=self)
            looking.cancel()

        asyncio.run(main())
        return self

    async def _look(self, is_over):
        while True:
            is_over[0] = await asyncio.to_thread(self.is_real)
            await asyncio.sleep(0.01)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("decision", "more", "status", "words"),
    variants(
        [
            ("approve", {}, "done", "INC-2291"),
            ("edit", {"arguments": {"incident_type": "lamps", "severity_level": 4, "lamps": []}}, "done", "INC-2291"),
            ("reject", {"message": "not yet"}, "rejected", "did not file it"),
            ("respond", {"output": "by phone"}, "done", "did not file it"),
        ],
        quick=2,
    ),
)
def test_the_demo_goes_on_as_the_newcomer_decided(decision, more, status, words):
    people = cast()

    Stage(lambda approval: decide(people["approver"], approval, decision, **more)).play()

    (run,), (call,) = Run.objects.all(), ToolCall.objects.filter(name="file_incident")
    assert (run.kind, run.status, run.attempt, call.status) == ("recording", "done", 2, status)
    assert Event.objects.filter(conversation=run.conversation_id, kind="message", body__contains=words).exists()
    starts = [e.body for e in Event.objects.filter(kind="tool_step", body__contains='"file_incident"')]
    assert any('"severity_level": 4' in body or '"severity_level":4' in body for body in starts) is (decision == "edit")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_worker_takes_the_demos_run_and_nobody_runs_it_again():
    people, run = cast(), []

    def approve(approval):
        decide(people["approver"], approval, "approve")
        run.append(Run.objects.get())
        assert run[0].status == "queued"
        assert claims.claim("w", served_agents("town", run[0].agent), at_most=5) == []

    Stage(approve).play()

    with pytest.raises(Conflict, match="demo"):
        stop_and_rerun.run_again(people["operator"], run[0].id)


def test_a_request_that_a_stopped_server_left_is_withdrawn_at_the_next_start():
    opened("demo-1")
    run = {"run_id": "r", "agent": "Dialogue", "run_kind": "recording"}
    approval_request = {
        "event": "approval.requested",
        "run_id": "r",
        "agent": "Dialogue",
        "approval_id": "a",
        "tool_call": "t",
    }
    payloads = [
        {"event": "run.queued", **run, "input_seq": 1},
        approval_request | {"name": "file_incident", "args": {}},
        {"event": "run.waiting", "run_id": "r", "agent": "Dialogue", "reason": "approval"},
    ]
    demo._request("demo-1", [payload | {"id": str(n)} for n, payload in enumerate(payloads)], {"name": "file_incident"})
    assert demo._decision("a") is None

    demo._end_left_runs()

    assert Run.objects.get().status == "cancelled"
    assert Approval.objects.get().status == "cancelled"
    assert demo._decision("a").decision == "ended"
