"""What a small request can cost: groups without spans, fields without content, and log records of one span."""

import time
import tracemalloc

import pytest

from conversations.core.errors import TooLarge
from conversations.telemetry import intake, otlp_json, otlp_protobuf, span
from tests.support.otlp import logs, traces
from tests.support.otlp import span as span_of

BODY = 256 << 10  # bytes; a request may have 64 times as many
EMPTY_GROUPS = {
    "resources": b"\x0a\x00" * (BODY // 2),
    "scopes": b"\x0a" + bytes([0x80, 0x80, 0x10]) + b"\x12\x00" * (BODY // 2),
    "fields of no version": b"\x10\x01" * (BODY // 2),
}
MOST_FIELDS = 120_000
MOST_MEMORY = 4 * BODY  # bytes; a list of the fields took 70 times the body
MOST_TIMES = 4  # how much more than a quarter of a span's log records all of them may cost for each


@pytest.mark.slow
@pytest.mark.parametrize("read", [otlp_protobuf.traces, otlp_protobuf.logs], ids=["traces", "logs"])
@pytest.mark.parametrize("name", EMPTY_GROUPS)
def test_a_protobuf_body_of_empty_groups_is_refused_before_it_is_listed(name, read, monkeypatch):
    monkeypatch.setattr(otlp_protobuf.WireBody, "fields_left", MOST_FIELDS)
    read(b"")  # loads the messages
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge, match="at most"):
            read(EMPTY_GROUPS[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < MOST_MEMORY


@pytest.mark.parametrize(
    "body",
    [
        b'{"resourceSpans":[' + b",".join([b"{}"] * (2 * span.MAX_SPANS + 1)) + b"]}",
        b'{"resourceSpans":[{"scopeSpans":[' + b",".join([b"{}"] * (2 * span.MAX_SPANS)) + b"]}]}",
    ],
    ids=["resources", "scopes"],
)
def test_a_json_body_of_empty_groups_is_refused(body):
    with pytest.raises(TooLarge, match="groups"):
        otlp_json.traces(body)


def test_a_body_of_as_many_groups_as_spans_is_read():
    spans = [span_of("s", {}, number=n) for n in range(1, 101)]

    decoded = otlp_protobuf.traces(b"".join(traces(each, service="each of its own") for each in spans))

    assert len(decoded.spans) == 100


def test_spans_of_empty_attributes_are_refused_before_all_are_read(monkeypatch):
    monkeypatch.setattr(otlp_protobuf.WireBody, "fields_left", 1_000)
    spans = [span_of("s", {f"key-{n}": n for n in range(300)}, number=number) for number in range(1, 5)]

    assert len(otlp_protobuf.traces(traces(*spans[:3])).spans) == 3
    with pytest.raises(TooLarge, match="fields"):
        otlp_protobuf.traces(traces(*spans))


def cost_of_records(count):
    """Return the CPU seconds of joining log records of one span, each with an attribute of its own."""
    of = span_of("s", {})
    spans = otlp_protobuf.logs(logs(*((of, "event", "") for _ in range(count)))).spans
    for number, each in enumerate(spans):
        each.attributes[f"key-{number}"] = number
    began = time.thread_time()
    intake.read(spans, intake.Memory())
    return time.thread_time() - began


@pytest.mark.slow
def test_log_records_of_one_span_cost_each_the_same_however_many_there_are():
    quarter = min(cost_of_records(1_000) for _ in range(3))

    assert min(cost_of_records(4_000) for _ in range(2)) < 4 * quarter * MOST_TIMES


def test_a_span_of_many_log_records_has_no_more_attributes_than_another(monkeypatch):
    monkeypatch.setattr(span, "MAX_ATTRIBUTES", 10)
    of = span_of("s", {})
    spans = otlp_protobuf.logs(logs(*((of, "event", "") for _ in range(30)))).spans
    for number, each in enumerate(spans):
        each.attributes[f"key-{number}"] = number

    (joined,) = span.of_records(spans)

    assert list(joined.attributes) == [f"key-{n}" for n in range(10)]
    assert len(joined.events) == 30
