"""Bring the index up to date with the record, a few events at a time. Called by the indexer and by `reindex`.

`conversation.indexed_seq` is the last indexed event: it moves in the transaction that stores the rows, and only from
the value that was read.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.failpoints import failpoint
from conversations.core.write_transaction import write_transaction
from conversations.events.log import bounded_reads
from conversations.events.log.sql import marks
from conversations.models import Meta
from conversations.search import recorded_times, title_index
from conversations.search.index_rows import IndexRow, Wanted
from conversations.search.index_tables import Tables, of_conversation, of_this, row_of, version

logger = logging.getLogger(__name__)

NAME = "search"
MAX_CONVERSATIONS = 100  # looked at in one round
MAX_BODIES = 1 << 20  # bytes of bodies in one round, or one event
COUNTED = 1000  # conversations whose lag is counted
MAX_COUNTED = 10_000  # events
PURGED = 500  # pages of the index written in one step

_BEHIND = """SELECT id,indexed_seq,head_seq FROM conversations_conversation
WHERE indexed_seq<head_seq AND id>%s AND NOT is_staged"""
_PENDING = f"{_BEHIND} ORDER BY id LIMIT %s"
# With an offset PostgreSQL looks into each conversation; without it may join all of them with the whole record. SQLite
# uses the partial index only where its condition is written as the index has it.
_PENDING_WORDS = f"""{_BEHIND} AND EXISTS(SELECT 1 FROM conversations_event e WHERE NOT e.kind='token'
AND e.conversation_id=conversations_conversation.id AND e.seq>indexed_seq LIMIT 1 OFFSET 0) ORDER BY id LIMIT %s"""
_COLUMNS = "id,seq,at,kind,principal,erased_by,body"
_EVENTS = "FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s AND NOT kind='token'"
_LAG = """SELECT COUNT(*) FROM (SELECT 1 FROM (SELECT id,indexed_seq FROM conversations_conversation
WHERE indexed_seq<head_seq AND NOT is_staged LIMIT %s) AS behind JOIN conversations_event e
ON e.conversation_id=behind.id AND e.seq>behind.indexed_seq AND NOT e.kind='token' LIMIT %s) AS events"""
_ADVANCE = "UPDATE conversations_conversation SET indexed_seq=%s WHERE id=%s AND indexed_seq=%s AND NOT is_staged"


class IndexSuperseded(Exception):
    """Another process changed what was about to be indexed; nothing was stored."""


class IndexStep(NamedTuple):
    """A conversation's next events to index: from this seq to that one."""

    conversation: int
    before: int
    after: int


class Round(NamedTuple):
    """What is stored together. `last`: the conversation after which the next round begins, 0 after all of them;
    `moments`: when each event was recorded, by id; `at_head`: conversations that are complete afterwards; `erased`:
    which event erased each event that was erased by then, by id."""

    steps: Sequence[IndexStep]
    rows: Sequence[IndexRow]
    last: int
    moments: Mapping[int, int]
    at_head: Sequence[int]
    erased: Mapping[int, str]

    def bare(self) -> "Round":
        """Return the round without words: its events are found only by conversation and type."""
        return self._replace(rows=[IndexRow(row.id, (), frozenset(), row.marks) for row in self.rows])


class Lag(NamedTuple):
    """How many events, except tokens, are recorded and not indexed yet. `is_more`: at least so many."""

    events: int
    is_more: bool = False


def read(after: int, most: int, *, passes_tokens: bool = True) -> Round:
    """Read up to `most` events of conversations with greater ids than `after`. Takes no lock.

    `passes_tokens`: advance conversations that have only new tokens as well. While an answer streams, that would be a
    write for nothing.
    """
    steps: list[IndexStep] = []
    rows: list[IndexRow] = []
    moments: dict[int, int] = {}
    at_head: list[int] = []
    erased: dict[int, str] = {}
    size = last = 0
    with connection.cursor() as cursor:
        cursor.execute(_PENDING if passes_tokens else _PENDING_WORDS, [after, MAX_CONVERSATIONS])
        pending = cursor.fetchall()
        for conversation, indexed, head in pending:
            bounds, before = [conversation, indexed, head], len(rows)
            events, is_whole = _events(cursor, bounds, most - before, max(0, MAX_BODIES - size), is_first=not rows)
            for id_, _, at, kind, principal, erased_by, body in events:
                moments[id_] = at
                erased |= {id_: erased_by} if erased_by is not None else {}
                rows.append(_row(id_, conversation, kind, principal, body))
            size += bounded_reads.size(events)
            reached = head if is_whole else events[-1][1] if events else indexed
            if reached > indexed and (passes_tokens or len(rows) > before):
                steps.append(IndexStep(conversation, indexed, reached))
                at_head += [conversation] if reached == head else []
            if reached < head:
                return Round(steps, rows, conversation, moments, at_head, erased)
            last = conversation
    return Round(steps, rows, last if len(pending) == MAX_CONVERSATIONS else 0, moments, at_head, erased)


def _events(
    cursor: CursorWrapper, bounds: Sequence[int], most: int, room: int, *, is_first: bool
) -> tuple[list[bounded_reads.Row], bool]:
    """Read the next events of a conversation that fit into `room` characters, but at least the first of a round; return
    whether they reach its head."""
    rows = bounded_reads.rows(cursor, _COLUMNS, _EVENTS, bounds, order="seq", limit=most, most=room)
    is_cut = bounded_reads.size(rows) > room
    if is_cut and not (is_first and len(rows) == 1):
        rows.pop()
    return rows, not is_cut and len(rows) < most


def _row(id_: int, conversation: int, kind: str, principal: str, body: str) -> IndexRow:
    """Return the index row of an event. An event that cannot be read does not stop the others: it is found by
    conversation alone."""
    try:
        return row_of(id_, conversation, kind, principal, body)
    except Exception:
        logger.exception("event %s cannot be searched", id_)
        return IndexRow(id_, (), frozenset(), frozenset({of_conversation(conversation)}))


def store(batch: Round) -> None:
    """Store a round in one short transaction. Raises IndexSuperseded, with nothing stored, if it is out of date."""
    if not batch.steps:
        return
    tables = of_this()
    with write_transaction(), connection.cursor() as cursor:
        if batch.rows:
            tables.insert(cursor, sorted(batch.rows, key=lambda row: row.id))
            recorded_times.note(cursor, batch.moments)
        for step in batch.steps:  # in id order, and last: their rows are what `log.append` waits for
            cursor.execute(_ADVANCE, [step.after, step.conversation, step.before])
            if cursor.rowcount != 1:
                raise IndexSuperseded
        caption_again(batch.at_head)
        if _erased(cursor, [row.id for row in batch.rows]) != batch.erased:
            raise IndexSuperseded
        failpoint("before-index-commit")


def lag() -> Lag:
    """Count what is recorded and not indexed: up to 10,000 events of at most 1,000 conversations."""
    with connection.cursor() as cursor:
        cursor.execute(_LAG, [COUNTED, MAX_COUNTED])
        (events,) = cursor.fetchone()
    return Lag(int(events), events >= MAX_COUNTED)


def forget(conversation: int, seqs: Sequence[int] | None = None) -> None:
    """Delete these events of a conversation (or all) from the index, and words that occur nowhere else.

    Call it inside the `write_transaction()` that changes or deletes them, before the change: SQLite needs their old
    text. Events not indexed yet are left to the indexer, which stores nothing of an erased event.
    """
    begin()
    tables = of_this()
    with write_transaction(), connection.cursor() as cursor:
        for page in _indexed(cursor, conversation, seqs):
            if rows := _there(cursor, tables, conversation, page):
                tables.delete(cursor, rows)
                tables.forget_words(cursor, {(word, row.id >> tables.block) for row in rows for word in row.words})
        title_index.remove(cursor, [conversation])


def index_again(conversation: int, seqs: Sequence[int]) -> None:
    """Index what these events still contain, after `forget` and their change, in the same transaction."""
    with write_transaction(), connection.cursor() as cursor:
        for page in _indexed(cursor, conversation, seqs):
            of_this().insert(cursor, sorted(page, key=attrgetter("id")))


def _indexed(cursor: CursorWrapper, conversation: int, seqs: Sequence[int] | None) -> Iterator[list[IndexRow]]:
    """Yield the index rows of these events of a conversation (or all) that the indexer has passed, page by page."""
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND NOT kind='token' AND seq<=(SELECT indexed_seq FROM"
        " conversations_conversation WHERE id=%s)"
    )
    values = [conversation, conversation]
    if seqs is not None:
        source, values = f"{source} AND seq IN ({marks(len(seqs))})", [*values, *seqs]
    for page in bounded_reads.pages(cursor, "seq,id,kind,principal,body", source, values, most=MAX_BODIES):
        yield [_row(id_, conversation, *fields) for _, id_, *fields in page]


def caption_again(conversations: Sequence[int]) -> None:
    """Index the current captions of conversations whose text was redacted; the caller holds their rows."""
    if not conversations:
        return
    lock = " FOR UPDATE" if connection.vendor == "postgresql" else ""
    with write_transaction(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT id,key,title,last_line FROM conversations_conversation"
            f" WHERE id IN ({marks(len(conversations))}) ORDER BY id{lock}",
            conversations,
        )
        title_index.store(cursor, {id_: title_index.indexed_text(*caption) for id_, *caption in cursor.fetchall()})


def begin() -> None:
    """Start a new index if the present one was built by other rules."""
    if Meta.objects.filter(name=NAME).values_list("value", flat=True).first() != version():
        with write_transaction():
            empty()
            Meta.objects.update_or_create(name=NAME, defaults={"value": version()})


def empty() -> None:
    """Delete the whole index, so that it is filled again from the events."""
    with write_transaction(), connection.cursor() as cursor:
        of_this().empty(cursor)
        recorded_times.empty(cursor)
        title_index.clear(cursor)
        cursor.execute("UPDATE conversations_conversation SET indexed_seq=0 WHERE indexed_seq>0")


def purge() -> None:
    """Rewrite SQLite's index without deleted words, in short steps: its segments keep them until they are merged. On
    PostgreSQL the next VACUUM removes them."""
    if connection.vendor != "sqlite":
        return
    for table in ("conversations_search", title_index.TABLE):
        pages, before = -PURGED, -2  # a negative number has all segments merged into one
        with connection.cursor() as cursor:
            while (changes := _total_changes(cursor)) - before >= 2:
                before = changes
                with write_transaction():
                    cursor.execute(f"INSERT INTO {table}({table},rank) VALUES('merge',%s)", [pages])
                pages = PURGED


def _total_changes(cursor: CursorWrapper) -> int:
    cursor.execute("SELECT total_changes()")
    return int(cursor.fetchone()[0])


def _there(cursor: CursorWrapper, tables: Tables, conversation: int, rows: Sequence[IndexRow]) -> list[IndexRow]:
    """Return the rows that are in the index: deleting one that is not would corrupt FTS5."""
    if not rows:
        return []
    ids = [row.id for row in rows]
    of_it = Wanted((), (), (of_conversation(conversation),))
    indexed_ids, _ = tables.find(cursor, of_it, min(ids), max(ids) + 1, len(ids) + MAX_BODIES, math.inf)
    indexed = set(indexed_ids)
    return [row for row in rows if row.id in indexed]


def _erased(cursor: CursorWrapper, ids: Sequence[int]) -> dict[int, str]:
    """Return which events are erased, and by which event. The caller holds the conversation's row, which an eraser
    needs too."""
    if not ids:
        return {}
    cursor.execute(
        f"SELECT id,erased_by FROM conversations_event WHERE erased_by IS NOT NULL AND id IN ({marks(len(ids))})", ids
    )
    return dict(cursor.fetchall())
