"""Two teams with an agent of the same name, each in a worker of its own: a run is claimed only by its own team's
worker, and stays queued while that one is away."""

import pytest
from agents import Agent
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from agents_app.worker import blocked_runs
from conversations.models import Agent as AgentRow
from conversations.models import Approval, Run
from conversations.runs import stop_and_rerun
from conversations.runs.approvals.decide import decide
from conversations.runs.replay import request_replay
from tests.support.agents_running import ended_runs, send_message, working
from tests.support.live import until
from tests.support.replay_desk import ARGS, Desk, ended

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
SO = [assistant_message("So be it.")]


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def other_team(**more):
    """A team whose Clerk, without a tool, is another one; only its Porter may be addressed."""
    porter = Agent(name="Porter", model=ScriptedModel([SO, SO]))
    clerk = Agent(name="Clerk", model=ScriptedModel([SO, SO]))
    return Team(name="other", agents=[porter, clerk], entry=["Porter"], **more)


def keep_available(team):
    """Keep the rows of a team's agents, as those of a worker that has just been killed are kept."""
    AgentRow.objects.filter(team=team).update(served_until=2**62)


def look_past(run):
    """Have a worker of the other team look at the queue and answer somebody; the run is still queued."""
    with working(other_team()):
        send_message(key="elsewhere", to="agent:Porter")
        answered = Run.objects.filter(conversation__key="elsewhere", status="done")
        until(answered.exists, within=20, what="the other team's own run to be answered")
        until(lambda: Run.objects.get(id=run).status == "queued", within=1, what="the run to be left in the queue")


@pytest.mark.slow
def test_a_replay_waits_for_a_worker_of_its_own_team(people, desk):
    old = desk.recorded("look")["look"]
    keep_available("test")
    run = request_replay.request_replay(people["admin"], old.id).run

    look_past(run)

    with working(desk.team()):
        assert (ended(run).status, len(desk.ran)) == ("done", 2)


@pytest.mark.slow
def test_a_run_goes_on_after_a_decision_in_a_worker_of_its_own_team(people, desk):
    steps = [[function_call("look", ARGS, call_id="c1")], SO]
    tools = [desk.tool("look", needs_approval=True)]
    with working(desk.team(*steps, tools=tools)):
        send_message()
        (waiting,) = ended_runs(1)
    keep_available("test")
    decide(people["approver"], Approval.objects.get().id, "approve")

    look_past(waiting.id)

    with working(desk.team(SO, tools=tools)):
        assert (ended(waiting.id).status, len(desk.ran)) == ("done", 1)


def test_a_message_waits_for_the_team_whose_agent_may_be_addressed(desk):
    with working(desk.team()):  # registers the agent
        pass
    keep_available("test")
    send_message()

    look_past(Run.objects.get().id)

    with working(desk.team(SO)):
        assert [run.status for run in ended_runs(2)] == ["done", "done"]


def test_a_run_that_is_run_again_is_its_teams_run(people, desk):
    with working(other_team()):
        send_message(to="agent:Porter", key="c")
        ended_runs(1)
    with working(desk.team(SO, SO)):
        send_message()
        first = ended_runs(2)[-1]
    Run.objects.filter(id=first.id).update(status="failed")
    keep_available("test")
    again = stop_and_rerun.run_again(people["operator"], first.id)

    look_past(again)


def test_the_run_of_an_agent_that_its_team_lost_ends_though_another_team_has_one_of_that_name(people, desk):
    old = desk.recorded("look")["look"]
    keep_available("test")
    run = request_replay.request_replay(people["admin"], old.id).run
    with working(other_team()):
        AgentRow.objects.filter(team="test").delete()

        assert blocked_runs.end_orphaned_runs({"other": ["Porter", "Clerk"]}) == []
        assert blocked_runs.end_orphaned_runs({"test": []}) == [run]
    assert "the team test no longer has the agent Clerk" in Run.objects.get(id=run).reason
