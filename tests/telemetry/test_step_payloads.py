"""The payload of a step, which is written as JSON and not read again, is what the record reads of that JSON."""

from __future__ import annotations

import json

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import telemetry
from conversations.core.principals import Principal
from conversations.events.payload import MAX_CALL_ID, ParsedPayload, parse
from conversations.telemetry import intake, otlp_json, otlp_protobuf
from tests.support.otlp import span, traces
from tests.support.tiers import variants
from tests.telemetry.test_same_record import SOURCES

COLLECTOR = Caller(Principal("token", "collector"), frozenset({"telemetry"}))


def events_of(body):
    """Return the events of a request, and how many spans were refused for what reason."""
    spans = (otlp_json if body[:1] == b"{" else otlp_protobuf).traces(body).spans
    return telemetry._events_of(intake.of_spans(spans, intake.Memory()), COLLECTOR)


def fields_of(payload):
    return {name: getattr(payload, name) for name in ParsedPayload.__struct_fields__}


def called(args, result, *, call_id="call_0123456789"):
    """Make a request of one tool call."""
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up", "gen_ai.tool.call.id": call_id}
    return traces(span("call", {**tool, "gen_ai.tool.call.arguments": args, "gen_ai.tool.call.result": result}))


def nested(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("source", variants(SOURCES, quick=6))
def test_the_payload_of_every_step_is_what_its_body_is_read_as(source):
    for request in SOURCES[source]():
        for event in events_of(request)[0]:
            assert fields_of(event.payload) == fields_of(parse(event.body.encode()))


ODD = {
    "texts": called("not JSON", ""),
    "no arguments": called("", "null"),
    "null": called("null", "[null]"),
    "numbers": called(json.dumps({"a": 1.5, "b": 1 << 70}), "17"),
    "NUL": called('{"a": "\\u0000"}', "a\0b"),
    "a long call id": called("{}", "{}", call_id="c" * (MAX_CALL_ID + 1)),
    "nested": called(json.dumps({"deep": nested(90)}), json.dumps(nested(90))),
    "a long output": called("{}", json.dumps({"text": "é" * 300_000})),
    "many characters that are escaped": called("{}", json.dumps(["\x01" * 100_000])),
}


@pytest.mark.parametrize("name", ODD)
def test_so_is_the_payload_of_odd_values(name):
    events, refused, why = events_of(ODD[name])

    assert (len(events), refused, why) == (2, 0, "")
    for event in events:
        assert fields_of(event.payload) == fields_of(parse(event.body.encode()))


def test_a_call_that_is_nested_too_deeply_is_refused():
    events, refused, why = events_of(called(json.dumps({"a": nested(99)}), "fine"))

    assert "must be nested at most 100 levels deep" in why
    assert ([json.loads(event.body)["status"] for event in events], refused) == (["success"], 0)
