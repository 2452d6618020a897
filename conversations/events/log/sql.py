"""The raw SQL of the log: inserts in blocks and heads under lock, for `append` and the folds inside
`write_transaction()`; and the placeholders and column lists of everybody's queries.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
from django.db import connection
from django.db.backends.utils import CursorWrapper
from msgspec.structs import astuple

from conversations.core.errors import Busy
from conversations.events.log import hash_chain, sql_runs
from conversations.events.log.sql_blocks import BLOCK, columns_of, execute_rows
from conversations.events.log.stored_totals import TOTALS
from conversations.events.projections import (
    AlarmCauseRow,
    AnnotationRow,
    ConversationHead,
    FoldedCall,
    RowChanges,
    TurnRow,
    UsageRow,
)
from conversations.models.tool_call import class_of

MAX_VALUES_ROWS = 5  # rows that a VALUES list takes faster than COPY

EVENT = "conversation_id,seq,kind,at,principal,run,turn,event_id,body,salt,digest,hash"
EVENT_OF_NO_RUN = EVENT.replace("run,turn,", "")
_RUN, _TURN, _BODY = (EVENT.split(",").index(name) for name in ("run", "turn", "body"))
POST = "topic,bus_id,conversation_id,event_seq,body,sent_at"
# Of a conversation: what almost every event changes, and what few change.
OFTEN = "head_seq,head_hash,last_at,last_sender,last_line,last_by,messages,repeatable,activity"
SELDOM = "tool_calls,errors,preview_after,title,handler,is_demo,state,owner,paused_seq,owned_seq,opened_by,outside_seq"
HEAD = f"id,key,{OFTEN},{SELDOM},key_digest"
_seldom = attrgetter(*SELDOM.split(","))
CALL, TURN = columns_of(FoldedCall), columns_of(TurnRow)
ANNOTATION, USAGE = columns_of(AnnotationRow), columns_of(UsageRow)
CLASSED_CALL = f"{CALL},duration_class,size_class"
NEW_CONVERSATION = (
    "key,title,state,owner,handler,is_demo,is_staged,head_seq,head_hash,indexed_seq,last_at,last_sender,last_line,"
    "messages,tool_calls,errors,repeatable,preview_after,paused_seq,owned_seq,copied_seq,last_by,opened_by,outside_seq,"
    "activity,key_salt,key_digest"
)


class _Update(NamedTuple):
    """An UPDATE of some columns of conversations: of one, or of many by a list of rows; the id comes last."""

    width: int
    values: Callable[[ConversationHead], tuple[Any, ...]]
    of_single: str
    of_many: str


def _update_of(columns: str) -> _Update:
    names = columns.split(",")
    of_single = f"UPDATE conversations_conversation SET {','.join(f'{name}=%s' for name in names)} WHERE id=%s"
    of_many = (
        f"WITH v({columns},id) AS (VALUES %s) UPDATE conversations_conversation"
        f" SET {','.join(f'{name}=v.{name}' for name in names)} FROM v WHERE conversations_conversation.id=v.id"
    )
    return _Update(len(names) + 1, attrgetter(*names, "id"), of_single, of_many)


_FIRST_SELDOM = 2 + len(OFTEN.split(","))
_AFTER_SELDOM = _FIRST_SELDOM + len(SELDOM.split(","))
_USUAL, _WHOLE = _update_of(OFTEN), _update_of(f"{OFTEN},{SELDOM}")

# The rows under lock in the order of their ids: whoever locks does it in this order, so nobody waits in a circle.
_LOCK = f"""SELECT {HEAD} FROM conversations_conversation WHERE key=ANY(%s)
AND (SELECT count(*) FROM conversations_conversation WHERE key=ANY(%s))=%s ORDER BY id FOR UPDATE"""
_LOCK_FREE = f"{_LOCK} SKIP LOCKED"
_TAKE_PART = """INSERT INTO conversations_participant(conversation_id,name,kind,is_named,is_reachable) VALUES %s
ON CONFLICT(conversation_id,name) DO UPDATE SET is_named=excluded.is_named OR conversations_participant.is_named,
is_reachable=excluded.is_reachable OR conversations_participant.is_reachable
WHERE excluded.is_named AND NOT conversations_participant.is_named
OR excluded.is_reachable AND NOT conversations_participant.is_reachable"""
_ASK = """WITH v(conversation_id,name,asked_at,has_answered) AS (VALUES %s) UPDATE conversations_participant AS p
SET asked_at=v.asked_at FROM v WHERE p.conversation_id=v.conversation_id AND p.name=v.name AND p.asked_at<>v.asked_at
AND (v.has_answered OR p.asked_at=0)"""
_SPEND = f"""INSERT INTO conversations_modelusage({USAGE}) VALUES %s ON CONFLICT(conversation_id,key) DO UPDATE SET
{",".join(f"{name}=conversations_modelusage.{name}+excluded.{name}" for name in USAGE.split(",")[5:])}"""
_END_CALLS = """WITH v(id,conversation_id,finished_seq,status,duration_ms,output_bytes,approver,
duration_class,size_class) AS (VALUES %s)
UPDATE conversations_toolcall SET finished_seq=CAST(v.finished_seq AS bigint),status=v.status,
duration_ms=CAST(v.duration_ms AS double precision),output_bytes=CAST(v.output_bytes AS bigint),approver=v.approver,
duration_class=CAST(v.duration_class AS smallint),size_class=CAST(v.size_class AS smallint) FROM v
WHERE conversations_toolcall.id=v.id AND conversations_toolcall.conversation_id=v.conversation_id"""


def marks(n: int) -> str:
    """Return n placeholders for an IN list."""
    return ",".join(["%s"] * n)


def rows_of(cursor: CursorWrapper, select: str, parameters: Sequence[Any]) -> list[Any]:
    """Return the rows of a query. On SQLite over the same connection and transaction, without Django's layers: they
    cost more than a query of one row."""
    if cursor.db.vendor == "sqlite":
        with cursor.db.wrap_database_errors:
            return list(cursor.db.connection.execute(_with_question_marks(select), parameters))
    cursor.execute(select, parameters)
    return list(cursor.fetchall())


@lru_cache(256)
def _with_question_marks(statement: str) -> str:
    return statement.replace("%s", "?")


def any_of(ids: Sequence[int]) -> tuple[str, list[Any]]:
    """Return the right side of a comparison of a column with these values, and its parameters. PostgreSQL reads one
    array faster than fifty numbers."""
    if connection.vendor == "postgresql":
        return "=ANY(%s)", [_array(ids)]
    return f" IN ({marks(len(ids))})", list(ids)


def _array(numbers: Iterable[int]) -> str:
    """Return a PostgreSQL array as text: psycopg takes ten times as long for a list, a tenth of a millisecond for fifty
    values."""
    return f"{{{','.join(map(str, numbers))}}}"


def wanted(places: Sequence[tuple[int, int]]) -> tuple[str, list[Any]]:
    """Return the WITH clause of a table `wanted(conversation,seq)` of positions in the record, and its parameters. Join
    it: SQLite uses no index for a row value IN several rows and would read all events."""
    if connection.vendor == "postgresql":  # two arrays: psycopg looks at each placeholder
        arrays = [_array(column) for column in zip(*places, strict=True)] or [_array(()), _array(())]
        return "WITH wanted(conversation,seq) AS (SELECT * FROM unnest(%s::bigint[],%s::bigint[]))", arrays
    rows = ",".join(["(%s,%s)"] * len(places))
    return f"WITH wanted(conversation,seq) AS (VALUES {rows})", [number for place in places for number in place]


def lock_heads(
    cursor: CursorWrapper, keys: Sequence[str], chained_as: Mapping[str, str]
) -> dict[str, ConversationHead]:
    """Lock the conversations in id order and create the missing ones; a staged key's chain starts from its final key.

    On PostgreSQL the missing ones are created in key order while no row is locked, so that of two processes that create
    the same ones, only one waits for the other. Raises Busy if one is repeatedly removed in the meantime.
    """
    for _ in range(3):
        heads = read_heads(cursor, keys)
        missing = [key for key in keys if key not in heads]
        if not missing:
            return heads
        make(cursor, missing, chained_as)
    raise Busy("a conversation is being removed: try again later")


def read_heads(cursor: CursorWrapper, keys: Sequence[str], *, skips: bool = False) -> dict[str, ConversationHead]:
    """Read the heads. PostgreSQL also locks them: all of them (with `skips`: all that nobody holds) or, if one is
    missing, none."""
    heads: dict[str, ConversationHead] = {}
    if cursor.db.vendor == "sqlite":
        for at in range(0, len(keys), BLOCK):
            block = keys[at : at + BLOCK]
            select = f"SELECT {HEAD} FROM conversations_conversation WHERE key IN ({marks(len(block))})"
            heads |= {row[1]: _head(row) for row in rows_of(cursor, select, block)}
    else:
        rows = rows_of(cursor, _LOCK_FREE if skips else _LOCK, [list(keys), list(keys), len(keys)])
        heads = {row[1]: _head(row) for row in rows}
    return heads


def _head(row: Sequence[Any]) -> ConversationHead:
    head = ConversationHead(*row)
    head.seldom = tuple(row[_FIRST_SELDOM:_AFTER_SELDOM])
    head.identity = hash_chain.identity_of(head.key, head.key_digest)
    return head


def make(cursor: CursorWrapper, keys: Sequence[str], chained_as: Mapping[str, str]) -> None:
    """Create conversations that do not exist yet, in this order, each with a salted digest of its id; those created by
    others in the meantime are left unchanged."""
    values: list[Any] = []
    salts = os.urandom(hash_chain.SALT * len(keys))
    for n, key in enumerate(keys):
        salt = salts[n * hash_chain.SALT : (n + 1) * hash_chain.SALT]
        key_digest = hash_chain.digest(salt, chained_as.get(key, key))
        seed = hash_chain.seed(hash_chain.identity_of(key, key_digest))
        values += (key, "", "open", "", "", False, key in chained_as, 0, seed, 0)
        values += (0, "", "", 0, 0, 0, "", 0, 0, 0, 0, "", "", 0, "", salt, key_digest)
    sql = f"INSERT INTO conversations_conversation({NEW_CONVERSATION}) VALUES %s ON CONFLICT DO NOTHING"
    execute_rows(cursor, sql, 27, values)


def advance(cursor: CursorWrapper, heads: Collection[ConversationHead]) -> None:
    """Write the heads back, with one UPDATE for all: of all columns, or only of those that almost every event
    changes."""
    for head in heads:
        head.settle()
    is_whole = any(_seldom(head) != head.seldom for head in heads)
    update = _WHOLE if is_whole else _USUAL
    flat: list[Any] = []
    for head in heads:
        flat += update.values(head)
    if len(heads) == 1:
        _execute(cursor, update.of_single, flat)
    else:
        execute_rows(cursor, update.of_many, update.width, flat)


def insert_events(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert events, twelve values each in the order of `EVENT`. Those of no run of ours are written without the two
    columns that only runs have: each NULL that is bound takes 0.3 µs."""
    TOTALS.count(flat[_BODY::12])
    if flat[_RUN::12].count(None) == flat[_TURN::12].count(None) == len(flat) // 12:
        del flat[_TURN::12]
        del flat[_RUN::11]
        _store(cursor, "conversations_event", EVENT_OF_NO_RUN, flat)
    else:
        _store(cursor, "conversations_event", EVENT, flat)


def insert_copies(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert a fork's copies, thirteen values each: those of `EVENT`, and who erased it."""
    TOTALS.count(flat[_BODY::13])
    _store(cursor, "conversations_event", f"{EVENT},erased_by", flat)


def insert_posts(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert posts, six values each in the order of `POST`."""
    _store(cursor, "conversations_post", POST, flat)


def write_changes(cursor: CursorWrapper, changes: RowChanges) -> None:
    """Write the changes that the fold computed: participants, calls, runs, approvals and the other state rows."""
    people: list[Any] = []
    for (conversation, name), kind in sorted(changes.participants.items()):
        key = (conversation, name)
        people += (*key, kind, key in changes.named, key in changes.reachable)
    execute_rows(cursor, _TAKE_PART, 5, people)
    questions: list[Any] = []
    for key in sorted(changes.answered_by | changes.asked_at.keys()):
        questions += (*key, changes.asked_at.get(key, 0), key in changes.answered_by)
    execute_rows(cursor, _ASK, 4, questions)
    if changes.new_calls or changes.changed_calls:
        _write_calls(cursor, changes)
    if changes.turns or changes.usages:
        _write_spent(cursor, changes)
    if changes.annotations:
        _store(cursor, "conversations_annotation", ANNOTATION, _flat(changes.annotations))
    if changes.alarm_causes:
        _store(cursor, "conversations_alarmcause", columns_of(AlarmCauseRow), _flat(changes.alarm_causes))
    if changes.runs or changes.run_steps or changes.approvals or changes.decisions or changes.escalations:
        sql_runs.write(cursor, changes)
    if changes.responses or changes.answered or changes.deleted or changes.forks:
        sql_runs.write_responses(cursor, changes)


def call_values(call: FoldedCall) -> tuple[Any, ...]:
    """Return the values of a call's columns, those of `CLASSED_CALL`."""
    return (*astuple(call), class_of(call.duration_ms), class_of(call.output_bytes))


def _write_calls(cursor: CursorWrapper, changes: RowChanges) -> None:
    calls: list[Any] = []
    for call in changes.new_calls.values():
        calls += call_values(call)
    _store(cursor, "conversations_toolcall", CLASSED_CALL, calls)
    ends: list[Any] = []
    for c in changes.changed_calls.values():
        ends += (c.id, c.conversation_id, c.finished_seq, c.status, c.duration_ms, c.output_bytes, c.approver)
        ends += (class_of(c.duration_ms), class_of(c.output_bytes))
    execute_rows(cursor, _END_CALLS, 9, ends)


def _write_spent(cursor: CursorWrapper, changes: RowChanges) -> None:
    _store(cursor, "conversations_turn", TURN, _flat(changes.turns))
    usages = [usage for _, usage in sorted(changes.usages.items())]
    execute_rows(cursor, _SPEND, USAGE.count(",") + 1, _flat(usages))


def _flat(rows: Iterable[msgspec.Struct]) -> list[Any]:
    flat: list[Any] = []
    for row in rows:
        flat += astuple(row)
    return flat


def _execute(cursor: CursorWrapper, statement: str, values: Sequence[Any]) -> None:
    """Run a statement; on SQLite as `insert` does."""
    if cursor.db.vendor == "sqlite":
        cursor.db.connection.execute(_with_question_marks(statement), values)
    else:
        cursor.execute(statement, values)


def _store(cursor: CursorWrapper, table: str, columns: str, flat: list[Any]) -> None:
    """Insert rows that cannot conflict; on PostgreSQL with COPY if there are more than a few."""
    if not flat:
        return
    width = columns.count(",") + 1
    if cursor.db.vendor == "sqlite" or len(flat) <= MAX_VALUES_ROWS * width:
        execute_rows(cursor, f"INSERT INTO {table}({columns}) VALUES %s", width, flat)
        return
    with cursor.copy(f"COPY {table}({columns}) FROM STDIN") as copy:
        for at in range(0, len(flat), width):
            copy.write_row(flat[at : at + width])
