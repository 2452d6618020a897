"""What the stream of a response has of its items, and what the complete response has."""

import json

import pytest
from agents import Agent, Usage
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal, ResponseOutputText

from agents_app.teams.definition import Team
from conversations.asgi.responses import stored_response as endpoint
from conversations.asgi.responses.stream_encoder import Encoder
from conversations.events import log
from conversations.runs.responses import stored_response
from tests.agents_app.open_responses.test_responding import HOSTED, lookup
from tests.support.agents_running import ended_runs, team, working
from tests.support.responses import ask, function

pytestmark = pytest.mark.django_db(transaction=True)


def streamed(response):
    """Return the events of a response's stream, and the complete response."""
    stored = stored_response.find(response)
    encoder = Encoder(endpoint.received_of(stored))
    frames = encoder.begin()
    for event in log.read_after(stored.conversation, stored.seq):
        frames += encoder.encode(event)
    events = [json.loads(frame.data) for frame in frames]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events, events[-1]["response"]


def done_items(events):
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


def test_a_message_that_was_cut_is_closed_as_incomplete():
    model = ScriptedModel([[assistant_message("Once upon a time")]], default_usage=Usage(1, 3, None, 16, None, 19))
    with working(Team(name="test", agents=[Agent(name="Clerk", model=model)], entry=["Clerk"])):
        response = ask(params={"max_output_tokens": 16})
        ended_runs()

    events, final = streamed(response)
    assert done_items(events) == final["output"]
    assert [item["status"] for item in final["output"]] == ["incomplete"]


def test_a_message_is_closed_before_what_is_called_beside_it_runs():
    steps = [[assistant_message("Look:"), function_call("lookup", {"reference": "R1"}, call_id="c1")]]
    with working(team(*steps, [assistant_message("Dry.")], hosted_tools=[lookup])):
        response = ask(tools=[HOSTED])
        ended_runs()

    stored = stored_response.find(response)
    encoder = Encoder(endpoint.received_of(stored))
    kinds = [
        (event.kind, [frame.kind for frame in encoder.encode(event)])
        for event in log.read_after(stored.conversation, stored.seq)
    ]
    at_first_step = next(of for kind, of in kinds if kind == "tool_step")
    events, final = streamed(response)
    assert at_first_step[-1] == "response.output_item.done"
    assert done_items(events) == final["output"]
    assert [item["content"][0]["text"] for item in done_items(events)] == ["Look:", "Dry."]


@pytest.mark.parametrize("calls", [[], [function_call("own", {}, call_id="c1")]], ids=["alone", "beside a call"])
def test_a_refusal_after_a_text_is_streamed(calls):
    parts = [ResponseOutputText(text="Well. ", type="output_text", annotations=[])]
    parts += [ResponseOutputRefusal(refusal="I cannot.", type="refusal")]
    message = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=parts)
    with working(team([message, *calls])):
        response = ask(tools=[function("own")])
        ended_runs()

    events, final = streamed(response)
    assert done_items(events) == final["output"]
    assert [part["type"] for part in final["output"][0]["content"]] == ["output_text", "refusal"]
    parts = {event["content_index"]: event["part"] for event in events if event["type"] == "response.content_part.done"}
    assert [*parts.values()] == final["output"][0]["content"]
    (refusal,) = (event for event in events if event["type"] == "response.refusal.delta")
    assert (refusal["delta"], refusal["content_index"], refusal["output_index"]) == ("I cannot.", 1, 0)
