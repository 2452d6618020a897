"""The raw SQL of the log: rows in blocks, heads under lock. Called inside `writing()` by `append` and `rebuild` only.

Rows go in as multi-row VALUES in power-of-two blocks: `sqlite3` gives the GIL away at every statement, and one
statement a row falls from 162,000 to 185 rows/s beside a busy thread (design, section 6).
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django.db.backends.utils import CursorWrapper

from conversations.errors import Busy
from conversations.log import chain, response_rows, run_rows
from conversations.models.tool_call import class_of
from conversations.projections import CallRow, Fold, Head

BLOCK = 512  # rows a statement
FEW = 5  # rows that a VALUES list takes faster than COPY

EVENT = "conversation_id,seq,kind,at,principal,run,turn,event_id,body,salt,digest,hash"
POST = "topic,bus_id,conversation_id,event_seq,body,sent_at"
HEAD = (
    "id,key,head_seq,head_hash,last_at,last_sender,last_line,messages,tool_calls,errors,repeatable,preview_after,"
    "title,handler,is_demo,state,owner,paused_seq,owned_seq,last_by"
)
CALL = (
    "id,conversation_id,run,call_id,nth,agent,name,namespace,lookup_key,origin,schema,called_seq,finished_seq,status,"
    "arguments_digest,started_at,duration_ms,replay_of,qualified_name,mcp_server,output_bytes,approver"
)
TURN = "conversation_id,seq,at,agent,model,is_demo,input_tokens,output_tokens"
NEW_CONVERSATION = (
    "key,title,state,owner,handler,is_demo,is_staged,head_seq,head_hash,indexed_seq,last_at,last_sender,last_line,"
    "messages,tool_calls,errors,repeatable,preview_after,paused_seq,owned_seq,copied_seq,last_by"
)
WIDTH = {"event": 12, "head": 19}

# The rows under lock in the order of their ids: whoever locks does it in this order, so nobody waits in a circle.
_LOCK = f"""SELECT {HEAD} FROM conversations_conversation WHERE key=ANY(%s)
AND (SELECT count(*) FROM conversations_conversation WHERE key=ANY(%s))=%s ORDER BY id FOR UPDATE"""
_ADVANCE = """WITH v(id,head_seq,head_hash,last_at,last_sender,last_line,messages,tool_calls,errors,repeatable,
preview_after,title,handler,is_demo,state,owner,paused_seq,owned_seq,last_by) AS (VALUES %s)
UPDATE conversations_conversation SET head_seq=v.head_seq,
head_hash=v.head_hash,last_at=v.last_at,last_sender=v.last_sender,last_line=v.last_line,messages=v.messages,
tool_calls=v.tool_calls,errors=v.errors,repeatable=v.repeatable,preview_after=v.preview_after,title=v.title,
handler=v.handler,is_demo=v.is_demo,state=v.state,owner=v.owner,paused_seq=v.paused_seq,owned_seq=v.owned_seq,
last_by=v.last_by
FROM v WHERE conversations_conversation.id=v.id"""
_TAKE_PART = """INSERT INTO conversations_participant(conversation_id,name,kind,is_named) VALUES %s
ON CONFLICT(conversation_id,name) DO UPDATE SET is_named=excluded.is_named
WHERE excluded.is_named AND NOT conversations_participant.is_named"""
_END_CALL = """UPDATE conversations_toolcall SET finished_seq=%s,status=%s,duration_ms=%s,output_bytes=%s,approver=%s,
duration_class=%s,size_class=%s WHERE id=%s"""


def marks(n: int) -> str:
    """Answer n placeholders for an IN list."""
    return ",".join(["%s"] * n)


def lock_heads(cursor: CursorWrapper, keys: Sequence[str], chained_as: dict[str, str]) -> dict[str, Head]:
    """Lock the conversations in id order, make the missing ones; a staged key's chain starts from its final key.

    On PostgreSQL the missing ones are made in key order while no row is locked, so that of two processes that make the
    same ones, one waits for the other and never both. Raises Busy when one is removed again and again meanwhile.
    """
    for _ in range(3):
        heads = _read_heads(cursor, keys)
        missing = [key for key in keys if key not in heads]
        if not missing:
            return heads
        _make(cursor, missing, chained_as)
    raise Busy("a conversation is being removed: send again later")


def _read_heads(cursor: CursorWrapper, keys: Sequence[str]) -> dict[str, Head]:
    """Read them; PostgreSQL locks them too, all or (where one is missing) none."""
    heads: dict[str, Head] = {}
    if cursor.db.vendor == "sqlite":
        for at in range(0, len(keys), BLOCK):
            some = keys[at : at + BLOCK]
            cursor.execute(f"SELECT {HEAD} FROM conversations_conversation WHERE key IN ({marks(len(some))})", some)
            heads |= {row[1]: Head(*row) for row in cursor.fetchall()}
    else:
        cursor.execute(_LOCK, [list(keys), list(keys), len(keys)])
        heads = {row[1]: Head(*row) for row in cursor.fetchall()}
    return heads


def _make(cursor: CursorWrapper, keys: Sequence[str], chained_as: dict[str, str]) -> None:
    values: list[Any] = []
    for key in keys:
        values += (key, "", "open", "", "", False, key in chained_as, 0, chain.seed(chained_as.get(key, key)), 0)
        values += (0, "", "", 0, 0, 0, "", 0, 0, 0, 0, "")
    sql = f"INSERT INTO conversations_conversation({NEW_CONVERSATION}) VALUES %s ON CONFLICT DO NOTHING"
    insert(cursor, sql, 22, values)


def advance(cursor: CursorWrapper, heads: Iterable[Head]) -> None:
    """Write the heads back, one UPDATE for all."""
    flat: list[Any] = []
    for h in heads:
        h.settle()
        flat += (h.id, h.head_seq, h.head_hash, h.last_at, h.last_sender, h.last_line, h.messages, h.tool_calls)
        flat += (h.errors, h.repeatable, h.preview_after, h.title, h.handler, h.is_demo)
        flat += (h.state, h.owner, h.paused_seq, h.owned_seq, h.last_by)
    insert(cursor, _ADVANCE, WIDTH["head"], flat)


def insert_events(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert events, twelve values each in the order of `EVENT`."""
    _store(cursor, "conversations_event", EVENT, flat)


def insert_copies(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert a fork's copies, thirteen values each: those of `EVENT`, and who erased it."""
    _store(cursor, "conversations_event", f"{EVENT},erased_by", flat)


def insert_posts(cursor: CursorWrapper, flat: list[Any]) -> None:
    """Insert posts, six values each in the order of `POST`."""
    _store(cursor, "conversations_post", POST, flat)


def write_changes(cursor: CursorWrapper, changes: Fold) -> None:
    """Write what the fold found: participants, calls made, calls ended."""
    people: list[Any] = []
    for (conversation, name), kind in sorted(changes.participants.items()):
        people += (conversation, name, kind, (conversation, name) in changes.named)
    insert(cursor, _TAKE_PART, 4, people)
    made: list[Any] = []
    for c in changes.made.values():
        made += (c.id, c.conversation_id, c.run, c.call_id, c.nth, c.agent, c.name, c.namespace, c.lookup_key)
        made += (c.origin, c.schema, c.called_seq, c.finished_seq, c.status, c.arguments_digest, c.started_at)
        made += (c.duration_ms, c.replay_of, c.qualified_name, c.mcp_server, c.output_bytes, c.approver)
        made += (class_of(c.duration_ms), class_of(c.output_bytes))
    _store(cursor, "conversations_toolcall", f"{CALL},duration_class,size_class", made)
    for c in changes.ended.values():
        end = [c.finished_seq, c.status, c.duration_ms, c.output_bytes, c.approver]
        cursor.execute(_END_CALL, [*end, class_of(c.duration_ms), class_of(c.output_bytes), c.id])
    spent: list[Any] = []
    for t in changes.turns:
        spent += (t.conversation_id, t.seq, t.at, t.agent, t.model, t.is_demo, t.input_tokens, t.output_tokens)
    _store(cursor, "conversations_turn", TURN, spent)
    if changes.runs or changes.run_steps or changes.approvals or changes.decisions or changes.escalations:
        run_rows.write(cursor, changes)
    if changes.responses or changes.answered or changes.forks:
        response_rows.write(cursor, changes)


def open_calls(
    cursor: CursorWrapper,
    conversation: int,
    call_ids: list[str],
    names: list[str],
    ours: list[str],
    runs: list[str],
    most: int,
) -> list[CallRow]:
    """Read the open calls that `most` events can change: with these call ids, or without one and with these names.

    A result ends the oldest call of its kind, so the oldest `most` of each are enough, however many are open; ours are
    found by their own ids, or all of a run's.
    """
    kinds = {
        "call_id IN (%s)": call_ids,
        "call_id IS NULL AND name IN (%s)": names,
        "id IN (%s)": ours,
        "run IN (%s)": runs,
    }
    wanted = " OR ".join(kind % marks(len(some)) for kind, some in kinds.items() if some)
    if not wanted:
        return []
    is_ours = f"id IN ({marks(len(ours))})" if ours else "FALSE"
    is_of_run = f"run IN ({marks(len(runs))})" if runs else "FALSE"
    cursor.execute(
        f"SELECT {CALL} FROM (SELECT {CALL},ROW_NUMBER() OVER (PARTITION BY run,call_id,"
        "CASE WHEN call_id IS NULL THEN name END ORDER BY called_seq) AS place FROM conversations_toolcall"
        f" WHERE conversation_id=%s AND finished_seq IS NULL AND ({wanted})) AS found"
        f" WHERE place<=%s OR {is_ours} OR {is_of_run}",
        [conversation, *call_ids, *names, *ours, *runs, most, *ours, *runs],
    )
    # Ordered here: asked to order, SQLite walks all calls of the conversation by seq instead of the open ones.
    return sorted((CallRow(*row) for row in cursor.fetchall()), key=lambda call: call.called_seq)


def uses(cursor: CursorWrapper, conversation: int, call_ids: list[str]) -> list[tuple[str | None, str, int]]:
    """Read how often these call ids were used: (run, call_id, nth)."""
    if not call_ids:
        return []
    cursor.execute(
        f"SELECT run,call_id,MAX(nth) FROM conversations_toolcall WHERE conversation_id=%s"
        f" AND call_id IN ({marks(len(call_ids))}) GROUP BY run,call_id",
        [conversation, *call_ids],
    )
    return list(cursor.fetchall())


def insert(cursor: CursorWrapper, sql: str, width: int, flat: list[Any]) -> None:
    """Run `sql` with its `%s` replaced by rows of `width` values, in power-of-two blocks (cached)."""
    if not flat:
        return
    is_sqlite = cursor.db.vendor == "sqlite"
    # The same connection and transaction, without Django's rewriting of placeholders.
    execute = cursor.db.connection.execute if is_sqlite else cursor.execute
    at, left = 0, len(flat) // width
    while left:
        n = min(BLOCK, 1 << (left.bit_length() - 1))
        execute(_block(sql, "?" if is_sqlite else "%s", width, n), flat[at : at + n * width])
        at, left = at + n * width, left - n


@lru_cache(256)
def _block(sql: str, mark: str, width: int, n: int) -> str:
    row = "(" + ",".join([mark] * width) + ")"
    return sql % ",".join([row] * n)


def _store(cursor: CursorWrapper, table: str, columns: str, flat: list[Any]) -> None:
    """Insert rows of a table that takes each of them: PostgreSQL by COPY when they are more than a few."""
    if not flat:
        return
    width = columns.count(",") + 1
    if cursor.db.vendor == "sqlite" or len(flat) <= FEW * width:
        insert(cursor, f"INSERT INTO {table}({columns}) VALUES %s", width, flat)
        return
    with cursor.copy(f"COPY {table}({columns}) FROM STDIN") as copy:
        for at in range(0, len(flat), width):
            copy.write_row(flat[at : at + width])
