"""Parse what a person typed into a query: words, "phrases", prefix*, and who, what, where, when.

Nothing typed reaches a database as its query language: databases are given only parsed words.
"""

import re
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from conversations.core.errors import Invalid
from conversations.core.micros import to_micros
from conversations.events.payload import clean_text
from conversations.search import tokenizer

MAX_QUERY = 1000  # characters
MAX_TERMS = 16
MAX_WORDS = 64  # of one term
_PIECE = re.compile(r'"([^"]*)"?(\*?)|([^\s"]+)')
_BOUNDS = range(1970, 9999)  # years


@dataclass(frozen=True, slots=True)
class Term:
    """One or more adjacent words. `is_prefix`: the last one is a prefix."""

    words: tuple[str, ...]
    is_prefix: bool = False
    is_character: bool = False  # one character of a script without spaces, anywhere in a run

    def fits(self, at: int, word: str) -> bool:
        """Return whether a word of a text matches the term's word at position `at`."""
        expected = self.words[at]
        return word.startswith(expected) if self.is_prefix and at == len(self.words) - 1 else word == expected


@dataclass(frozen=True, slots=True)
class Query:
    """A query; every part must match. `since` (inclusive) and `until` (exclusive) are µs UTC."""

    terms: tuple[Term, ...] = ()
    conversation: str = ""
    kind: str = ""
    sender: str = ""
    since: int | None = None
    until: int | None = None
    unread: tuple[str, ...] = field(default=(), compare=False)  # pieces without a letter or a digit: left out

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to search for; a time alone is no search."""
        return not (self.terms or self.conversation or self.kind or self.sender)


def read(
    q: str = "", *, conversation: str = "", kind: str = "", sender: str = "", since: str = "", until: str = ""
) -> Query:
    """Parse a query. Every text is valid, except for more than 16 words or phrases and for invalid times: raises
    Invalid."""
    terms: list[Term] = []
    unread: list[str] = []
    for phrase, star, piece in _PIECE.findall(clean_text(q[:MAX_QUERY])):
        text = phrase or piece
        if term := _term(text, is_prefix=bool(star) or (not phrase and text.endswith("*"))):
            terms.append(term)
        elif text:
            unread.append(text)
    terms = list(dict.fromkeys(terms))
    if len(terms) > MAX_TERMS:
        raise Invalid(f"must have at most {MAX_TERMS} words or phrases; got {len(terms)}", field="q")
    return Query(
        terms=tuple(terms),
        conversation=clean_text(conversation.strip()),
        kind=clean_text(kind.strip()),
        sender=clean_text(sender.strip()),
        since=_moment(since, "since"),
        until=_moment(until, "until", is_end=True),
        unread=tuple(unread),
    )


def _term(text: str, *, is_prefix: bool) -> Term | None:
    tokens = tokenizer.read_part(tokenizer.composed(text))[:MAX_WORDS]
    if not tokens:
        return None
    is_character = len(tokens) == 1 and tokens[0].is_part and len(tokens[0].text) == 1
    return Term(tuple(word.text for word in tokens), is_prefix and not tokens[-1].is_part, is_character)


def _moment(text: str, name: str, *, is_end: bool = False) -> int | None:
    """Parse a day or a moment in ISO 8601, UTC by default; as the end of a range, a day is included."""
    text = text.strip()
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.year not in _BOUNDS:
            raise ValueError
        if is_end and _is_day(text):
            moment += timedelta(days=1)
        return to_micros(moment)
    except (ValueError, OverflowError):
        raise Invalid(f"must be a date such as 2026-11-21 or an ISO 8601 time; got {text[:40]!r}", field=name) from None


def _is_day(text: str) -> bool:
    """Return whether a text is a day without a time, in any form of ISO 8601: 2026-11-21, 20261121, 2026-W47-6."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
