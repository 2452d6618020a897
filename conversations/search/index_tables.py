"""The tables of the index and their queries, on either database. Changes run inside `write_transaction()`.

An event is one row under its own id, so newest first is the order of ids. Beside its words it has marks: of its
conversation, types and names. `conversations_searchword` lists every word: it expands prefixes, and on PostgreSQL it
says in which block of ids a word occurs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.search import searchable_text, tokenizer
from conversations.search.index_rows import WORDS_TABLE, IndexRow, Wanted
from conversations.search.query import Query, Term

MAX_WORDS = 16_000  # of one event that are searched: a tsvector counts so far
MAX_BYTES = 400_000  # of its different words: a tsvector holds 1 MiB
MAX_CHECKED = 1_500  # words that are within both, whatever they are: 64 characters of 4 bytes each
MAX_SENDERS = 1_000  # characters of an event's senders whose marks are remembered
FORMAT = 4  # raise it where words, blocks or times change


class Tables(Protocol):
    """What differs between the databases. The `cursor` of a change is inside `write_transaction()`."""

    block: int  # bits of an id that words are kept by; 63: all are one block

    def insert(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Insert rows, lowest id first."""

    def delete(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Delete rows, given exactly as they were inserted."""

    def empty(self, cursor: CursorWrapper) -> None:
        """Delete all rows."""

    def forget_words(self, cursor: CursorWrapper, pairs: Collection[tuple[str, int]]) -> None:
        """Delete those of these words, each with its block, that no row of the block has, in one statement."""

    def find(
        self, cursor: CursorWrapper, query: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Return the newest matching ids, `low` <= id < `high`, and the id down to which everything was searched:
        `low`, unless there are more than `limit` or `time.monotonic()` passed `deadline`."""

    def condition_of(self, query: Wanted) -> tuple[str, str]:
        """Return an SQL condition on an event `e`, with its one value; it looks the event up in the index by id."""


def version() -> str:
    """Return the rules by which the index is built; others rebuild it, since a row is deleted by computing it again."""
    return f"{FORMAT} {unicodedata.unidata_version} {searchable_text.digest_of_declarations()}"


def of_this() -> Tables:
    """Return the tables of the database in use."""
    from conversations.search.postgresql import Postgres
    from conversations.search.sqlite import Sqlite

    return Sqlite() if connection.vendor == "sqlite" else Postgres()


def row_of(id_: int, conversation: int, kind: str, principal: str, body: str) -> IndexRow:
    """Return the index row of an event."""
    value = searchable_text.read(body)
    all_words, characters = tokenizer.split_words(tokenizer.composed(searchable_text.text_of(kind, value)))
    if len(all_words) > MAX_CHECKED:
        all_words = _within(all_words)
    marks = {of_kind(name) for name in searchable_text.kinds_of(kind, value)}
    marks.add(of_conversation(conversation))
    senders = searchable_text.senders_of(principal, value)
    marks |= (_known_marks_of if sum(map(len, senders)) <= MAX_SENDERS else _marks_of)(senders)
    return IndexRow(id_, all_words, frozenset(characters), frozenset(marks))


def _within(all_words: Sequence[str]) -> list[str]:
    """Return the first words, as many as a tsvector can hold."""
    size, seen = 0, set()
    for at, word in enumerate(all_words[:MAX_WORDS]):
        if word not in seen:
            seen.add(word)
            size += len(word.encode())
            if size > MAX_BYTES:
                return list(all_words[:at])
    return list(all_words[:MAX_WORDS])


def of_conversation(id_: int) -> str:
    """Return the mark of a conversation."""
    return f"c{id_}"


def of_kind(kind: str) -> str:
    """Return the mark of an event type or of a family of types."""
    return f"k{_digest(kind)}"


def of_name(name: str) -> str:
    """Return the mark of a sender, without case."""
    return f"s{_digest(name)}"


def _marks_of(senders: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(of_name, searchable_text.names_of(senders)))


_known_marks_of = lru_cache(1024)(_marks_of)  # a conversation's events have few senders


@lru_cache(4096)
def _digest(text: str) -> str:
    return blake2b(text.strip().casefold().encode("utf-8", "replace"), digest_size=8).hexdigest()


def query_terms(query: Query, conversation: int | None, spread: Mapping[Term, Sequence[str]]) -> Wanted:
    """Translate a query into the index's terms; `spread` maps each prefix to its words."""
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
    """Return at most `most` words of the index with this prefix."""
    end = prefix[:-1] + chr(min(ord(prefix[-1]) + 1, 0x10FFFF))
    if 0xD800 <= ord(end[-1]) <= 0xDFFF:
        end = prefix[:-1] + "\ue000"
    cursor.execute(
        f"SELECT DISTINCT word FROM {WORDS_TABLE} WHERE word>=%s AND word<%s ORDER BY word LIMIT %s",
        [prefix, end, most],
    )
    return [word for (word,) in cursor.fetchall()]
