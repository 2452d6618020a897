"""The open calls that a batch may end, and how often its call ids were used. Read under lock by `append` alone.

A result ends the oldest open call of its kind, so as many of the oldest are read as the batch has results of that kind:
each look-up is of a few entries of one index, however many calls are open and however often an id was used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db.backends.utils import CursorWrapper

from conversations.events.log.records import NewEvent
from conversations.events.log.sql import BLOCK, CALL, marks
from conversations.events.log.tool_calls import BROKEN_OFF
from conversations.events.projections import FoldedCall, starts_call
from conversations.events.projections.open_calls import OpenCalls

_Kind = tuple[str, str]  # call id or name, and the run; empty for foreign calls

_OF_CALL = ",".join(f"t.{column}" for column in CALL.split(","))
_OF_KIND = (
    "{t}.conversation_id=%s AND {t}.{column}=w.value AND COALESCE({t}.run,'')=w.run"
    " AND {t}.finished_seq IS NULL AND {t}.call_id IS {null}"
)
# PostgreSQL may join in any order, without statistics in a bad one: a lateral query with a limit leaves it no choice.
# SQLite has no such query; with statistics it may take an index of all calls, ended ones too, so it is told which.
_OLDEST = {
    "postgresql": "SELECT {columns} FROM w CROSS JOIN LATERAL"
    " (SELECT s.* FROM conversations_toolcall AS s WHERE {of_s} ORDER BY s.called_seq LIMIT {most}) AS t",
    "sqlite": "SELECT {columns} FROM w CROSS JOIN conversations_toolcall AS t INDEXED BY {index} ON {of_t}"
    " WHERE t.called_seq<=COALESCE((SELECT s.called_seq FROM conversations_toolcall AS s INDEXED BY {index}"
    " WHERE {of_s} ORDER BY s.called_seq LIMIT 1 OFFSET {most}-1),9223372036854775807)",
}
_INDEX = {"call_id": "call_open_by_id", "name": "call_open_by_name"}
_NULL = {"call_id": "NOT NULL", "name": "NULL"}
_LAST_USE = """SELECT w.run,w.value,(SELECT t.nth FROM conversations_toolcall AS t WHERE t.call_id=w.value
AND t.conversation_id=%s AND COALESCE(t.run,'')=w.run ORDER BY t.nth DESC LIMIT 1) FROM w"""


def read(cursor: CursorWrapper, conversation: int, events: Sequence[NewEvent]) -> OpenCalls:
    """Read the stored open calls that these events of a conversation may change, the oldest first."""
    results = [e for e in events if _is_result(e)]
    by_id = Counter((e.payload.tool_call_id, e.run or "") for e in results if e.payload.tool_call_id is not None)
    by_name = Counter(((e.payload.name or "")[:200], e.run or "") for e in results if e.payload.tool_call_id is None)
    call_rows = [*_oldest(cursor, conversation, "call_id", by_id), *_oldest(cursor, conversation, "name", by_name)]
    ended_runs = {e.run for e in events if e.run is not None and e.kind in BROKEN_OFF}
    call_ids = {e.payload.tool_call for e in events if e.run is not None and e.payload.tool_call}
    call_rows += _all(cursor, conversation, "id", call_ids | _asked_about(cursor, ended_runs))
    call_rows += _all(cursor, conversation, "run", ended_runs)
    rows = {row[0]: FoldedCall(*row) for row in call_rows}
    return OpenCalls(sorted(rows.values(), key=lambda row: row.called_seq))


def uses(cursor: CursorWrapper, conversation: int, events: Sequence[NewEvent]) -> Iterator[tuple[str | None, str, int]]:
    """Read how often the call ids of these events were used: (run, call id, nth)."""
    steps = (e for e in events if e.kind not in BROKEN_OFF and e.payload.tool_call_id)
    for block in _blocks({(e.payload.tool_call_id or "", e.run or "") for e in steps}):
        cursor.execute(_with(block, _LAST_USE), [*_flat(block), conversation])
        yield from ((run or None, call_id, nth) for run, call_id, nth in cursor.fetchall() if nth is not None)


def _is_result(event: NewEvent) -> bool:
    """Return whether an event ends a call that it does not name by an id of ours."""
    if event.kind != "tool_step" or starts_call(event.payload):
        return False
    return event.run is None or not event.payload.tool_call


def _oldest(cursor: CursorWrapper, conversation: int, column: str, counts: Counter[_Kind]) -> Iterator[tuple[Any, ...]]:
    """Read of each kind as many of the oldest as are wanted, or up to twice as many: a few statements for all."""
    by_count: dict[int, list[_Kind]] = {}
    for kind, count in counts.items():
        by_count.setdefault(1 << (count - 1).bit_length(), []).append(kind)
    for most, kinds in by_count.items():
        sql = _sql(cursor.db.vendor, column, most)
        for block in _blocks(kinds):
            cursor.execute(_with(block, sql), [*_flat(block), *[conversation] * sql.count("%s")])
            yield from cursor.fetchall()


def _sql(vendor: str, column: str, most: int) -> str:
    of_s, of_t = (_OF_KIND.format(t=t, column=column, null=_NULL[column]) for t in "st")
    return _OLDEST[vendor].format(columns=_OF_CALL, index=_INDEX[column], of_s=of_s, of_t=of_t, most=most)


def _all(
    cursor: CursorWrapper, conversation: int, column: str, values: Collection[str | None]
) -> Iterator[tuple[Any, ...]]:
    for block in _blocks(values):
        cursor.execute(
            f"SELECT {CALL} FROM conversations_toolcall"
            f" WHERE {column} IN ({marks(len(block))}) AND conversation_id=%s AND finished_seq IS NULL",
            [*block, conversation],
        )
        yield from cursor.fetchall()


def _asked_about(cursor: CursorWrapper, runs: Collection[str]) -> set[str]:
    """Return the calls that these runs wait to have decided: one of an agent elsewhere is no call of its run."""
    calls: set[str] = set()
    for block in _blocks(runs):
        cursor.execute(
            f"SELECT tool_call FROM conversations_approval WHERE run IN ({marks(len(block))}) AND status='pending'",
            block,
        )
        calls |= {call for (call,) in cursor.fetchall()}
    return calls


def _blocks(values: Collection[Any]) -> Iterator[list[Any]]:
    rest = iter(values)
    while block := list(islice(rest, BLOCK)):
        yield block


def _with(kinds: Sequence[_Kind], sql: str) -> str:
    return f"WITH w(value,run) AS (VALUES {','.join(['(%s,%s)'] * len(kinds))}) {sql}"


def _flat(kinds: Sequence[_Kind]) -> list[str]:
    return [text for kind in kinds for text in kind]
