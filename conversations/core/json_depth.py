"""How deeply JSON is nested, valid or not, without decoding it. Used by `payload` and `batch_publish`. No Django.

A body is scanned in pieces, each by a few C calls of less than a millisecond, so the event loop runs in between
whatever the body contains.
"""

from array import array
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

PIECE = 16 << 10  # bytes
_COUNTED = 1 << 20  # bytes counted at a time
_MARKS = b'"', b"[", b"{", b"\\"
_OPENS, _CLOSES = b"[{", b"]}"
_STEPS = bytes.maketrans(_OPENS + _CLOSES, b"\1\1\xff\xff")  # as signed bytes: one level up, one down
_OTHERS = bytes(set(range(256)) - set(_OPENS + _CLOSES))
_FLAT = bytes.maketrans(_OTHERS, bytes(len(_OTHERS)))


class Piece(NamedTuple):
    """A piece of a body: its start, and its text with the contents of strings blanked out."""

    start: int
    outside: bytes


def is_deeper(body: bytes, most: int) -> bool:
    """Return whether brackets are nested more than `most` deep anywhere."""
    if body.count(b"{") + body.count(b"[") <= most:
        return False
    depth = 0
    for _, parts, in_text in _split(body, 0):
        steps = b"".join(parts[in_text::2]).translate(_STEPS, _OTHERS)
        up = steps.count(b"\1")
        if depth + up > most and max(accumulate(memoryview(steps).cast("b"), initial=depth)) > most:
            return True
        depth += 2 * up - len(steps)
    return False


def is_dense(body: bytes) -> bool:
    """Return whether a body is mostly brackets, quotation marks and escapes, which takes a decoder seven times as long
    as ordinary text."""
    slices = range(0, len(body), _COUNTED)
    return sum(body.count(mark, at, at + _COUNTED) for mark in _MARKS for at in slices) > len(body) // 8


def pieces(body: bytes, start: int) -> Iterator[Piece]:
    """Yield a body in pieces, from a place outside strings."""
    for at, parts, in_text in _split(body, start):
        whole = [part if (n + in_text) % 2 == 0 else b" " * len(part) for n, part in enumerate(parts)]
        yield Piece(at, b" ".join(whole))


def levels(piece: bytes, depth: int) -> "array[int]":
    """Return how many brackets are open after each byte, if `depth` were open before the first."""
    steps = piece.translate(_FLAT).translate(_STEPS)
    return array("l", accumulate(memoryview(steps).cast("b"), initial=depth))[1:]


def _split(body: bytes, start: int) -> Iterator[tuple[int, list[bytes], int]]:
    """Split each piece at its quotation marks, and say whether it begins inside a string (1 or 0)."""
    at, in_text = start, 0
    while at < len(body):
        end = _end(body, at)
        blank = body[at:end].replace(b"\\\\", b"  ").replace(b'\\"', b"  ")  # a run of backslashes pairs up
        parts = blank.split(b'"')
        yield at, parts, in_text
        at, in_text = end, (in_text + len(parts) - 1) % 2


def _end(body: bytes, at: int) -> int:
    """Return where a piece ends, so that a backslash and the character after it are in the same piece."""
    end = at + PIECE
    piece = body[at:end]
    return end + (len(piece) - len(piece.rstrip(b"\\"))) % 2
