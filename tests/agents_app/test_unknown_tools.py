"""A model that calls tools that are not there, in an answer to a client: it is told a few times, then the run ends."""

import pytest
from agents import Agent, function_tool

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from tests.support.agents_running import ended_runs, event_bodies, working
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
    team = Team(name="t", agents=[clerk], entry=["Clerk"], max_turns=20)
    with served_apart(answer) as server:
        config = ModelConfig(api_key="sk-test-1234", base_url=server.url, retries=0)
        with working(team, config=config):
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
    assert all("nope" in output for output in told_outputs)
