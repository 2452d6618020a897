"""Read and correct the rows that a fold owns, table by table. Called by `refold` and `refold_check`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.backends.utils import CursorWrapper
from msgspec.structs import astuple

from conversations.core.bounded_groups import blocks
from conversations.events.log import sql
from conversations.events.log.sql import ANNOTATION, CLASSED_CALL, TURN, USAGE, call_values, marks
from conversations.events.log.sql_blocks import BLOCK
from conversations.events.log.sql_runs import APPROVAL, RESPONSE, RUN, approval_values
from conversations.events.projections import RowChanges

Key = str | int
Values = tuple[Any, ...]

OF_ONE_EVENT = ("turns", "annotations")  # tables whose rows each come from one event, and never change


@dataclass(frozen=True, slots=True)
class Table:
    """The table of one projection: its key columns, the columns that a fold writes, and the event that a row comes
    from."""

    name: str
    key: str
    columns: str
    seq: str = ""
    values: Callable[[Any], Values] = astuple  # of a folded row, in the order of `columns`


TABLES = {  # in the order in which they are corrected: what one tells, the next may depend on
    "calls": Table("conversations_toolcall", "id", CLASSED_CALL, "called_seq", call_values),
    "turns": Table("conversations_turn", "seq", TURN, "seq"),
    "annotations": Table("conversations_annotation", "seq", ANNOTATION, "seq"),
    "runs": Table("conversations_run", "id", RUN),
    "approvals": Table("conversations_approval", "id", APPROVAL, values=approval_values),
    "usages": Table("conversations_modelusage", "key", USAGE),
    "responses": Table("conversations_response", "id", RESPONSE),
    "participants": Table(
        "conversations_participant", "name", "conversation_id,name,kind,is_named,is_reachable,asked_at", values=tuple
    ),
}


def keys_of_page(cursor: CursorWrapper, table: str, conversation: int, after: int, upto: int) -> set[Key]:
    """Return the keys of a conversation's rows that come from events of a page."""
    return keys(cursor, table, conversation, " AND {seq}>%s AND {seq}<=%s", after, upto)


def outside(cursor: CursorWrapper, table: str, conversation: int, head: int) -> set[Key]:
    """Return the keys of rows that come from no event at all."""
    return keys(cursor, table, conversation, " AND ({seq}<1 OR {seq}>%s)", head)


def keys(cursor: CursorWrapper, table: str, conversation: int, condition: str = "", *values: int) -> set[Key]:
    """Return the keys of a conversation's rows: of all, or of those that a further condition names."""
    of = TABLES[table]
    where = f"conversation_id=%s{condition.format(seq=of.seq)}"
    cursor.execute(f"SELECT {of.key} FROM {of.name} WHERE {where}", [conversation, *values])
    return {key for (key,) in cursor.fetchall()}


def wrong(
    cursor: CursorWrapper, table: str, conversation: int, expected: dict[Key, Any], row_keys: Collection[Key]
) -> list[Key]:
    """Return the keys of rows that differ from the fold: `expected` by key; a row whose key is missing there must not
    exist."""
    of = TABLES[table]
    stored: dict[Key, Values] = {}
    key_index = of.columns.split(",").index(of.key)
    for part in blocks(list(row_keys), BLOCK):
        cursor.execute(f"SELECT {of.columns} FROM {of.name} WHERE {_are(of, len(part))}", [conversation, *part])
        stored |= {row[key_index]: tuple(row) for row in cursor.fetchall()}
    return [key for key in row_keys if stored.get(key) != (of.values(expected[key]) if key in expected else None)]


def correct(
    cursor: CursorWrapper, table: str, conversation: int, expected: dict[Key, Any], row_keys: Sequence[Key]
) -> None:
    """Delete these rows, or write them as the fold has them. Called under the conversation's lock."""
    there = [expected[key] for key in row_keys if key in expected]
    if table == "runs":  # a run that is there keeps its lease, worker and saved state
        _delete(cursor, table, conversation, [key for key in row_keys if key not in expected])
        cursor.execute(  # two may have changed places: one alone may run
            f"UPDATE conversations_run SET status='queued' WHERE {_are(TABLES[table], len(row_keys))}",
            [conversation, *row_keys],
        )
    else:
        _delete(cursor, table, conversation, row_keys)
    if table == "calls":
        _make_room(cursor, "conversations_toolcall", ("run", "call_id", "nth"), there)
    elif table == "approvals":
        _make_room(cursor, "conversations_approval", ("tool_call",), there)
    sql.write_changes(cursor, _fold_of(table, there))


def _delete(cursor: CursorWrapper, table: str, conversation: int, row_keys: Sequence[Key]) -> None:
    of = TABLES[table]
    if row_keys:
        cursor.execute(f"DELETE FROM {of.name} WHERE {_are(of, len(row_keys))}", [conversation, *row_keys])


def _are(of: Table, count: int) -> str:
    """Return a condition on these keys of a conversation. A key that is unique by itself is looked up by itself:
    otherwise a planner without statistics chooses the conversation's index and scans all of its rows for every page."""
    conversation = "+conversation_id" if of.key == "id" else "conversation_id"
    return f"{conversation}=%s AND {of.key} IN ({marks(count)})"


def _make_room(cursor: CursorWrapper, table: str, unique: tuple[str, ...], there: Sequence[Any]) -> None:
    """Delete rows that block these by a unique id: they are wrong, and their own fold writes them again."""
    for row in there:
        same = " AND ".join(f"{column}=%s" for column in unique)
        cursor.execute(
            f"DELETE FROM {table} WHERE id=%s OR ({same})", [row.id, *(getattr(row, column) for column in unique)]
        )


def _fold_of(table: str, there: Sequence[Any]) -> RowChanges:
    changes = RowChanges()
    if table == "calls":
        changes.new_calls |= {row.id: row for row in there}
    elif table in OF_ONE_EVENT:
        getattr(changes, table).extend(there)
    elif table != "participants":
        getattr(changes, table).update({(row.conversation_id, getattr(row, TABLES[table].key)): row for row in there})
    for conversation, name, kind, is_named, is_reachable, asked_at in there if table == "participants" else ():
        changes.participants[conversation, name] = kind
        if is_named:
            changes.named.add((conversation, name))
        if is_reachable:
            changes.reachable.add((conversation, name))
        if asked_at:
            changes.asked_at[conversation, name] = asked_at
    return changes
