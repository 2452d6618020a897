"""Find events, newest first, a page at a time by keyset. Never an OFFSET, never longer than a moment."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.errors import Invalid
from conversations.log.calls import COLUMNS
from conversations.log.events import Stored
from conversations.log.rows import marks
from conversations.search.query import Query, Term
from conversations.search.tables import beginning_with, of_this, wanted

MOST_SPREAD = 500  # words that one prefix may stand for
MOST_BODIES = 16 << 20  # characters of the bodies of one answer, or one event more
PATIENCE = 0.25  # seconds: then it says how far it looked
END = (1 << 63) - 1
SLACK = 60_000_000  # µs: ids and moments agree that far (transactions commit side by side)


class Hit(NamedTuple):
    """An event that was found."""

    id: int
    title: str
    event: Stored


class Found(NamedTuple):
    """Hits, newest first. `cursor`: where older ones begin, None where all was looked at. `looked_to`: µs UTC, how far
    back it looked when it gave up looking before it had a full page."""

    hits: Sequence[Hit]
    cursor: str | None
    looked_to: int | None = None


def find(query: Query, *, before: str = "", limit: int = 25) -> Found:
    """Answer the newest hits, older than the cursor `before`. Raises Invalid for a cursor that is none of ours, and for
    a prefix that more than 500 words begin with."""
    high = _read_cursor(before)
    if query.is_empty:
        return Found((), None)
    deadline = time.monotonic() + PATIENCE
    with connection.cursor() as cursor:
        conversation = _conversation(cursor, query.conversation)
        words = spread(cursor, query)
        if conversation == 0 or not all(words.values()):
            return Found((), None)
        asked = wanted(query, conversation, words)
        low, high = _bounds(cursor, query, high)
        hits: list[Hit] = []
        while len(hits) <= limit and low < high:
            ids, high = of_this().find(cursor, asked, low, high, limit + 1 - len(hits), deadline)
            some, is_whole = _read(cursor, ids, query)
            hits += some
            if not is_whole:
                return Found(hits[:limit], str(hits[:limit][-1].id))
            if time.monotonic() > deadline:
                break
        if len(hits) > limit:
            return Found(hits[:limit], str(hits[limit - 1].id))
        return Found(hits, str(high), _moment_of(cursor, high)) if low < high else Found(hits, None)


def _read_cursor(before: str) -> int:
    if not before:
        return END
    if not (before.isascii() and before.isdecimal() and len(before) < 19):
        raise Invalid("expected a cursor from an earlier answer", field="before")
    return int(before)


def _conversation(cursor: CursorWrapper, key: str) -> int | None:
    """Answer its row's id; 0 for none of this name, None where none was named."""
    if not key:
        return None
    cursor.execute("SELECT id FROM conversations_conversation WHERE key=%s AND NOT is_staged", [key])
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def spread(cursor: CursorWrapper, query: Query) -> dict[Term, list[str]]:
    """Answer the words that each prefix of a query stands for. Raises Invalid where those are more than 500."""
    return {term: _words(cursor, term) for term in query.terms if term.is_prefix}


def _words(cursor: CursorWrapper, term: Term) -> list[str]:
    prefix = term.words[-1]
    found = beginning_with(cursor, prefix, MOST_SPREAD + 1)
    if len(found) > MOST_SPREAD:
        raise Invalid(f"more than {MOST_SPREAD} words begin with {prefix!r}: add a letter", field="q")
    return found


def _bounds(cursor: CursorWrapper, query: Query, high: int) -> tuple[int, int]:
    """Turn moments into ids, with slack; `_read` is exact."""
    low = _first_at(cursor, query.since - SLACK) if query.since is not None else 1
    if query.until is not None:
        high = min(high, _first_at(cursor, query.until + SLACK))
    return low, high


def _first_at(cursor: CursorWrapper, moment: int) -> int:
    """Answer the first id at or after a moment: halving, some 20 rows by their primary key."""
    cursor.execute("SELECT COALESCE(MIN(id),1),COALESCE(MAX(id),0) FROM conversations_event")
    low, last = cursor.fetchone()
    high = last + 1
    while low < high:
        middle = (low + high) // 2
        cursor.execute("SELECT id,at FROM conversations_event WHERE id>=%s ORDER BY id LIMIT 1", [middle])
        id_, at = cursor.fetchone()
        if at < moment:
            low = id_ + 1
        else:
            high = middle
    return int(low)


def _read(cursor: CursorWrapper, ids: Sequence[int], query: Query) -> tuple[list[Hit], bool]:
    """Read the events, those that are to be seen and of the time asked for, in the order of `ids`; tell whether all of
    them, or no more than pass `MOST_BODIES`."""
    if not ids:
        return [], True
    told = ",".join(f"e.{name}" for name in COLUMNS.split(","))
    cursor.execute(
        f"SELECT e.id,c.title,c.key,{told} FROM conversations_event e JOIN conversations_conversation c"
        f" ON c.id=e.conversation_id WHERE e.id IN ({marks(len(ids))}) AND NOT c.is_staged AND e.erased_by IS NULL"
        " AND e.at>=%s AND e.at<%s ORDER BY e.id DESC",
        [*ids, query.since or 0, END if query.until is None else query.until],
    )
    hits, size = [], 0
    for id_, title, *event in cursor:
        hits.append(Hit(id_, title, Stored(*event)))
        size += len(hits[-1].event.body)
        if size > MOST_BODIES:
            return hits, False
    return hits, True


def _moment_of(cursor: CursorWrapper, id_: int) -> int | None:
    cursor.execute("SELECT at FROM conversations_event WHERE id>=%s ORDER BY id LIMIT 1", [id_])
    row = cursor.fetchone()
    return int(row[0]) if row else None
