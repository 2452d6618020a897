"""A resumed run that ends while it is opened: the call around the one that was decided about is in doubt."""

import asyncio

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from agents_app.worker import agent_run
from conversations.core.principals import SYSTEM
from conversations.models import Approval, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


class Kept(BaseModel):
    filed: int = 0


class Changed(BaseModel):
    filed: list[str] = []


def office(*steps, context=Kept):
    """A team whose Clerk asks a Desk, whose tool needs approval."""

    @function_tool(needs_approval=True)
    def file(street: str) -> str:
        """File."""
        return f"filed {street}"

    inner = [[function_call("file", {"street": "Elm"}, call_id="inner")], [assistant_message("filed")]]
    desk = Agent(name="Desk", model=ScriptedModel(inner), tools=[file])
    clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[agent_tool(desk, "ask_desk", "Ask.")])
    return Team(name="office", agents=[clerk], entry=["Clerk"], context=context)


@pytest.fixture
def decided():
    """A run that waited for an approval inside a call, after the team had kept a context."""
    calls = [function_call("ask_desk", {"input": "file it"}, call_id="outer")]
    with working(office([assistant_message("hello")], calls)):
        send_message("first")
        ended_runs()
        send_message("second")
        ended_runs(2)
    decide.decide(SYSTEM, Approval.objects.get().id, "approve")


def statuses():
    return dict(ToolCall.objects.values_list("call_id", "status"))


def assert_outer_call_is_in_doubt(kind):
    (end,) = event_bodies(kind)
    assert end["calls"] == [ToolCall.objects.get(call_id="outer").id]
    assert statuses() == {"outer": "unknown", "inner": "blocked"}


def test_a_context_that_the_team_no_longer_reads(decided):
    assert statuses() == {"outer": "executing", "inner": "approved"}

    with working(office([assistant_message("done")], context=Changed)):
        runs = ended_runs(2)

    assert (runs[1].status, runs[1].reason) == ("failed", "context")
    assert_outer_call_is_in_doubt("run.failed")


def test_an_error_while_it_is_read(decided, monkeypatch):
    def broken(claim, team):
        raise OSError("the disk is gone")

    monkeypatch.setattr(agent_run, "load_run_input", broken)
    with working(office([assistant_message("done")])):
        ended_runs(2)

    assert_outer_call_is_in_doubt("run.failed")


def hold_while_opened(patch):
    """Have runs be opened for ever; return the list to which their ids are added."""
    opened = []

    async def held(run):
        opened.append(run.claim.run)
        await asyncio.Event().wait()

    patch.setattr(agent_run.AgentRun, "_time_earlier_attempts", held)
    return opened


def test_a_person_who_stops_it_then(decided, monkeypatch):
    opened = hold_while_opened(monkeypatch)
    with working(office([assistant_message("done")])):
        until(lambda: opened, what="the run to be opened")
        stop_and_rerun.cancel_run(SYSTEM, opened[0])
        ended_runs(2)

    assert event_bodies("run.cancelled")[0]["reason"] == "asked to stop"
    assert_outer_call_is_in_doubt("run.cancelled")


def test_a_worker_that_stops_then_leaves_it_to_another(decided):
    with pytest.MonkeyPatch.context() as patch:
        opened = hold_while_opened(patch)
        with working(office(), stop_s=0.1):
            until(lambda: opened, what="the run to be opened")
    assert (Run.objects.get(id=opened[0]).status, statuses()["outer"]) == ("queued", "executing")

    with working(office([assistant_message("done")])):
        runs = ended_runs(2)

    assert (runs[1].status, statuses()) == ("done", {"outer": "done", "inner": "done"})
