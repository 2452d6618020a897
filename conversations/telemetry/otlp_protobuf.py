"""Decode OTLP in protobuf. The request is split into slices of its spans here, and into its log records; large ones are
decoded in slices of their own (`otlp_slices`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conversations.core.errors import TooLarge
from conversations.telemetry import otlp_slices
from conversations.telemetry.otlp_slices import Parts, WireBody, WireField, fields, last, pairs, texts
from conversations.telemetry.span import (
    MAX_SPANS,
    Attributes,
    Decoded,
    GroupCount,
    Span,
    SpanEvent,
    SpanSource,
    error_of,
    is_id,
)

_ERROR = 2  # of Status.StatusCode
_PLAIN = ("trace_id", "span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano")
_SCOPES, _ITEMS = 2, 2  # of a resource's group, of a scope's: fields by their numbers
# The same, where they may be larger than a slice.
_SPAN_NAME, _SPAN_ATTRIBUTES, _SPAN_EVENTS, _SPAN_STATUS = 5, 9, 11, 15
_EVENT_NAME, _EVENT_ATTRIBUTES = 2, 3
_RECORD_BODY, _RECORD_ATTRIBUTES, _RECORD_NAME = 5, 6, 12


def traces(request: bytes) -> Decoded:
    """Decode an `ExportTraceServiceRequest`. Raises Invalid for anything else, TooLarge for too many spans."""
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans  # late: no command needs it

    decoded, body, count = Decoded(), WireBody(request), 0
    for source, start, end in _groups(body):
        for item in otlp_slices.items(ScopeSpans, body, start, end, _ITEMS):
            if isinstance(item, WireField):
                count = _more(count, 1)
                _add(decoded, source, *_large_span(body, item))
                continue
            count = _more(count, len(item.spans))
            for message in item.spans:
                body.count_fields(len(message.attributes))
                events = [SpanEvent(e.name, e.time_unix_nano, pairs(e.attributes)) for e in message.events]
                _add(decoded, source, message, pairs(message.attributes), events)
    return decoded


def _add(decoded: Decoded, source: SpanSource, message: Any, attributes: Attributes, events: list[SpanEvent]) -> None:
    """Add a span, or reject it. `message` has what is neither attributes nor events."""
    trace_id, span_id = message.trace_id.hex(), message.span_id.hex()
    if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
        decoded.reject("a span must have a trace id of 16 bytes and a span id of 8")
        return
    failed = message.HasField("status") and message.status.code == _ERROR
    decoded.spans.append(
        Span(
            trace_id, span_id, message.parent_span_id.hex(), message.name,
            message.start_time_unix_nano, message.end_time_unix_nano, attributes, source, events,
            error_of(message.status.message, events) if failed else None,
        )
    )  # fmt: skip


def _large_span(body: WireBody, field: WireField) -> tuple[Any, Attributes, list[SpanEvent]]:
    """Decode a span that is larger than a slice; return the message without its attributes and events, and these."""
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message

    parts = otlp_slices.parts(Message, body, field.start, field.end)
    attributes = otlp_slices.attributes(body, parts, _SPAN_ATTRIBUTES)
    return _head(body, parts), attributes, _events(Message.Event, body, parts)


def logs(request: bytes) -> Decoded:
    """Decode an `ExportLogsServiceRequest`, each record as a span of one event. Raises as `traces`."""
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as Message  # late: no command needs it

    decoded, body = Decoded(), WireBody(request)
    for source, start, end in _records(body):
        parts = otlp_slices.parts(Message, body, start, end)
        trace_id, span_id = last(parts, "trace_id", b"").hex(), last(parts, "span_id", b"").hex()
        if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
            continue  # a log line that belongs to no span says nothing of a conversation
        at = last(parts, "time_unix_nano", 0) or last(parts, "observed_time_unix_nano", 0)
        attributes = otlp_slices.attributes(body, parts, _RECORD_ATTRIBUTES)
        named = (texts(body, parts, _RECORD_NAME) or [last(parts, "event_name", "")])[-1]
        name = named or str(attributes.get("event.name") or "")
        event = SpanEvent(name, at, attributes, _body_of(body, parts))
        decoded.spans.append(Span(trace_id, span_id, "", name, at, at, attributes, source, [event], is_log=True))
    return decoded


def _records(body: WireBody) -> Iterator[tuple[SpanSource, int, int]]:
    """Yield the log records of a request. Nothing is listed: a group may have as many fields as the body has bytes."""
    count = 0
    for source, group_start, group_end in _groups(body):
        for start, end in _of(body, group_start, group_end, _ITEMS):
            count = _more(count, 1)
            yield source, start, end


def _groups(body: WireBody) -> Iterator[tuple[SpanSource, int, int]]:
    """Yield the groups of spans, or of log records, of a request: both are nested alike."""
    groups = GroupCount()
    for start, end in _of(body, 0, len(body), 1):
        groups.add()
        resource = _resource(body, start, end)
        for scope_start, scope_end in _of(body, start, end, _SCOPES):
            groups.add()
            yield SpanSource(resource, _scope(body, scope_start, scope_end)), scope_start, scope_end


def _more(count: int, items: int) -> int:
    """Return the sum. Raises TooLarge above the limit of one request."""
    if count + items > MAX_SPANS:
        raise TooLarge(f"a request must have at most {MAX_SPANS:,} spans")
    return count + items


def _resource(body: WireBody, start: int, end: int) -> Attributes:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    merged: Attributes = {}
    for at, to in _of(body, start, end, 1):
        merged |= otlp_slices.attributes(body, otlp_slices.parts(Resource, body, at, to), 1)
    return merged


def _scope(body: WireBody, start: int, end: int) -> str:
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

    last_scope: Parts = []
    for at, to in _of(body, start, end, 1):
        last_scope = otlp_slices.parts(InstrumentationScope, body, at, to)
    return str(last(last_scope, "name", ""))


def _head(body: WireBody, parts: Parts) -> Any:
    """Join the parts of a large span, without its attributes, events and links."""
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
    from opentelemetry.proto.trace.v1.trace_pb2 import Status

    head = Message()
    for name in _PLAIN:
        setattr(head, name, last(parts, name, getattr(head, name)))
    for name in texts(body, parts, _SPAN_NAME):
        head.name = name
    for part in parts:
        if not isinstance(part, WireField):
            head.status.MergeFrom(part.status)
        elif part.number == _SPAN_STATUS:
            head.status.MergeFrom(otlp_slices.decoded(Status, body[part.start : part.end]))
    return head


def _events(kind: Any, body: WireBody, parts: Parts) -> list[SpanEvent]:
    """Return the events of a large span."""
    events: list[SpanEvent] = []
    for part in parts:
        if not isinstance(part, WireField):
            events += [SpanEvent(e.name, e.time_unix_nano, pairs(e.attributes)) for e in part.events]
        elif part.number == _SPAN_EVENTS:
            event = otlp_slices.parts(kind, body, part.start, part.end)
            name = (texts(body, event, _EVENT_NAME) or [last(event, "name", "")])[-1]
            attributes = otlp_slices.attributes(body, event, _EVENT_ATTRIBUTES)
            events.append(SpanEvent(name, last(event, "time_unix_nano", 0), attributes))
    return events


def _body_of(body: WireBody, parts: Parts) -> Any:
    """Return the body of a log record: any JSON."""
    for part in reversed(parts):
        if isinstance(part, WireField):
            if part.number == _RECORD_BODY:
                return otlp_slices.value_at(body, part)
        elif part.HasField("body"):
            return otlp_slices.value(part.body)
    return None


def _of(body: WireBody, start: int, end: int, number: int) -> Iterator[tuple[int, int]]:
    return ((field.start, field.end) for field in fields(body, start, end, number))
