"""The arguments of a call of the client's own tool: streams have the model's, as the complete response has them."""

import json

import pytest
from ag_ui.core import EventType
from agents.testing import function_call

from conversations.asgi.agui.run_encoder import RunEncoder, RunSegment
from conversations.asgi.responses.stored_response import received_of
from conversations.asgi.responses.stream_encoder import Encoder
from conversations.events import log
from conversations.models import Run
from conversations.runs.responses import stored_response
from tests.support.agents_running import ended_runs, event_bodies, team, working
from tests.support.responses import answer, ask, calls, function

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = '{"user": "ann", "password": "tulip-rose-42"}'
LONG = json.dumps({"user": "x" * 560_000})
each = pytest.mark.parametrize("arguments", [SECRET, LONG], ids=["secret", "long"])


def called(*arguments):
    """Have a model call the client's tool, each time under the same call id; return the response's id."""
    with working(team([function_call("sign_in", text, call_id="call_1") for text in arguments])):
        response = ask(tools=[function("sign_in")])
        ended_runs()
    return response


def streamed(response):
    """Return the events of the response's stream."""
    row = stored_response.find(response)
    encoder = Encoder(received_of(row))
    frames = encoder.begin()
    for event in log.read_after(row.conversation, row.seq):
        frames += encoder.encode(event)
    return [json.loads(frame.data) for frame in frames]


def front_end_events(response):
    """Return the AG-UI events of the response's run."""
    run = Run.objects.get().id
    encoder = RunEncoder(RunSegment(response, "front-run-1", run, response))
    return [made for event in log.read_after(response, 0) for made in encoder.encode(event)]


@pytest.mark.slow
@each
def test_a_stream_has_the_arguments_of_the_complete_response(arguments):
    events = streamed(called(arguments))

    sent = [event for event in events if "function_call_arguments" in event["type"]]
    assert [event.get("delta", event.get("arguments")) for event in sent] == [arguments, arguments]
    (done,) = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done["arguments"] == arguments
    assert [done] == calls(events[-1]["response"])


@pytest.mark.slow
@each
def test_a_front_end_gets_the_arguments_of_the_complete_response(arguments):
    response = called(arguments)

    events = front_end_events(response)

    assert [event.delta for event in events if event.type == EventType.TOOL_CALL_ARGS] == [arguments]
    (start,) = [event for event in events if event.type == EventType.TOOL_CALL_START]
    assert events[-1].outcome.pending_tool_call_ids == [start.tool_call_id]


def test_calls_that_share_an_id_keep_their_own_arguments():
    response = called(SECRET, '{"password": "moss"}')

    done = [event["item"] for event in streamed(response) if event["type"] == "response.output_item.done"]
    sent = [event for event in front_end_events(response) if event.type == EventType.TOOL_CALL_ARGS]
    assert done == calls(answer(response))
    assert [event.delta for event in sent] == [SECRET, '{"password": "moss"}']


def test_the_record_of_the_call_is_masked():
    response = called(SECRET)

    (step,) = event_bodies("tool_step", response)
    assert step["args"] == {"user": "ann", "password": "•••"}
