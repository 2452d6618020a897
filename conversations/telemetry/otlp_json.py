"""Decode OTLP in JSON: ids in hex, as OTLP has them, or in base64, as protobuf's own JSON does; enums as numbers or
names; integers as texts or numbers. Unknown fields are ignored."""

import base64
import binascii
import string
from collections.abc import Iterator
from typing import Any

import msgspec

from conversations.core import json_depth, sliced_json
from conversations.core.errors import Invalid, TooLarge
from conversations.core.json_values import finite_or_name
from conversations.telemetry.span import (
    ID_BYTES,
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

MAX_DEPTH = 100
_ERRORS = (2, "STATUS_CODE_ERROR")
_HEX = frozenset(string.hexdigits)
Json = Any  # whatever a client sent


def traces(body: bytes, most: int = MAX_SPANS) -> Decoded:
    """Decode an `ExportTraceServiceRequest`. Raises Invalid for anything else, TooLarge for more than `most` spans."""
    decoded = Decoded()
    for source, item in _items(body, "resourceSpans", "scopeSpans", "spans", most):
        trace_id, span_id = _id(item, "traceId"), _id(item, "spanId")
        if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
            decoded.reject("a span must have a traceId of 32 hex digits and a spanId of 16")
            continue
        events = [
            SpanEvent(_text(e.get("name")), _whole(e.get("timeUnixNano")), _attributes(e.get("attributes")))
            for e in _objects(item.get("events"))
        ]
        status = item.get("status")
        status = status if isinstance(status, dict) else {}
        error = error_of(_text(status.get("message")), events) if status.get("code") in _ERRORS else None
        decoded.spans.append(
            Span(
                trace_id, span_id, _id(item, "parentSpanId"), _text(item.get("name")),
                _whole(item.get("startTimeUnixNano")), _whole(item.get("endTimeUnixNano")),
                _attributes(item.get("attributes")), source, events, error,
            )
        )  # fmt: skip
    return decoded


def logs(body: bytes) -> Decoded:
    """Decode an `ExportLogsServiceRequest`, each record as a span of one event. Raises as `traces`."""
    decoded = Decoded()
    for source, item in _items(body, "resourceLogs", "scopeLogs", "logRecords", MAX_SPANS):
        trace_id, span_id = _id(item, "traceId"), _id(item, "spanId")
        if not is_id(trace_id, "traceId") or not is_id(span_id, "spanId"):
            continue  # a log line that belongs to no span says nothing of a conversation
        at = _whole(item.get("timeUnixNano")) or _whole(item.get("observedTimeUnixNano"))
        attributes = _attributes(item.get("attributes"))
        name = _text(item.get("eventName")) or _text(attributes.get("event.name"))
        event = SpanEvent(name, at, attributes, _value(item.get("body")))
        decoded.spans.append(Span(trace_id, span_id, "", name, at, at, attributes, source, [event], is_log=True))
    return decoded


def _items(body: bytes, outer: str, middle: str, inner: str, most: int) -> Iterator[tuple[SpanSource, dict[str, Json]]]:
    groups, count = GroupCount(most), 0
    for resource in _objects(_document(body).get(outer)):
        groups.add()
        sender = resource.get("resource")
        attributes = _attributes(sender.get("attributes")) if isinstance(sender, dict) else {}
        for part in _objects(resource.get(middle)):
            groups.add()
            scope = part.get("scope")
            source = SpanSource(attributes, _text(scope.get("name")) if isinstance(scope, dict) else "")
            for item in _objects(part.get(inner)):
                count += 1
                if count > most:
                    raise TooLarge(f"a request must have at most {most:,} spans")
                yield source, item


def _document(body: bytes) -> dict[str, Json]:
    if json_depth.is_deeper(body, MAX_DEPTH):
        raise Invalid(f"the body must be nested at most {MAX_DEPTH} levels deep")
    try:
        document = sliced_json.decode(body, MAX_DEPTH)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"the body must be an OTLP export request in JSON: {error}") from None
    if not isinstance(document, dict):
        raise Invalid("the body must be an OTLP export request: a JSON object")
    return document


def _objects(value: Json) -> list[dict[str, Json]]:
    """Return the objects of a list. Raises Invalid for anything but a list of objects, or nothing."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Invalid("the body must be an OTLP export request: expected a list of objects")
    return value


def _id(item: dict[str, Json], name: str) -> str:
    """Return an id in lower-case hex; empty for anything else."""
    text, size = item.get(name), ID_BYTES["traceId" if name == "traceId" else "spanId"]
    if not isinstance(text, str):
        return ""
    if len(text) == 2 * size:
        return text.lower() if _HEX.issuperset(text) else ""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == size else ""


def _attributes(pairs: Json) -> Attributes:
    return {pair["key"]: _value(pair.get("value")) for pair in _objects(pairs) if isinstance(pair.get("key"), str)}


def _value(value: Json) -> Any:
    if not isinstance(value, dict):
        return None
    for name, plain in value.items():
        if name in ("stringValue", "boolValue", "bytesValue"):
            return plain
        if name == "intValue":
            return _whole(plain)
        if name == "doubleValue":
            return _double(plain)
        if name == "arrayValue":
            values = plain.get("values") if isinstance(plain, dict) else None
            return [_value(item) for item in values] if isinstance(values, list) else []
        if name == "kvlistValue":
            return _attributes(plain.get("values")) if isinstance(plain, dict) else {}
    return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: Json) -> int:
    """Return an integer, given as one or as a text; 0 for anything else."""
    is_digits = isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal()
    number = int(value) if is_digits else value
    return number if type(number) is int and abs(number) < 1 << 63 else 0


def _double(value: Json) -> float | str | None:
    """Return a number, given as one or as a text; of NaN and the infinities the name. None for anything else."""
    try:
        return finite_or_name(float(value)) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
