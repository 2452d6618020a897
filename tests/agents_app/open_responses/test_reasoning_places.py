"""Where a response's stream places a model's reasoning, and where the complete response has it."""

import json

import pytest
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal, ResponseReasoningItem
from openai.types.responses.response_reasoning_item import Summary

from conversations.asgi.responses import resource
from conversations.asgi.responses import stored_response as endpoint
from conversations.asgi.responses.stream_encoder import Encoder
from conversations.events import log
from conversations.models import Approval, Run
from conversations.runs.approvals import decide
from conversations.runs.responses import stored_response
from tests.agents_app.open_responses.test_responding import HOSTED, lookup
from tests.agents_app.open_responses.test_responding_recorded import CHUNKS, framed, name_of, providing
from tests.agents_app.open_responses.test_responding_streams import streamed
from tests.agents_app.open_responses.test_token_limit import team_of
from tests.support.agents_running import ended_runs, team, working
from tests.support.recorded_streams import api_of
from tests.support.responses import ask, function

pytestmark = pytest.mark.django_db(transaction=True)
THINKING = [path for path in CHUNKS if name_of(path) in ("lmstudio-tool-call.1", "openai-mcp-tool-approval.2")]
REFUSAL = ResponseOutputMessage(
    id="m", type="message", role="assistant", status="completed",
    content=[ResponseOutputRefusal(refusal="I cannot.", type="refusal")],
)  # fmt: skip


def thought(text):
    return ResponseReasoningItem(id="rs_1", type="reasoning", summary=[Summary(text=text, type="summary_text")])


def shape(items):
    """Return each item's type, with its text where it has any."""
    parts = [item.get("summary") or item.get("content") or () for item in items]
    return [
        (item["type"], *(part.get("text", part.get("refusal")) for part in of_item))
        for item, of_item in zip(items, parts, strict=True)
    ]


def placed(response):
    """Check that the stream begins and ends each item at its position in the complete output; return the latter."""
    events, final = streamed(response)
    for what in ("added", "done"):
        at = [event for event in events if event["type"] == f"response.output_item.{what}"]
        places = {event["output_index"]: event["item"]["id"] for event in at}
        assert len(places) == len(at)
        assert places == dict(enumerate(item["id"] for item in final["output"])), what
    added = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    assert added == sorted(added)
    done = {event["output_index"]: event["item"] for event in events if event["type"] == "response.output_item.done"}
    assert [done[index] for index in sorted(done)] == final["output"]
    return final["output"]


@pytest.mark.slow
@pytest.mark.skipif(not CHUNKS, reason="no streams-vercel-ai in SWITCHBOARD_SAMPLES_DIR")
@pytest.mark.parametrize("path", THINKING, ids=name_of)
def test_recorded_reasoning_is_streamed_where_the_response_has_it(path):
    body = framed(path)
    with providing({"m": body}):
        response = ask("go", agent="Plain model", model=api_of(body), tools=[function("weather")])
        ended_runs()

    assert [item["type"] for item in placed(response)][:2] == ["reasoning", "message"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([thought("Hm."), REFUSAL], [("reasoning", "Hm."), ("message", "I cannot.")]),
        (
            [thought("1"), assistant_message("A"), thought("2"), thought("3"), assistant_message("B"), thought("4")],
            [("reasoning", "1"), ("message", "A"), ("reasoning", "2"), ("reasoning", "3"), ("message", "B"),
             ("reasoning", "4")],
        ),
        (
            [thought("1"), assistant_message("A"), thought("2"), function_call("own", {}, call_id="c1")],
            [("reasoning", "1"), ("message", "A"), ("reasoning", "2"), ("function_call",)],
        ),
        (
            [thought("1"), function_call("own", {}, call_id="c1")],
            [("reasoning", "1"), ("function_call",)],
        ),
    ],
    ids=["a refusal", "between messages", "before a call", "a call alone"],
)  # fmt: skip
def test_reasoning_keeps_its_place_in_the_answer(answer, expected):
    with working(team(answer)):
        response = ask(tools=[function("own")])
        ended_runs()

    assert shape(placed(response)) == expected


def test_reasoning_of_each_turn_comes_before_its_message():
    first = [thought("1"), assistant_message("Look:"), function_call("lookup", {"reference": "R1"}, call_id="c1")]
    with working(team(first, [thought("2"), assistant_message("Dry.")], hosted_tools=[lookup])):
        response = ask(tools=[HOSTED])
        ended_runs()

    assert shape(placed(response)) == [
        ("reasoning", "1"), ("message", "Look:"), ("reasoning", "2"), ("message", "Dry."),
    ]  # fmt: skip


@pytest.mark.skipif(not CHUNKS, reason="no streams-vercel-ai in SWITCHBOARD_SAMPLES_DIR")
def test_reasoning_of_a_message_that_broke_off_keeps_its_place():
    (path,) = (path for path in THINKING if name_of(path) == "lmstudio-tool-call.1")
    lines = framed(path).splitlines(keepends=True)
    last = next(n for n, line in enumerate(lines) if b'"response.output_text.delta"' in line)
    with providing({"m": b"".join(lines[: last + 2])}):
        response = ask("go", agent="Plain model", model="responses:m", tools=[function("weather")])
        ended_runs()

    (reasoning, message) = placed(response)
    assert (reasoning["type"], reasoning["summary"]) == ("reasoning", [])
    assert (message["type"], message["status"]) == ("message", "incomplete")


def test_reasoning_before_a_decision_keeps_its_place(people):
    first = [thought("1"), assistant_message("Look:"), function_call("file", {"street": "Elm"}, call_id="c1")]
    with working(team_of(ScriptedModel([first]))):
        response = ask()
        ended_runs()
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    with working(team_of(ScriptedModel([[thought("2"), assistant_message("Done.")]]))):
        ended_runs()

    assert Run.objects.get().attempt == 2
    assert shape(placed(response)) == [
        ("reasoning",), ("message", "Look:"), ("reasoning", "2"), ("message", "Done."),
    ]  # fmt: skip


def test_a_reader_that_is_sent_away_is_left_with_no_open_item():
    with working(team([thought("1"), assistant_message("A")])):
        response = ask()
        ended_runs()
    stored = stored_response.find(response)
    received = endpoint.received_of(stored)
    encoder = Encoder(received)
    frames = encoder.begin()
    for event in log.read_after(stored.conversation, stored.seq):
        if event.kind == "output":
            break
        frames += encoder.encode(event)

    frames += encoder.break_off(resource.resource(received, "failed"))

    items = {
        kind: sorted(json.loads(frame.data)["output_index"] for frame in frames if frame.kind.endswith(kind))
        for kind in ("output_item.added", "output_item.done")
    }
    assert items == {"output_item.added": [0, 1], "output_item.done": [0, 1]}
