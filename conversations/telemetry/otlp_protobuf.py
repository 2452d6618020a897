"""Decode OTLP in protobuf. The request is cut into its spans here, and each is decoded by itself: a decoder in C keeps
every other thread from running until it is done, and a request may have megabytes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid, TooLarge
from conversations.telemetry.span import MAX_ITEMS, Attributes, Decoded, Span, SpanEvent, SpanSource, error_of, is_id

MAX_SPAN_BYTES = 4 << 20  # bytes of one span
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_ERROR = 2  # of Status.StatusCode
Piece = tuple[int, int, int]  # a field's number, and where its bytes begin and end


def traces(body: bytes) -> Decoded:
    """Decode an `ExportTraceServiceRequest`. Raises Invalid for what is none, TooLarge for too many spans."""
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message  # late: no command needs it

    decoded = Decoded()
    for source, start, end in _items(body):
        message = _message(Message, body, start, end)
        trace_id, span_id = message.trace_id.hex(), message.span_id.hex()
        if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
            decoded.reject("a span must have a trace id of 16 bytes and a span id of 8")
            continue
        events = [SpanEvent(e.name, e.time_unix_nano, _attributes(e.attributes)) for e in message.events]
        failed = message.HasField("status") and message.status.code == _ERROR
        decoded.spans.append(
            Span(
                trace_id, span_id, message.parent_span_id.hex(), message.name,
                message.start_time_unix_nano, message.end_time_unix_nano,
                _attributes(message.attributes), source, events,
                error_of(message.status.message, events) if failed else None,
            )
        )  # fmt: skip
    return decoded


def logs(body: bytes) -> Decoded:
    """Decode an `ExportLogsServiceRequest`, each record as a span of one event. Raises as `traces`."""
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as Message  # late: no command needs it

    decoded = Decoded()
    for source, start, end in _items(body):
        message = _message(Message, body, start, end)
        trace_id, span_id = message.trace_id.hex(), message.span_id.hex()
        if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
            continue  # a log line that belongs to no span says nothing of a conversation
        at = message.time_unix_nano or message.observed_time_unix_nano
        attributes = _attributes(message.attributes)
        name = message.event_name or str(attributes.get("event.name") or "")
        event = SpanEvent(name, at, attributes, _value(message.body))
        decoded.spans.append(Span(trace_id, span_id, "", name, at, at, attributes, source, [event], is_log=True))
    return decoded


def _items(body: bytes) -> Iterator[tuple[SpanSource, int, int]]:
    """Find the spans, or log records, of a request: both kinds are nested alike."""
    count = 0
    for start, end in _of(_fields(body, 0, len(body)), 1):
        parts = list(_fields(body, start, end))
        resource = _resource(body, parts)
        for scope_start, scope_end in _of(parts, 2):
            pieces = list(_fields(body, scope_start, scope_end))
            source = SpanSource(resource, _scope(body, pieces))
            for item_start, item_end in _of(pieces, 2):
                count += 1
                if count > MAX_ITEMS:
                    raise TooLarge(f"a request must have at most {MAX_ITEMS:,} spans")
                yield source, item_start, item_end


def _resource(body: bytes, pieces: list[Piece]) -> Attributes:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    merged: Attributes = {}
    for start, end in _of(pieces, 1):
        merged |= _attributes(_message(Resource, body, start, end).attributes)
    return merged


def _scope(body: bytes, pieces: list[Piece]) -> str:
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

    names = [_message(InstrumentationScope, body, start, end).name for start, end in _of(pieces, 1)]
    return names[-1] if names else ""


def _message(kind: Any, body: bytes, start: int, end: int) -> Any:  # Any: the messages' classes are made at run time
    if end - start > MAX_SPAN_BYTES:
        raise TooLarge(f"a span must have at most {MAX_SPAN_BYTES:,} bytes")
    try:
        return kind.FromString(body[start:end])
    except _decode_error():
        raise _malformed() from None


def _decode_error() -> type[Exception]:
    from google.protobuf.message import DecodeError  # late, like the messages, and only where there is one

    kind: type[Exception] = DecodeError
    return kind


def _attributes(pairs: Any) -> Attributes:
    return {pair.key: (value := pair.value).string_value or _value(value) for pair in pairs}  # most are texts


def _value(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which is None:
        return None
    plain = getattr(value, which)
    if which == "array_value":
        return [_value(item) for item in plain.values]
    if which == "kvlist_value":
        return _attributes(plain.values)
    return base64.b64encode(plain).decode() if which == "bytes_value" else plain


def _of(pieces: Iterator[Piece] | list[Piece], number: int) -> list[tuple[int, int]]:
    return [(start, end) for field, start, end in pieces if field == number and end >= 0]


def _fields(body: bytes, start: int, end: int) -> Iterator[Piece]:
    """Return the fields of a message that have a length; all others are passed over."""
    at = start
    while at < end:
        tag = body[at]
        if tag < 128:  # as nearly all are
            at += 1
        else:
            tag, at = _varint(body, at, end)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(body, at, end)
            if size > end - at:
                raise _malformed()
            yield tag >> 3, at, at + size
            at += size
        elif kind == _VARINT:
            _, at = _varint(body, at, end)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise _malformed()
    if at != end:
        raise _malformed()


def _varint(body: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise _malformed()


def _malformed() -> Invalid:
    return Invalid("the body must be an OTLP export request in protobuf")
