"""Read the events of all conversations in the order of their rows. Used by the event feed and the telemetry
exporter.

PostgreSQL commits rows out of order. A row is therefore settled once every transaction that was active when it was
first seen has ended, because those may still add earlier rows. On SQLite, with one writer at a time, every row is
settled.
"""

import time
from typing import Any, NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.principals import IMPORTED
from conversations.events.log import bounded_reads
from conversations.events.log.records import Stored

PAGE = 500  # events of one read
POLL_EVERY_S = 0.01

_NAMES = "e.id AS row,c.key AS key,e.seq,e.kind,e.at,e.principal,e.run,e.turn,e.event_id,e.body"
_COLUMNS = "row,key,seq,kind,at,principal,run,turn,event_id,body"
_FROM = "FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
_OF_CONVERSATION = "e.conversation_id=(SELECT id FROM conversations_conversation WHERE key=%s)"
_NAMED = (
    " AND EXISTS (SELECT 1 FROM conversations_participant p WHERE p.conversation_id=c.id AND p.is_named"
    " AND p.name IN (%s,%s))"
)


class Horizon(NamedTuple):
    """The newest row there is, the newest there ever was, and the first transaction that had not started at that
    time. A discarded import takes its rows away, and no number is given twice: only a restored database has less of
    the latter."""

    row: int
    highest_given: int
    transaction: int


class FeedEvent(NamedTuple):
    """An event and its row id, which is its position in the feed."""

    row: int
    event: Stored


class FeedEnd(NamedTuple):
    """The newest row that is known to be settled, None if there is none yet; the newest row; and the newest that there
    ever was."""

    settled: int | None
    newest: int
    highest_given: int


class SettledRows:
    """Follows which rows are settled. A look that waited in vain is continued by the next one, so transactions that
    overlap for ever delay a row by the longest of those that it met, and no more."""

    def __init__(self) -> None:
        self._waiting: Horizon | None = None
        self._row: int | None = None
        self._newest_given = 0

    def look(self, patience_s: float) -> FeedEnd:
        """Return how far rows are settled; the newest row, unless that takes longer than `patience_s` seconds."""
        newest, deadline = _horizon(), time.monotonic() + patience_s
        waiting, row = self._waiting or newest, self._row
        if newest.highest_given < self._newest_given or newest.transaction < waiting.transaction:
            waiting, row = newest, None  # the database was restored
        self._newest_given = newest.highest_given
        while True:
            if _is_settled(waiting):
                row = waiting.row
                if row >= newest.row:
                    break
                waiting = newest
            elif time.monotonic() > deadline:
                break
            else:
                time.sleep(POLL_EVERY_S)
        self._waiting, self._row = None if row == newest.row else waiting, row
        return FeedEnd(row, newest.row, newest.highest_given)


def between(after: int, upto: int, *, conversation: str = "", names: tuple[str, ...] = ()) -> list[FeedEvent]:
    """Read events by their row ids, in order; fewer once they exceed 4 MiB, none only at the end. `conversation` limits
    them to one conversation, and includes what was imported there; `names` to conversations in which an agent of these
    two names takes part, and which it may therefore view."""
    where, values = " WHERE e.id>%s AND e.id<=%s AND NOT c.is_staged", list[Any]([after, upto])
    with connection.cursor() as cursor:
        if conversation:
            where += f" AND {_OF_CONVERSATION} AND e.seq>%s"
            values += [conversation, _seq_at(cursor, conversation, after)]
        else:
            where += f" AND e.principal NOT LIKE '{IMPORTED}%%'"
        source = f"FROM (SELECT {_NAMES} {_FROM}{where}{_NAMED if names else ''}) AS told"
        order = "seq" if conversation else "row"  # of one conversation both ascend together, and seq needs no sort
        rows = bounded_reads.rows(cursor, _COLUMNS, source, [*values, *names], order=order, limit=PAGE)
    return [FeedEvent(row[0], Stored(*row[1:])) for row in rows]


def newest_given() -> int:
    """Return the newest row id that was ever given; no discarded import and no crash takes it back.

    PostgreSQL's sequence may be ahead of what was committed (a crash takes ids that were given back), never behind.
    """
    with connection.cursor() as cursor:
        if _is_postgresql():
            cursor.execute("SELECT last_value FROM conversations_event_id_seq WHERE is_called")
        else:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='conversations_event'")
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _seq_at(cursor: CursorWrapper, conversation: str, row: int) -> int:
    """Return the seq of a conversation's last event up to a row; 0 if there is none. At once for a row of its own, as
    after a page, and for one near its end."""
    for condition in ("=%s", "<=%s ORDER BY e.seq DESC LIMIT 1") if row else ():
        sql = f"SELECT e.seq FROM conversations_event e WHERE {_OF_CONVERSATION} AND e.id{condition}"
        cursor.execute(sql, [conversation, row])
        if (place := cursor.fetchone()) is not None:
            return int(place[0])
    return 0


def _horizon() -> Horizon:
    snapshot = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint" if _is_postgresql() else "0"
    row, transaction = _row(f"SELECT COALESCE(MAX(id),0),{snapshot} FROM conversations_event")
    return Horizon(row, max(row, newest_given()), transaction)


def _is_settled(horizon: Horizon) -> bool:
    if not _is_postgresql():
        return True
    (oldest,) = _row("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
    return bool(oldest >= horizon.transaction)


def _is_postgresql() -> bool:
    return connection.vendor == "postgresql"


def _row(sql: str) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row: tuple[Any, ...] = cursor.fetchone()
    return row
