"""Decode JSON of many values in slices. No Django.

A C decoder keeps all other threads from running until it is done: 25 to 100 ms for 1 MiB of small lists. Here a body is
cut at commas between values and decoded in slices of 32 KiB or one text, so that the event loop runs in between. This
takes longer in all, so bodies of few values are decoded as a whole.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from conversations.core import json_depth

SLICE = 32 << 10  # bytes decoded at a time
MAX_AT_ONCE = 5_000  # values that are decoded within 2 ms
_OTHERS = bytes(set(range(256)) - set(b","))
_COMMAS = bytes.maketrans(b"," + _OTHERS, b"\0" + b"\xff" * len(_OTHERS))
_PAIRS = {ord("["): ord("]"), ord("{"): ord("}")}
_SPACE = b" \t\n\r"


def decode(body: bytes, most: int) -> Any:  # any JSON
    """Return what `msgspec.json.decode` returns. Raises msgspec.DecodeError, also for nesting deeper than `most` (at
    most 250), and UnicodeDecodeError."""
    if len(body) <= SLICE or sum(map(body.count, (b",", b"[", b"{"))) <= MAX_AT_ONCE:
        return msgspec.json.decode(body)
    return _Slices(body, _commas(body, most)).value(0, len(body), 1)


def _commas(body: bytes, most: int) -> bytes:
    """Return for each byte the number of open brackets if it is a comma between values, else 255."""
    marks, depth = [], 0
    for piece in json_depth.pieces(body, 0):
        opened = json_depth.levels(piece.outside, depth)
        if not opened:
            continue
        if max(opened) > most or min(opened) < 0:
            raise msgspec.DecodeError("JSON is malformed: its brackets do not match")
        depth = opened[-1]
        commas = int.from_bytes(piece.outside.translate(_COMMAS), "big")
        marks.append((commas | int.from_bytes(bytes(opened.tolist()), "big")).to_bytes(len(opened), "big"))
    return b"".join(marks)


class _Slices:
    """A body and the positions of its commas."""

    def __init__(self, body: bytes, commas: bytes) -> None:
        self._body, self._commas = body, commas

    def value(self, start: int, end: int, depth: int) -> Any:
        """Decode the value between two positions, inside of `depth` open brackets."""
        text = self._body[start:end].strip(_SPACE)
        opening = text[0] if text else 0
        if len(text) <= SLICE or opening not in _PAIRS or text[-1] != _PAIRS[opening]:
            return msgspec.json.decode(text)
        inner = self._body.index(text[:1], start) + 1, self._body.rindex(text[-1:], start, end)
        parts = self._parts(*inner, depth)
        return self._list(parts, depth) if opening == ord("[") else self._object(parts, depth)

    def _parts(self, start: int, end: int, depth: int) -> Iterator[tuple[int, int]]:
        """Cut at the commas of a depth, into parts that are small, or one value each."""
        comma = bytes([depth])
        while end - start > SLICE:
            cut = self._commas.rfind(comma, start, start + SLICE)
            cut = self._commas.find(comma, start, end) if cut < 0 else cut
            if cut < 0:
                break
            yield start, cut
            start = cut + 1
        yield start, end

    def _list(self, parts: Iterator[tuple[int, int]], depth: int) -> list[Any]:
        items: list[Any] = []
        for start, end in parts:
            if end - start > SLICE:
                items.append(self.value(start, end, depth + 1))
            else:
                items += self._some(b"[%s]", start, end)
        return items

    def _object(self, parts: Iterator[tuple[int, int]], depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for start, end in parts:
            if end - start > SLICE:
                key, colon = self._key(start, end)
                members[key] = self.value(colon + 1, end, depth + 1)
            else:
                members |= self._some(b"{%s}", start, end)
        return members

    def _some(self, form: bytes, start: int, end: int) -> Any:
        """Decode several values. Raises DecodeError for none: there is a stray comma."""
        values = msgspec.json.decode(form % self._body[start:end])
        if not values:
            raise msgspec.DecodeError("JSON is malformed: expected a value beside a comma")
        return values

    def _key(self, start: int, end: int) -> tuple[str, int]:
        """Return a member's key and the position of its colon."""
        begin = self._body.find(b'"', start, end)
        quote = self._body.find(b'"', begin + 1, end)
        while quote > 0 and self._backslashes(quote) % 2:
            quote = self._body.find(b'"', quote + 1, end)
        colon = self._body.find(b":", quote, end)
        around = self._body[start:begin] + self._body[quote + 1 : colon]
        if min(begin, quote, colon) < 0 or around.strip(_SPACE):
            raise msgspec.DecodeError("JSON is malformed: expected a key and a colon")
        key: str = msgspec.json.decode(self._body[begin : quote + 1])
        return key, colon

    def _backslashes(self, place: int) -> int:
        """Return how many backslashes are right before a position."""
        first = place
        while self._body[first - 1] == ord("\\"):
            first -= 1
        return place - first
