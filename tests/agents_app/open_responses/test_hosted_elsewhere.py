"""Plain models that two workers serve, of which one hosts a tool: who names the tool is answered by that one."""

import json
from contextlib import contextmanager

import pytest
from agents import Agent
from agents.testing import ScriptedModel, assistant_message

from agents_app.teams.definition import PLAIN_AGENT, PLAIN_TEAM, Team
from agents_app.worker import blocked_runs
from conversations.access.accounts import tokens
from conversations.conversation import fork
from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.core.principals import SYSTEM
from conversations.events.response_ids import ResponseRequest
from conversations.models import Agent as AgentRow
from conversations.models import Run
from conversations.runs import stop_and_rerun
from conversations.runs.responses import create
from tests.agents_app.open_responses.test_responding import HOSTED, lookup
from tests.runs.replay.test_replay_gate import hold_claims
from tests.support.agents_running import ended_runs, event_bodies, team, working
from tests.support.live import until
from tests.support.responses import answer, function, user

pytestmark = pytest.mark.django_db(transaction=True)
ASKER = principals.token_principal("asker")


def other_team() -> Team:
    model = ScriptedModel([[assistant_message("unused")]])
    return Team(name="other", agents=[Agent(name="Ida", model=model)], entry=["Ida"])


@contextmanager
def two_workers(last: str, other: Team | None = None):
    """Run a worker that hosts the tool and one that does not, of which one registers last; yield the first of these."""
    tokens.make_token(SYSTEM, "asker", "operator")
    teams = {"host": team([assistant_message("unused")], hosted_tools=[lookup]), "other": other or other_team()}
    first = "other" if last == "host" else "host"
    with working(teams[first]) as earlier, working(teams[last]) as later:
        yield earlier if first == "host" else later


def ask(text: str, tools=(), model="demo") -> str:
    return create.receive(ASKER, ResponseRequest(model=model, input=[user(text)], tools=list(tools))).response


@pytest.mark.parametrize("last", ["host", "other"])
@pytest.mark.parametrize("tool", [HOSTED, {"type": "town:lookup"}], ids=["by name", "by type"])
def test_a_plain_model_with_a_hosted_tool_runs_where_that_is_hosted(last, tool):
    with two_workers(last) as host:
        with hold_claims(host):
            response = ask("lookup TH-1 please", [tool])
            ask("hello")
            until(lambda: Run.objects.filter(status="done").exists(), what="the other worker to answer")
            waiting = Run.objects.get(conversation__key=response)
            assert (waiting.status, waiting.team) == ("queued", "test")
            assert blocked_runs.end_orphaned_runs({"test": ["Clerk"], "other": ["Ida"], "Plain models": []}) == []
        ended_runs(2)

    assert [step["origin"] for step in event_bodies("tool_step", response)] == ["hosted", "hosted"]


@pytest.fixture
def hosted_by_test():
    """Plain models with a tool that the team test hosts, as rows say."""
    tokens.make_token(SYSTEM, "asker", "operator")
    tools = json.dumps([{"name": "lookup", "origin": "hosted", "team": "test"}])
    plain = {"team": PLAIN_TEAM, "name": PLAIN_AGENT, "tools": tools, "is_demo_model": True}
    for row in (plain, {"team": "test", "name": "Clerk", "is_entry": True}):
        AgentRow.objects.create(**row, served_until=1 << 62)


def test_run_again_or_in_a_fork_it_runs_where_the_tool_is_hosted(hosted_by_test, people):
    response = ask("lookup TH-1 please", [HOSTED])
    (run,) = Run.objects.all()
    forked = fork.fork(people["operator"], response, run.input_seq, run=True).run
    Run.objects.filter(id=run.id).update(status="failed")

    again = stop_and_rerun.run_again(people["operator"], run.id)

    assert [Run.objects.get(id=id_).team for id_ in (run.id, forked, again)] == ["test"] * 3


def test_of_a_team_that_has_left_no_tool_is_hosted(hosted_by_test):
    AgentRow.objects.filter(team="test").update(served_until=1)

    ask("lookup TH-1 please", [HOSTED])

    assert Run.objects.get().team == ""
    with pytest.raises(Invalid, match="a tool hosted here"):
        ask("lookup TH-1 please", [{"type": "town:lookup"}])


def test_of_two_teams_that_host_one_name_the_one_that_is_served_counts(hosted_by_test):
    tools = [{"name": "lookup", "origin": "hosted", "team": name} for name in ("test", "gone")]
    AgentRow.objects.filter(team=PLAIN_TEAM).update(tools=json.dumps(tools))

    ask("lookup TH-1 please", [HOSTED])

    assert Run.objects.get().team == "test"


def test_after_its_team_has_stopped_hosting_the_tool_it_is_answered(hosted_by_test):
    response = ask("hello", [HOSTED])

    with working(team([assistant_message("unused")])):
        (run,) = ended_runs()

    assert (run.team, answer(response)["error"]["code"]) == ("test", "invalid_request")


@pytest.mark.parametrize("tool", [HOSTED, {"type": "town:lookup"}], ids=["by name", "by type"])
def test_a_hosted_tool_of_another_worker_is_never_a_call_for_the_client(tool):
    with two_workers("host"):
        response = ask("hello", [tool], model="Ida")
        (run,) = ended_runs()

    error = answer(response)["error"]
    assert (run.team, answer(response)["output"], error["code"]) == ("other", [], "invalid_request")
    assert error["message"] == "The team that hosts lookup is not served by the worker of this agent."


def test_an_agents_own_tool_is_preferred_to_one_of_that_name_that_another_worker_hosts():
    other = other_team()
    other.agents[0].tools.append(lookup)
    with two_workers("host", other):
        response = ask("hello", [HOSTED], model="Ida")
        ended_runs()

    assert answer(response)["status"] == "completed"


def test_only_what_any_worker_can_answer_is_stored_by_the_logs_writer(hosted_by_test):
    tools = {"hosted": [HOSTED], "external": [function("weather")]}
    requests = {name: ResponseRequest(model="demo", input=[user("hello")], tools=of) for name, of in tools.items()}

    begun = {name: create.begin(ASKER, request) for name, request in requests.items()}

    assert (begun["hosted"], begun["external"] is None) == (None, False)
