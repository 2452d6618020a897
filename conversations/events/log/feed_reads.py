"""Read what happens in all conversations, in the order of its rows: for the feed of events alone.

On PostgreSQL rows are committed out of their order. So a row counts as settled when every transaction has ended that
was at work when it was first seen: those may have earlier rows. On SQLite, with one writer at a time, every row is.
"""

import time
from typing import Any, NamedTuple

from django.db import connection

from conversations.events.log import bounded_reads
from conversations.events.log.records import Stored

PAGE = 500  # events of one read
LOOK_EVERY = 0.01  # seconds

_NAMES = "e.id AS row,c.key AS key,e.seq,e.kind,e.at,e.principal,e.run,e.turn,e.event_id,e.body"
_COLUMNS = "row,key,seq,kind,at,principal,run,turn,event_id,body"
_FROM = "FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
_NAMED = (
    " AND EXISTS (SELECT 1 FROM conversations_participant p WHERE p.conversation_id=c.id AND p.is_named"
    " AND p.name IN (%s,%s))"
)


class Horizon(NamedTuple):
    """The newest row that was seen, and the first transaction that had not begun then."""

    row: int
    transaction: int


class FeedEvent(NamedTuple):
    """An event and its row, which is its place in the feed."""

    row: int
    event: Stored


def settled_row(patience_s: float) -> int | None:
    """Return the newest row, once every transaction has ended that was at work when it was seen; None when that takes
    longer than `patience_s`."""
    horizon, deadline = _horizon(), time.monotonic() + patience_s
    while not _is_settled(horizon):
        if time.monotonic() > deadline:
            return None
        time.sleep(LOOK_EVERY)
    return horizon.row


def between(after: int, upto: int, *, conversation: str = "", names: tuple[str, ...] = ()) -> list[FeedEvent]:
    """Read events by their rows, in order; fewer once they pass 4 MiB, none only at the end. `conversation`: of that
    alone; `names`: of conversations in which the agent of these two names was named so that it may view them."""
    where, values = " WHERE e.id>%s AND e.id<=%s AND NOT c.is_staged", [after, upto, conversation, *names]
    where += (" AND c.key=%s" if conversation else " AND %s=''") + (_NAMED if names else "")
    source = f"FROM (SELECT {_NAMES} {_FROM}{where}) AS told"
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, _COLUMNS, source, values, order="row", limit=PAGE)
    return [FeedEvent(row[0], Stored(*row[1:])) for row in rows]


def _horizon() -> Horizon:
    snapshot = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint" if _is_postgresql() else "0"
    return Horizon(*_row(f"SELECT COALESCE(MAX(id),0),{snapshot} FROM conversations_event"))


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
