"""The filters of the tool calls list."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from conversations.core.errors import Invalid
from conversations.events.payload import clean_text, short_call_id
from conversations.listing.url_filters import TIMES, Reader, UrlFilters, ValuesReader, one_of, person, short
from conversations.search import query

STATUSES = (
    *("called", "waiting", "approved", "executing", "done"),
    *("failed", "timeout", "rejected", "blocked", "unknown", "no_result"),
)
WHERE = {"": "arguments, output and errors", "around": "also messages around the call"}
MAX_LENGTH = 401  # characters of a value: a qualified name
NUMBERS = {"min_ms": 1e12, "max_ms": 1e12, "min_bytes": 2.0**53, "max_bytes": 2.0**53}


def _number(most: float, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise Invalid(f"must be a number, 0 or more; got {text[:20]!r}")
    return value


def _search_words(text: str) -> str:
    """Return the text. Raises Invalid for more words than the search takes."""
    query.read(text)
    return clean_text(text[:MAX_LENGTH])


def _call_id(text: str) -> str:
    return short_call_id(clean_text(text))


@dataclass(frozen=True, slots=True)
class CallFilters(UrlFilters):
    """The filters in force, named as in the address. Times are when the call was recorded, µs UTC."""

    many: ClassVar[dict[str, ValuesReader]] = {
        **dict.fromkeys(("agent", "tool", "qualified", "origin", "server"), ValuesReader(MAX_LENGTH)),
        "status": ValuesReader(MAX_LENGTH, choices=STATUSES),
        "by": ValuesReader(MAX_LENGTH, person),
    }
    single: ClassVar[dict[str, Reader]] = {
        **{name: partial(_number, most) for name, most in NUMBERS.items()},
        **TIMES,
        "replayed": one_of("yes", "no"),
        "where": one_of("around"),
        "q": _search_words,
        "conversation": short(200),
        "run": short(64),
        "call_id": _call_id,
    }
    verbatim: ClassVar[Collection[str]] = (*many, "call_id")
    ranges = (
        ("max_ms", "min_ms", "max_ms", "must not be less than the minimum"),
        ("max_bytes", "min_bytes", "max_bytes", "must not be less than the minimum"),
        *UrlFilters.ranges,
    )

    agent: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()  # the public name
    qualified: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # principals who decided
    replayed: str = ""  # yes, no
    q: str = ""  # words, "phrases", prefix*
    where: str = ""
    conversation: str = ""
    run: str = ""
    call_id: str = ""
    last: str = ""
    since: int | None = None
    until: int | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    min_bytes: float | None = None
    max_bytes: float | None = None
