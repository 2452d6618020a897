"""A model that calls tools that are not there: it is told a few times, then the run ends."""

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.model_providers.providers import ModelConfig
from agents_app.nested_runs import agent_tool
from agents_app.teams.definition import Team
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import served_apart
from tests.support.responses import answer as answered
from tests.support.responses import ask

pytestmark = pytest.mark.django_db(transaction=True)


@function_tool
def look(street: str) -> str:
    """Look."""
    return f"{street} is dry"


def ran(answer, **more):
    clerk = Agent(name="Clerk", model="responses:m", tools=[look])
    office = Team(name="t", agents=[clerk], entry=["Clerk"], max_turns=20)
    with served_apart(answer) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0)
        with working(office, config=config):
            response = ask(**more)
            (run,) = ended_runs()
    return run, response, server.requests


@pytest.mark.parametrize("ids", [lambda n: f"c{n}", lambda n: "c"], ids=["an id each", "one id"])
@pytest.mark.parametrize("name", ["nope", "look.up"])
def test_unknown_calls_without_end_end_the_run_and_are_all_in_the_record(ids, name):
    run, response, requests = ran(lambda n, request: streamed([call(name, {}, ids(n))]))

    refused = event_bodies("policy.refused", response)
    failed = event_bodies("run.failed", response)[0]
    assert (run.status, len(requests), failed["reason"]) == ("failed", 4, "unknown_tool")
    assert [body["name"] for body in refused] == [name] * 4
    assert len({body["tool_call"] for body in refused}) == 4
    assert f"{name} is not a tool of Clerk" in failed["error"]
    assert "look" in failed["error"]
    assert answered(response)["status"] == "failed"
    assert answered(response)["error"]["code"] == "unknown_tool"


def test_a_model_that_is_told_finds_its_way():
    answers = [call("nope", {}, "c1"), call("nope", {}, "c2"), call("look", {"street": "Elm"}, "c3"), message("Dry.")]

    run, response, requests = ran(lambda n, request: streamed([answers[n]]))

    assert (run.status, len(requests), answered(response)["status"]) == ("done", 4, "completed")
    assert len(event_bodies("policy.refused", response)) == 2
    told_outputs = [item["output"] for item in requests[2].body["input"] if item.get("type") == "function_call_output"]
    assert ["nope" in output for output in told_outputs] == [True, True]


def test_a_run_for_a_message_ends_at_the_fourth_unknown_call_too():
    steps = [[function_call("nope", {}, call_id=f"c{n}")] for n in range(5)]
    with working(team(*steps, tools=[look])):
        send_message()
        (run,) = ended_runs()

    failed = event_bodies("run.failed")[0]
    assert (run.status, failed["reason"]) == ("failed", "unknown_tool")
    assert "nope is not a tool of Clerk, which has: look." in failed["error"]
    assert [body["tool_call_id"] for body in event_bodies("policy.refused")] == ["c0", "c1", "c2", "c3"]


def test_unknown_calls_without_end_inside_a_call_end_that_call():
    steps = [[function_call("nope", {}, call_id=f"c{n}")] for n in range(5)]
    inner = Agent(name="Aide", model=ScriptedModel(steps))
    tool = agent_tool(inner, "ask_aide", "Ask.")
    with working(
        team([function_call("ask_aide", {"input": "?"}, call_id="o")], [assistant_message("So.")], tools=[tool])
    ):
        send_message()
        (run,) = ended_runs()

    refused, outer = event_bodies("policy.refused"), event_bodies("tool_step")
    assert (run.status, len(inner.model.calls)) == ("done", 4)
    assert [(body["agent"], body["parent_call"]) for body in refused] == [("Aide", outer[0]["tool_call"])] * 4
