"""Calls of MCP tools, of agents inside tools and behind handoffs that wait for a person: asked by one worker, decided,
made once by the next; and a server that is away when a run could go on."""

import json
import re
from contextlib import contextmanager

import pytest
from agents import Agent, handoff
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from agents_app.worker import worker as workers
from conversations.conversation import control
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Agent as AgentRow
from conversations.models import Approval, Run, ToolCall
from conversations.runs.approvals import decide
from dashboard.pages.conversation_entries import entries_of
from tests.agents_app.test_mcp_servers import SO, Desk, call, connected, quick, team_of  # noqa: F401  # a fixture
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.live import until
from tests.support.tiers import variants
from tests.support.visits import words_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    monkeypatch.setattr(workers, "RENEW_EVERY_S", 0.2)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    desk = Desk(tmp_path_factory.mktemp("desk") / "effects").start()
    yield desk
    desk.kill()


@pytest.fixture
def desk(ran):
    """The server, up and with nothing done; a test that kills it starts it again."""
    ran.effects.write_text("")
    yield ran
    if ran.process.poll() is not None:
        ran.start()


def office(desk, *steps, **more):
    return team_of(*steps, servers=[desk.spec(allow=["stamp"], ask=True, **more)])


def waiting_approval(desk):
    with connected(office(desk, [call("stamp", {"words": "A7"})]), "stamp"):
        send_message()
        (run,) = ended_runs(within=60)
    assert (run.status, run.reason, desk.did) == ("waiting", "approval", [])
    return Approval.objects.get()


def waits_for_server():
    return until(
        lambda: Run.objects.filter(status="waiting", reason="server").first(), what="it to wait for the server"
    )


def done():
    return until(lambda: Run.objects.filter(status="done").first(), within=60, what="the run to be done")


def words():
    drawn = "".join(map(str, entries_of(log.newest_page("c"))))
    return words_of(drawn)


@pytest.mark.slow
def test_a_call_of_an_mcp_tool_is_made_once_by_the_next_worker(desk, people):
    waiting_approval(desk)
    (request,) = event_bodies("approval.requested")
    assert (request["name"], request["origin"], request["mcp_server"]) == ("stamp", "mcp", "desk")

    decide.decide(people["approver"], Approval.objects.get().id, "edit", arguments={"words": "B8"})
    with connected(office(desk, SO), "stamp"):
        run = done()

    assert (run.attempt, desk.did, ToolCall.objects.get().status) == (2, ["stamp:B8"], "done")


@contextmanager
def lost(desk, team, *, was_up):
    """A worker whose server is away, since its start or since it was connected once."""
    if not was_up:
        desk.kill()
    with connected(team, "stamp") if was_up else working(team) as worker:
        if was_up:
            desk.kill()
        until(lambda: worker._mcp.away("office"), within=60, what="the loss to be seen")
        yield


@pytest.mark.slow
@pytest.mark.parametrize("was_up", variants([True, False]), ids=["lost", "never up"])
def test_a_run_whose_server_is_away_waits_for_it_says_so_and_goes_on(desk, people, was_up):
    approval = waiting_approval(desk)
    with lost(desk, office(desk, SO), was_up=was_up):
        decide.decide(people["approver"], approval.id, "approve")
        waits_for_server()
        assert desk.did == []
        assert re.search(r"waiting for MCP server desk down: (Could not reach|Connection closed)", words())
        assert "The run resumes automatically when the server is back, or you can stop it." in words()
        assert ToolCall.objects.get().status == "approved"

        desk.start()
        run = done()

    assert (desk.did, ToolCall.objects.get().status) == (["stamp:A7"], "done")
    assert [body["reason"] for body in event_bodies("run.resumed")] == ["approve", "the MCP server desk is connected"]
    before = list(Run.objects.values())
    list(rebuild())
    assert list(Run.objects.values()) == before
    assert run.attempt == 3


@pytest.mark.thorough
def test_a_run_that_waits_for_a_server_can_be_stopped(desk, people):
    approval = waiting_approval(desk)
    with lost(desk, office(desk, SO), was_up=False):
        decide.decide(people["approver"], approval.id, "approve")
        waits_for_server()
        control.stop(people["operator"], "c", "never mind")
        desk.start()
        until(lambda: "stamp" in str(AgentRow.objects.get(name="Clerk").tools), within=60, what="the server")

    assert (Run.objects.get().status, ToolCall.objects.get().status, desk.did) == ("cancelled", "blocked", [])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("answer", "was_up"),
    [({"decision": "reject"}, False), ({"decision": "respond", "output": "By hand."}, True)],
    ids=["rejected, never up", "answered, lost"],
)
def test_what_needs_no_server_is_not_lost_without_it(desk, people, answer, was_up):
    approval = waiting_approval(desk)
    team = office(desk, SO)
    with lost(desk, team, was_up=was_up):
        decide.decide(people["approver"], approval.id, **answer)
        if not was_up:  # its tool is not known here yet
            waits_for_server()
            desk.start()
        done()

    model_input = json.dumps(team.agents[0].model.first_call.input, default=str)
    assert ("By hand." in model_input) == (answer["decision"] == "respond")
    assert (desk.did, ToolCall.objects.get().status) == ([], "done" if "output" in answer else "rejected")


def test_a_tool_that_its_server_does_not_offer_any_more_parks_the_run(desk, people):
    decide.decide(people["approver"], waiting_approval(desk).id, "approve")

    with working(team_of(SO, servers=[desk.spec(allow=["fail"])])):
        (run,) = ended_runs(within=60)

    assert (run.status, desk.did) == ("incompatible", [])
    assert "Clerk no longer has the tool stamp" in words()


@pytest.mark.slow
def test_a_server_that_the_team_has_no_more_parks_the_run(desk, people):
    decide.decide(people["approver"], waiting_approval(desk).id, "approve")

    with working(team_of(SO, servers=[])):
        (run,) = ended_runs(within=60)

    assert (run.status, desk.did) == ("incompatible", [])
    assert "Clerk no longer has the tool stamp" in words()


def behind_a_handoff(desk, first, second, inner=()):
    """Clerk hands over to Filer, whose tools are the server's and an agent that has them too."""
    expert = Agent(name="Expert", model=ScriptedModel(inner))
    filer = Agent(name="Filer", model=ScriptedModel(second), tools=[agent_tool(expert, "ask_expert", "Ask.")])
    clerk = Agent(name="Clerk", model=ScriptedModel(first), handoffs=[handoff(filer)])
    server = desk.spec(allow=["stamp"], ask=True, agents=["Filer", "Expert"])
    return Team(name="office", agents=[clerk, filer, expert], entry=["Clerk"], mcp_servers=[server])


@contextmanager
def both_connected(team):
    with working(team):
        until(
            lambda: all(any(t.name == "stamp" for t in a.tools) for a in team.agents[1:]), within=60, what="the tools"
        )
        yield


@pytest.mark.slow
def test_a_run_goes_on_with_its_first_agent_behind_a_handoff_and_inside_a_tool(desk, people):
    over_to = [function_call("transfer_to_filer", {}, call_id="h1")]
    calls = [call("stamp", {"words": "own"}, "c1"), call("ask_expert", {"input": "stamp it"}, "c2")]
    with both_connected(behind_a_handoff(desk, [over_to], [calls], [[call("stamp", {"words": "inner"}, "c1")]])):
        send_message()
        ended_runs(within=60)
    assert {(body["agent"], body["mcp_server"]) for body in event_bodies("approval.requested")} == {
        ("Filer", "desk"), ("Expert", "desk"),
    }  # fmt: skip
    assert (Run.objects.get().agent, desk.did) == ("Clerk", [])

    for approval in Approval.objects.all():
        decide.decide(people["approver"], approval.id, "approve")
    with both_connected(behind_a_handoff(desk, [], [SO], [[assistant_message("stamped inside")]])):
        (run,) = ended_runs(within=60)

    assert (run.status, run.attempt, sorted(desk.did)) == ("done", 2, ["stamp:inner", "stamp:own"])
    assert set(ToolCall.objects.values_list("name", "status")) == {("stamp", "done"), ("ask_expert", "done")}
    assert [body["from_agent"] for body in event_bodies("agent.handoff")] == ["Clerk"]
    (outer,) = ToolCall.objects.filter(name="ask_expert")
    inside = {body.get("parent_call") for body in event_bodies("tool_step") if body["agent"] == "Expert"}
    assert inside == {outer.id}
