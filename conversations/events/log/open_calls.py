"""Read the open calls that a batch may end, and how often its call ids were used. Called only by `append`, under lock.

A result ends the oldest open call of its kind, so only as many of the oldest are read as the batch has results of that
kind. Each query reads a few entries of one index, however many calls are open and however often an id was used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

from conversations.core.bounded_groups import blocks
from conversations.events.log.call_events import BROKEN_OFF
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import CALL, marks
from conversations.events.log.sql_blocks import BLOCK
from conversations.events.projections import FoldedCall, is_call_start
from conversations.events.projections.open_calls import OpenCalls

Steps = Mapping[int, Sequence[NewEvent]]  # by conversation
_Kind = tuple[int, str, str]  # conversation, call id or name, and the run; empty for those of external agents
_Named = tuple[int, str]  # conversation, and our id of a call or of a run

_OF_CALL = ",".join(f"t.{column}" for column in CALL.split(","))
_OF_KIND = (
    "{t}.conversation_id=w.conversation AND {t}.{column}=w.value AND COALESCE({t}.run,'')=w.run"
    " AND {t}.finished_seq IS NULL AND {t}.call_id IS {null}"
)
# PostgreSQL may join in any order, without statistics in a bad one: a lateral query with a limit leaves it no choice.
# SQLite has no such query; with statistics it may take an index of all calls, ended ones too, so the query names one.
_OLDEST = {
    "postgresql": "SELECT {columns} FROM w CROSS JOIN LATERAL"
    " (SELECT s.* FROM conversations_toolcall AS s WHERE {of_s} ORDER BY s.called_seq LIMIT {most}) AS t",
    "sqlite": "SELECT {columns} FROM w CROSS JOIN conversations_toolcall AS t INDEXED BY {index} ON {of_t}"
    " WHERE t.called_seq<=COALESCE((SELECT s.called_seq FROM conversations_toolcall AS s INDEXED BY {index}"
    " WHERE {of_s} ORDER BY s.called_seq LIMIT 1 OFFSET {most}-1),9223372036854775807)",
}
_INDEX = {"call_id": "call_open_by_id", "name": "call_open_by_name"}
_NULL = {"call_id": "NOT NULL", "name": "NULL"}
_LAST_USE = """SELECT w.conversation,w.run,w.value,(SELECT t.nth FROM conversations_toolcall AS t
WHERE t.call_id=w.value AND t.conversation_id=w.conversation AND COALESCE(t.run,'')=w.run
ORDER BY t.nth DESC LIMIT 1) FROM w"""


def read(cursor: CursorWrapper, steps: Steps, used: Container[tuple[int, str | None, str]]) -> dict[int, OpenCalls]:
    """Read the stored open calls that these events may change, oldest first. `used`: the call ids that were used before
    (`uses`); other ids have no open calls."""
    by_id, by_name = Counter[_Kind](), Counter[_Kind]()
    for conversation, events in steps.items():
        for e in filter(_is_result, events):
            call_id = e.payload.tool_call_id
            if call_id is None:
                by_name[conversation, (e.payload.name or "")[:200], e.run or ""] += 1
            elif (conversation, e.run, call_id) in used:
                by_id[conversation, call_id, e.run or ""] += 1
    rows = {row[0]: row for row in (*_oldest(cursor, "call_id", by_id), *_oldest(cursor, "name", by_name))}
    rows |= {row[0]: row for row in _of_runs(cursor, steps)}
    open_calls = {conversation: OpenCalls() for conversation in steps}
    for call in sorted((FoldedCall(*row) for row in rows.values()), key=lambda call: call.called_seq):
        open_calls[call.conversation_id].add(call)
    return open_calls


def uses(cursor: CursorWrapper, steps: Steps) -> dict[tuple[int, str | None, str], int]:
    """Read how often the call ids of these events were used, by conversation, run and call id; new ids are left out."""
    kinds = {
        (conversation, e.payload.tool_call_id, e.run or "")
        for conversation, events in steps.items()
        for e in events
        if e.payload.tool_call_id and e.kind not in BROKEN_OFF
    }
    use_counts: dict[tuple[int, str | None, str], int] = {}
    for block in blocks(list(kinds), BLOCK):
        cursor.execute(_with(block, _LAST_USE), _flat(block))
        use_counts |= {
            (conversation, run or None, id_): nth for conversation, run, id_, nth in cursor.fetchall() if nth
        }
    return use_counts


def _of_runs(cursor: CursorWrapper, steps: Steps) -> Iterator[tuple[Any, ...]]:
    """Read the open calls that events of our own runs name, or end together with their run: in a few statements for
    all conversations, each of which gets only its own."""
    of_runs = [(conversation, e) for conversation, events in steps.items() for e in events if e.run is not None]
    ended_runs = {(conversation, e.run or "") for conversation, e in of_runs if e.kind in BROKEN_OFF}
    call_ids = {(conversation, e.payload.tool_call) for conversation, e in of_runs if e.payload.tool_call}
    yield from _all(cursor, "id", call_ids | _asked_about(cursor, ended_runs))
    yield from _all(cursor, "run", ended_runs)


def _is_result(event: NewEvent) -> bool:
    """Return whether an event ends a call without naming it by one of our ids."""
    if event.kind != "tool_step" or is_call_start(event.payload):
        return False
    return event.run is None or not event.payload.tool_call


def _oldest(cursor: CursorWrapper, column: str, counts: Counter[_Kind]) -> Iterator[tuple[Any, ...]]:
    """Read as many of the oldest calls of each kind as needed, or up to twice as many, in a few statements for all."""
    by_count: dict[int, list[_Kind]] = {}
    for kind, count in counts.items():
        by_count.setdefault(1 << (count - 1).bit_length(), []).append(kind)
    for most, kinds in by_count.items():
        for block in blocks(kinds, BLOCK):
            cursor.execute(_with(block, _sql(cursor.db.vendor, column, most)), _flat(block))
            yield from cursor.fetchall()


def _sql(vendor: str, column: str, most: int) -> str:
    of_s, of_t = (_OF_KIND.format(t=t, column=column, null=_NULL[column]) for t in "st")
    return _OLDEST[vendor].format(columns=_OF_CALL, index=_INDEX[column], of_s=of_s, of_t=of_t, most=most)


def _all(cursor: CursorWrapper, column: str, wanted: Collection[_Named]) -> Iterator[tuple[Any, ...]]:
    place = CALL.split(",").index(column)
    for block in blocks(list({value for _, value in wanted}), BLOCK):
        named = f"{column} IN ({marks(len(block))}) AND finished_seq IS NULL"
        cursor.execute(f"SELECT {CALL} FROM conversations_toolcall WHERE {named}", block)
        yield from (row for row in cursor.fetchall() if (row[1], row[place]) in wanted)


def _asked_about(cursor: CursorWrapper, runs: Collection[_Named]) -> set[_Named]:
    """Return the calls for which these runs await a decision; a call of an external agent belongs to no run of ours."""
    calls: set[_Named] = set()
    conversations: dict[str, list[int]] = {}
    for conversation, run in runs:
        conversations.setdefault(run, []).append(conversation)
    for block in blocks(list(conversations), BLOCK):
        cursor.execute(
            f"SELECT run,tool_call FROM conversations_approval WHERE run IN ({marks(len(block))}) AND status='pending'",
            block,
        )
        calls |= {(conversation, call) for run, call in cursor.fetchall() for conversation in conversations[run]}
    return calls


def _with(kinds: Sequence[_Kind], sql: str) -> str:
    return f"WITH w(conversation,value,run) AS (VALUES {','.join(['(%s,%s,%s)'] * len(kinds))}) {sql}"


def _flat(kinds: Sequence[_Kind]) -> list[Any]:
    return [value for kind in kinds for value in kind]
