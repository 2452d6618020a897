"""Large messages of protobuf are decoded in slices, and tell what they tell as a whole."""

from __future__ import annotations

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from conversations.core.errors import Invalid, TooLarge
from conversations.telemetry import otlp_protobuf, otlp_slices
from tests.support.otlp import logs, span, traces

LONG = "long " * 20_000
MANY = {f"key-{n}": n for n in range(9_000)}
LARGE = {
    "attributes": span("s", MANY),
    "an attribute of many members": span("s", {"a": 1, "inner": MANY, "b": 2}),
    "an attribute of many items": span("s", {"inner": [*range(20_000), LONG, [1, 2], [*range(20_000)]], "b": 2}),
    "nested attributes": span("s", {"deep": {"deeper": {"inner": MANY, "b": 2}, "list": [MANY, "c"]}}),
    "a long text": span("s", {"text": LONG, "b": 2}),
    "a long key": span("s", {LONG: "text", "b": 2}),
    "a long name": span(LONG, {"b": 2}, error=LONG),
    "events": span("s", {"b": 2}, events=[(f"event-{n}", {"n": n}) for n in range(3_000)], error="e"),
    "an event of many attributes": span("s", {}, events=[("first", {}), ("second", MANY), (LONG, {"c": 1})]),
}


@pytest.fixture
def largest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is decoded at a time."""
    sizes: list[int] = []
    decoded = otlp_slices.decoded
    monkeypatch.setattr(
        otlp_slices, "decoded", lambda kind, content: sizes.append(len(content)) or decoded(kind, content)
    )
    return sizes


@pytest.mark.parametrize("name", LARGE)
def test_a_large_span_tells_the_same_in_slices(name, largest, monkeypatch):
    body = traces(LARGE[name], span("after", {"x": 1}, number=2))

    sliced = otlp_protobuf.traces(body)
    monkeypatch.setattr(otlp_slices, "SLICE", 1 << 30)
    whole = otlp_protobuf.traces(body)

    assert sliced == whole
    assert [each.name for each in whole.spans][1:] == ["after"]


@pytest.mark.parametrize("name", [name for name in LARGE if "long" not in name and "event of" not in name])
def test_no_more_than_a_slice_is_decoded_at_a_time(name, largest):
    otlp_protobuf.traces(traces(LARGE[name]))

    texts = len(LONG) + 100 if "items" in name else 0
    assert len(largest) > 1
    assert max(largest) <= max(otlp_slices.SLICE, texts)


def test_a_large_log_record_tells_the_same_in_slices(largest, monkeypatch):
    body = logs((span("s", {}), "name", {"inner": MANY, "text": LONG}), (span("t", {}), "other", "short"))

    sliced = otlp_protobuf.logs(body)
    monkeypatch.setattr(otlp_slices, "SLICE", 1 << 30)

    assert sliced == otlp_protobuf.logs(body)
    assert len(largest) > 3


def test_what_is_nested_too_deeply_is_refused(monkeypatch):
    deep: list = [LONG]
    for _ in range(otlp_slices.MAX_NESTED + 5):
        deep = [deep]

    with pytest.raises(Invalid):
        otlp_protobuf.traces(traces(span("s", {"deep": deep})))


def test_numbers_without_end_are_no_span():
    item = span("s", {"a": 1}).SerializeToString() + b"\x08\x01" * (otlp_slices.SLICE)
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add()
    body = request.SerializeToString()
    assert body == b"\n\x02\x12\x00"

    inner = b"\x12" + _varint(len(item)) + item
    scope = b"\x12" + _varint(len(inner)) + inner

    with pytest.raises(Invalid):
        otlp_protobuf.traces(b"\n" + _varint(len(scope)) + scope)


def test_a_span_of_too_many_attributes_is_refused(monkeypatch):
    monkeypatch.setattr(otlp_slices, "MAX_ATTRIBUTES", 8_000)

    with pytest.raises(TooLarge):
        otlp_protobuf.traces(traces(span("s", MANY)))
    with pytest.raises(TooLarge):
        otlp_protobuf.traces(traces(span("s", {"inner": MANY})))


def test_a_span_of_more_than_4_mib_is_refused():
    with pytest.raises(TooLarge):
        otlp_protobuf.traces(traces(span("s", {"text": "x" * otlp_slices.MAX_BYTES})))


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])
