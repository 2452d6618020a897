"""The responses door and the real worker over scripted models, in one process: what is streamed, stored and answered
agrees, event by event, and is as the document says."""

import json
from contextlib import closing

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from conversations.models import Event
from tests.asgi.responses.test_responses_endpoint import replayed, text_of
from tests.support.agents_running import team, working
from tests.support.open_responses import check_event, check_response, needs_document
from tests.support.response_desk import Desk

pytestmark = [pytest.mark.django_db(transaction=True), needs_document]
RAIN = {
    "type": "function",
    "name": "rain",
    "parameters": {"type": "object", "properties": {"street": {"type": "string"}}},
}


@function_tool
def look_up(street: str) -> str:
    """Look a street up."""
    return f"{street} is in the north"


@pytest.fixture
def desk():
    with closing(Desk()) as opened:
        yield opened


def streamed(desk, words, **more):
    events = desk.stream(words, model="Clerk", **more)
    for event in events:
        check_event(event)
    final = events[-1]["response"]
    assert replayed(events) == final["output"]
    stored = json.loads(Event.objects.filter(kind="response.completed").latest("id").body)
    assert final["output"] == stored["output"]
    return final


def test_hosted_and_external_tools_in_one_turn(desk):
    both = [
        function_call("look_up", {"street": "Elm"}, call_id="c1"),
        function_call("rain", {"street": "Elm"}, call_id="c2"),
    ]
    steps = [both, [assistant_message("It rained in the north.")]]
    with working(team(*steps, tools=[look_up], hosted_tools=[look_up])):
        first = streamed(desk, "Is it wet?", tools=[RAIN])
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        assert (call["call_id"], call["name"]) == ("c2", "rain")
        output = {"type": "function_call_output", "call_id": "c2", "output": "4 mm"}
        second = streamed(desk, [output], previous_response_id=first["id"], tools=[RAIN])

    assert text_of(second) == "It rained in the north."


def test_answers_as_json_and_as_a_stream_are_alike(desk):
    steps = [[assistant_message("Good day, citizen.")] for _ in range(2)]
    with working(team(*steps)):
        whole = desk.create("hello", model="Clerk").json
        final = streamed(desk, "hello")

    check_response(whole)
    assert text_of(whole) == text_of(final) == "Good day, citizen."
    assert whole["usage"] == final["usage"]


def test_a_model_that_fails_is_a_failed_response(desk):
    with working(team(ValueError("no model today"))):
        events = desk.stream("hello", model="Clerk")

    for event in events:
        check_event(event)
    final = events[-1]["response"]
    assert (events[-1]["type"], final["status"]) == ("response.failed", "failed")
    assert final["error"]["code"] in ("model_error", "server_error")
