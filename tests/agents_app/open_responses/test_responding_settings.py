"""What a model's server is sent of a request's parameters, and what it is not."""

import pytest
from agents import Agent, ModelBehaviorError, ModelSettings, OpenAIChatCompletionsModel, function_tool
from openai import AsyncOpenAI

from agents_app.model_providers.providers import ModelConfig
from agents_app.open_responses import openai_parameters
from agents_app.open_responses.output_format import OutputFormat
from agents_app.open_responses.request import read
from agents_app.teams.definition import Team
from conversations.models import Run
from tests.support.agents_running import ended_runs, working
from tests.support.provider_answers import call, message, streamed
from tests.support.provider_server import served_apart
from tests.support.responses import ask

pytestmark = pytest.mark.django_db(transaction=True)

REASONING = ["reasoning.encrypted_content"]
PARAMS = {"include": REASONING, "prompt_cache_key": "k", "safety_identifier": "s", "service_tier": "flex"}


@function_tool
def look() -> str:
    """Look."""
    return "dry"


def reasoning(number, **more):
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "arguments": "", "name": "", **more}


def sent(*answers, model="responses:m", settings=None, **more):
    """Answer a request by a team of this model; return the bodies that the model's server was sent."""
    clerk = Agent(name="Clerk", model=model, tools=[look], model_settings=settings or ModelSettings())
    with served_apart(lambda n, request: streamed(answers[n])) as server:
        config = ModelConfig(api_key="k", base_url=server.url, silence_s=5.0)
        with working(Team(name="test", agents=[clerk], entry=["Clerk"]), config=config):
            ask(**more)
            ended_runs(Run.objects.count())
        return [request.body for request in server.requests]


@pytest.mark.slow
def test_a_responses_server_is_told_what_to_store_and_to_include():
    own = ModelSettings(response_include=["file_search_call.results"], extra_args={"user": "u"})

    (body,) = sent([message("dry")], params=PARAMS, store=False, settings=own)

    assert (body["store"], {*body["include"]}) == (False, {"file_search_call.results", *REASONING})
    assert (body["prompt_cache_key"], body["safety_identifier"], body["user"]) == ("k", "s", "u")
    assert "service_tier" not in body


@pytest.mark.slow
def test_a_request_that_may_be_stored_leaves_that_to_the_team():
    (unset,) = sent([message("dry")])
    (own,) = sent([message("dry")], settings=ModelSettings(store=False))

    assert ("store" in unset, own["store"]) == (False, False)


def test_a_chat_server_of_somebody_else_is_sent_no_parameter_that_it_may_not_know():
    (body,) = sent([message("dry")], model="chat:m", params=PARAMS, store=False)

    assert not body.keys() & {"store", "include", "prompt_cache_key", "safety_identifier"}


def test_openais_own_chat_api_which_the_sdk_has_store_by_default_is_told_not_to():
    model = OpenAIChatCompletionsModel("m", AsyncOpenAI(api_key="k", base_url="https://api.openai.com/v1"))
    request = read(
        '{"store": false, "params": {"prompt_cache_key": "k", "include": ["reasoning.encrypted_content"]}}', "x"
    )

    settings = openai_parameters.settings_for(request, model, ModelSettings())

    assert settings == ModelSettings(store=False, extra_args={"prompt_cache_key": "k"})


@pytest.mark.slow
def test_reasoning_that_a_server_did_not_store_is_sent_back_only_where_it_is_whole():
    answers = [
        [reasoning(1), call("look", {}, "call_00000000000000001")],
        [reasoning(2, encrypted_content="e"), call("look", {}, "call_00000000000000002")],
        [message("dry")],
    ]

    *_, forgotten = sent(*answers, store=False)
    *_, stored = sent(*answers)

    ids = [item.get("id") for item in forgotten["input"] if item.get("type") == "reasoning"]
    assert (ids, [item.get("id") for item in stored["input"] if item.get("type") == "reasoning"]) == (
        ["rs_2"],
        ["rs_1", "rs_2"],
    )


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_an_answer_that_is_no_json_or_nests_without_end_is_refused_with_the_reason(text):
    with pytest.raises(ModelBehaviorError, match="The answer does not match the requested JSON format"):
        OutputFormat({"type": "json_object"}).validate_json(text)
