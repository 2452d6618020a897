"""A worker hears pause, take-over, stop and abort within a second, and goes on when they are over."""

import asyncio
import threading
import time

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from agents_app.worker import agent_run
from agents_app.worker.worker import LISTEN_EVERY
from conversations.conversation import control
from conversations.models import Conversation, Run, ToolCall
from tests.support.agents_running import ended_runs, event_bodies, event_kinds, send_message, team, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


class Work:
    """A tool that runs until it is let go, or for ever."""

    def __init__(self):
        self.calls, self.may_end = 0, threading.Event()

        @function_tool
        async def work() -> str:
            """Work."""
            self.calls += 1
            while not self.may_end.is_set():  # noqa: ASYNC110  # let go by another thread
                await asyncio.sleep(0.02)
            return "worked"

        self.tool = work

    def team(self):
        steps = [[function_call("work", {}, call_id="c1")], [assistant_message("It is done.")]]
        return team(*steps, [assistant_message("The second.")], [assistant_message("The third.")], tools=[self.tool])

    def begun(self):
        until(lambda: ToolCall.objects.filter(status="executing").exists(), what="the call to run")


def until_noticed(worker, what):
    """Wait until the worker knows: it listens often enough to do so within a second."""
    active_runs = worker._active_runs.values()
    assert LISTEN_EVERY <= 0.5
    until(lambda: any(run._requested_stop == what for run, *_ in active_runs), what=f"{what} heard")


def status():
    return Run.objects.filter(conversation__key="c").earliest("queued_seq").status


@pytest.mark.parametrize(("verb", "back"), [("pause", "resume"), ("take_over", "hand_back")])
def test_a_run_ends_its_turn_and_waits_and_everything_is_answered_in_order_after(otto, verb, back):
    work = Work()
    with working(work.team()) as worker:
        send_message()
        work.begun()
        control.perform(otto, verb, "c")
        until_noticed(worker, "pause")
        send_message("second")
        work.may_end.set()
        until(lambda: status() == "waiting", what="it to be suspended")
        send_message("third")
        assert event_bodies("output") == []
        control.perform(otto, back, "c")
        ended_runs(3)

    assert [output["text"] for output in event_bodies("output")] == ["It is done.", "The second.", "The third."]
    assert (work.calls, ToolCall.objects.get().status) == (1, "done")
    assert [run.status for run in Run.objects.all()] == ["done"] * 3
    assert "run.waiting" in event_kinds()


def test_a_stopped_run_ends_after_its_turn_and_what_began_is_done(otto):
    work = Work()
    with working(work.team()) as worker:
        send_message()
        work.begun()
        control.stop(otto, "c", "the wrong street")
        until_noticed(worker, "stop")
        work.may_end.set()
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status, event_bodies("output")) == ("cancelled", "done", [])
    assert event_bodies("run.stopping")[0] | {"how": "stop", "by": "user:otto"} == event_bodies("run.stopping")[0]


def test_an_aborted_run_ends_now_and_what_began_is_unknown(otto, monkeypatch):
    monkeypatch.setattr(agent_run, "GRACE", 60.0)
    work = Work()
    with working(work.team()):
        send_message()
        work.begun()
        asked_at = time.monotonic()
        control.abort(otto, "c")
        (run,) = ended_runs()
        took = time.monotonic() - asked_at

    assert (run.status, ToolCall.objects.get().status) == ("cancelled", "unknown")
    assert event_bodies("run.cancelled")[0]["calls"] == [ToolCall.objects.get().id]
    assert took < 20  # a run that is stopped has a minute of grace here
    assert work.calls == 1


def test_nothing_starts_while_somebody_holds_it(otto):
    work = Work()
    work.may_end.set()
    send_message("before", to="agent:Nobody")
    control.take_over(otto, "c")
    with working(work.team()):
        send_message("first")
        send_message("elsewhere", key="d")
        until(lambda: Run.objects.filter(status="done").exists(), what="the other conversation to be answered")
        assert status() == "queued"
        assert Conversation.objects.get(key="c").owner == "user:otto"
