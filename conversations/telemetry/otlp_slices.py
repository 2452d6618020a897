"""Decode protobuf messages in slices of 32 KiB, unless a single text is larger. Called by `otlp_protobuf`.

A C decoder keeps every other thread from running until it is done, including the event loop: 20 to 50 ms for 4 MiB of
small attributes. Some of a message's fields are also a valid message, so a large one is cut between its fields. A field
that alone is larger than a slice, and has many values, is cut in the same way.
"""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from conversations.core.errors import Invalid, TooLarge
from conversations.core.json_values import finite_or_name
from conversations.telemetry.span import MAX_ATTRIBUTES, Attributes

MAX_BYTES = 4 << 20  # bytes of one message
SLICE = 32 << 10  # bytes decoded at a time
MAX_SCALARS = 1 << 10  # bytes of numbers between two fields of a large message: no kind has so many
MAX_FIELDS = 1_000_000  # of one request: 50,000 spans of 16 MiB have half as many
MAX_NESTED = 40  # levels of large lists and objects
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_KEY, _VALUE = 1, 2  # of KeyValue
_ARRAY, _KVLIST = 5, 6  # of AnyValue
Message = Any  # the messages' classes are made at run time


class WireField(NamedTuple):
    """A field with a length: its number, the start and end of its bytes, and the start of its tag."""

    number: int
    start: int
    end: int
    tag: int = 0


class WireBody(bytes):
    """A request's bytes, and how many fields may still be read of them: an empty one has two bytes, and takes as long
    to read as any."""

    fields_left = MAX_FIELDS

    def count_fields(self, count: int) -> None:
        """Count fields that are read. Raises TooLarge above the limit."""
        self.fields_left -= count
        if self.fields_left < 0:
            raise TooLarge(f"a request must have at most {MAX_FIELDS:,} fields")


Parts = list[Message | WireField]


def parts(kind: Message, body: WireBody, start: int, end: int) -> Parts:
    """Decode a message: a small one as one part, a large one as several in order, and the positions of those fields
    that are larger than a slice. Raises Invalid and TooLarge."""
    if end - start <= SLICE:
        return [decoded(kind, body[start:end])]
    if end - start > MAX_BYTES:
        raise TooLarge(f"a span must have at most {MAX_BYTES:,} bytes")
    pieces: Parts = []
    first = last = start
    for field in fields(body, start, end):
        if field.tag - last > MAX_SCALARS:
            raise malformed()
        is_large = field.end - field.tag > SLICE
        if field.tag > first and (is_large or field.end - first > SLICE):
            pieces.append(decoded(kind, body[first : field.tag]))
            first = field.tag
        if is_large:
            pieces.append(field)
            first = field.end
        last = field.end
    if end - last > MAX_SCALARS:
        raise malformed()
    if end > first:
        pieces.append(decoded(kind, body[first:end]))
    return pieces


def items(kind: Message, body: WireBody, start: int, end: int, number: int) -> Iterator[Message | WireField]:
    """Decode the items of a group, its fields of this number: small neighbours together, as a group of them; of one
    that is larger than a slice, yield the position. Raises Invalid."""
    first = last = -1  # of the neighbours that are not decoded yet
    for field in fields(body, start, end, number):
        is_large = field.end - field.start > SLICE
        if first >= 0 and (is_large or field.tag != last or field.end - first > SLICE):
            yield decoded(kind, body[first:last])
            first = -1
        if is_large:
            yield field
        else:
            first, last = field.tag if first < 0 else first, field.end
    if first >= 0:
        yield decoded(kind, body[first:last])


def last(pieces: Parts, name: str, default: Any) -> Any:  # of the field's type
    """Return a field of the last part that has it."""
    values = (getattr(part, name) for part in reversed(pieces) if not isinstance(part, WireField))
    return next(filter(None, values), default)


def texts(body: WireBody, pieces: Parts, number: int) -> list[str]:
    """Return the texts of a field that are larger than a slice. Raises Invalid for anything else."""
    try:
        return [body[f.start : f.end].decode() for f in pieces if isinstance(f, WireField) and f.number == number]
    except UnicodeDecodeError:
        raise malformed() from None


def attributes(body: WireBody, pieces: Parts, number: int) -> Attributes:
    """Return the attributes in all parts of a message; `number` is their field number."""
    merged: Attributes = {}
    for part in pieces:
        if not isinstance(part, WireField):
            merged |= pairs(part.attributes)
        elif part.number == number:
            merged |= _large_pair(body, part, 0)
        _check_count(merged)
    return merged


def pairs(message: Message) -> Attributes:
    """Return decoded attributes."""
    return {pair.key: (v := pair.value).string_value or value(v) for pair in message}  # most are texts


def value(message: Message) -> Any:
    """Return a decoded AnyValue; of NaN and the infinities the name."""
    which = message.WhichOneof("value")
    if which is None:
        return None
    plain = getattr(message, which)
    if which == "array_value":
        return [value(item) for item in plain.values]
    if which == "kvlist_value":
        return pairs(plain.values)
    if which == "double_value":
        return finite_or_name(plain)
    return base64.b64encode(plain).decode() if which == "bytes_value" else plain


def value_at(body: WireBody, field: WireField, depth: int = 0) -> Any:
    """Decode an AnyValue that is larger than a slice."""
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValueList

    if depth > MAX_NESTED:
        raise malformed()
    inner = next(iter(deque(fields(body, field.start, field.end), maxlen=1)), None)  # of several the last one counts
    if inner is None or inner.number not in (_ARRAY, _KVLIST):
        return value(decoded(AnyValue, body[field.start : field.end]))
    _, start, end, _ = inner
    if inner.number == _ARRAY:
        items: list[Any] = []
        for part in parts(ArrayValue, body, start, end):
            if isinstance(part, WireField):
                items.append(value_at(body, part, depth + 1))
            else:
                items += [value(item) for item in part.values]
        return items
    members: Attributes = {}
    for part in parts(KeyValueList, body, start, end):
        members |= _large_pair(body, part, depth + 1) if isinstance(part, WireField) else pairs(part.values)
        _check_count(members)
    return members


def _large_pair(body: WireBody, field: WireField, depth: int) -> Attributes:
    """Decode a KeyValue that is larger than a slice."""
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

    pieces = parts(KeyValue, body, field.start, field.end)
    key = (texts(body, pieces, _KEY) or [last(pieces, "key", "")])[-1]
    large = [part for part in pieces if isinstance(part, WireField) and part.number == _VALUE]
    if large:
        return {key: value_at(body, large[-1], depth)}
    small = last(pieces, "value", None)
    return {key: None if small is None else value(small)}


def _check_count(members: Attributes) -> None:
    if len(members) > MAX_ATTRIBUTES:
        raise TooLarge(f"a span must have at most {MAX_ATTRIBUTES:,} attributes")


def fields(body: WireBody, start: int, end: int, number: int = 0) -> Iterator[WireField]:
    """Yield the fields of a message that have a length, or those of one number; others are skipped."""
    at = start
    while at < end:
        body.count_fields(1)
        first = at
        tag = body[at]
        if tag < 128:  # as nearly all are
            at += 1
        else:
            tag, at = _varint(body, at, end)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(body, at, end)
            if size > end - at:
                raise malformed()
            if not number or tag >> 3 == number:
                yield WireField(tag >> 3, at, at + size, first)
            at += size
        elif kind == _VARINT:
            _, at = _varint(body, at, end)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise malformed()
    if at != end:
        raise malformed()


def malformed() -> Invalid:
    """Return the error for a body that is not a valid request."""
    return Invalid("the body must be an OTLP export request in protobuf")


def _varint(body: WireBody, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 64:
        byte = body[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise malformed()


def decoded(kind: Message, content: bytes) -> Message:
    """Decode a message as a whole. Raises Invalid."""
    try:
        return kind.FromString(content)
    except _decode_error():
        raise malformed() from None


def _decode_error() -> type[Exception]:
    from google.protobuf.message import DecodeError  # late, like the messages, and only where there is one

    kind: type[Exception] = DecodeError
    return kind
