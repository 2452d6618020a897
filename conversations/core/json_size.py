"""Shorten texts by the bytes that they take in the JSON of an event, which holds two large ones."""

from bisect import bisect_right
from json.encoder import encode_basestring as quoted

MAX_TEXT = 448 * 1024  # bytes of one text as JSON
_SURE = MAX_TEXT // 6  # characters that fit whatever they are: none takes more than six bytes


def fits(text: str) -> bool:
    """Return whether an event has room for a text, and for another one of this size."""
    return len(text) <= _SURE or (len(text) <= MAX_TEXT and _size(text) <= MAX_TEXT)


def fitting_length(text: str) -> int:
    """Return how many characters of a text an event has room for, beside another text."""
    if fits(text):
        return len(text)
    return bisect_right(range(min(len(text), MAX_TEXT)), MAX_TEXT, key=lambda length: _size(text[:length])) - 1


def _size(text: str) -> int:
    return len(quoted(text).encode("utf-8", "surrogatepass"))
