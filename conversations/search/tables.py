"""The rows of the index and how they are asked, on either database. Inside `writing()` where they change.

An event is one row under its own id, so newest first is the order of ids. Beside its words it has marks: of its
conversation, kinds and names. `conversations_searchword` knows every word there is: it turns a prefix into words, and
on PostgreSQL says in which block of ids a word stands.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.search import texts, words
from conversations.search.query import Query, Term

MOST_WORDS = 16_000  # of one event that are searched: a tsvector counts so far
MOST_BYTES = 400_000  # of its different words: a tsvector holds 1 MiB
MOST_CHECKED = 1_500  # words that are within both, whatever they are: 64 characters of 4 bytes each
VERSION = f"2 {unicodedata.unidata_version}"  # of what a word is, which texts have some, blocks: another begins anew
FOUND = "conversations_searchword"


@dataclass(frozen=True, slots=True)
class Row:
    """One event as it is indexed. `characters`: those of runs without spaces, each alone."""

    id: int
    words: Sequence[str]
    characters: frozenset[str]
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query in words of the index: each term its places, each place the words that fit there."""

    terms: Sequence[Sequence[Sequence[str]]]
    characters: Sequence[str]
    marks: Sequence[str]


class Tables(Protocol):
    """What each database does its own way. `cursor` is inside `writing()` for what changes rows."""

    block: int  # bits of an id that words are kept by; 63: all are one block

    def insert(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Put rows in, lowest id first."""

    def delete(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Take out rows as they were put in."""

    def empty(self, cursor: CursorWrapper) -> None:
        """Take out all."""

    def stands(self, cursor: CursorWrapper, word: str, block: int) -> bool:
        """Tell whether a word still stands in a block."""

    def find(
        self, cursor: CursorWrapper, wanted: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Answer the newest ids from `low` on and below `high`, and down to which one all was looked at: `low` unless
        there are more than `limit`, or `time.monotonic()` passed the deadline."""

    def holding(self, wanted: Wanted) -> tuple[str, str]:
        """Answer a condition on an event `e`, and its one value: by its id in the index, whose other rows are not
        touched."""


def of_this() -> Tables:
    """Answer those of the database in use."""
    from conversations.search.postgresql import Postgres
    from conversations.search.sqlite import Sqlite

    return Sqlite() if connection.vendor == "sqlite" else Postgres()


def row_of(id_: int, conversation: int, kind: str, principal: str, body: str) -> Row:
    """Make the row of an event."""
    value = texts.read(body)
    said: list[str] = []
    characters: set[str] = set()
    for part in texts.parts_of(kind, value):
        some, alone = words.said(words.composed(part.text))
        said += some
        characters |= alone
    if len(said) > MOST_CHECKED:
        said = _within(said)
    marks = {of_conversation(conversation)}
    marks |= {of_kind(name) for name in texts.kinds_of(kind, value)}
    marks |= {of_name(name) for name in texts.names_of(principal, value)}
    return Row(id_, said, frozenset(characters), frozenset(marks))


def _within(said: Sequence[str]) -> list[str]:
    """Keep the first words, as many as a tsvector can hold."""
    size, seen = 0, set()
    for at, word in enumerate(said[:MOST_WORDS]):
        if word not in seen:
            seen.add(word)
            size += len(word.encode())
            if size > MOST_BYTES:
                return list(said[:at])
    return list(said[:MOST_WORDS])


def of_conversation(id_: int) -> str:
    """Answer the mark of a conversation."""
    return f"c{id_}"


def of_kind(kind: str) -> str:
    """Answer the mark of a kind or a family of them."""
    return f"k{_digest(kind)}"


def of_name(name: str) -> str:
    """Answer the mark of a sender; case does not matter."""
    return f"s{_digest(name)}"


@lru_cache(4096)
def _digest(text: str) -> str:
    return blake2b(text.strip().casefold().encode("utf-8", "replace"), digest_size=8).hexdigest()


def wanted(query: Query, conversation: int | None, spread: Mapping[Term, Sequence[str]]) -> Wanted:
    """Say a query in words of the index; `spread` are the words that each prefix stands for."""
    terms = []
    for term in query.terms:
        if not term.is_character:
            places: list[Sequence[str]] = [[word] for word in term.words]
            if term.is_prefix:
                places[-1] = spread[term]
            terms.append(places)
    marks = [of_conversation(conversation)] if conversation is not None else []
    marks += [of_kind(query.kind)] if query.kind else []
    marks += [of_name(query.sender)] if query.sender else []
    return Wanted(terms, [term.words[0] for term in query.terms if term.is_character], marks)


def beginning_with(cursor: CursorWrapper, prefix: str, most: int) -> list[str]:
    """Answer the words of the index that begin so, at most `most`."""
    end = prefix[:-1] + chr(min(ord(prefix[-1]) + 1, 0x10FFFF))
    if 0xD800 <= ord(end[-1]) <= 0xDFFF:
        end = prefix[:-1] + "\ue000"
    cursor.execute(
        f"SELECT DISTINCT word FROM {FOUND} WHERE word>=%s AND word<%s ORDER BY word LIMIT %s", [prefix, end, most]
    )
    return [word for (word,) in cursor.fetchall()]


def blocks_of(rows: Iterable[Row], bits: int, name: str = "words") -> dict[int, set[str]]:
    """Answer which words stand in which block."""
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(row.id >> bits, set()).update(getattr(row, name))
    return found
