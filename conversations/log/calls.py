"""Tool calls as their events tell them, and which events are steps of one. Read with pages and by who draws live."""

from collections.abc import Sequence

import msgspec
from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.log.events import Call, Stored
from conversations.log.rows import marks

COLUMNS = "seq,kind,at,principal,run,turn,event_id,body"
STEPS = (
    "tool_step", "approval.requested", "approval.decided", "approval.cancelled", "approval.expired", "policy.refused",
    "replay.requested",
)  # fmt: skip
BROKEN_OFF = ("run.interrupted", "run.failed", "run.cancelled", "run.incompatible")  # they end calls of their run
_CALL = "id,status,nth,started_at,duration_ms,called_seq,finished_seq,run"


class _Named(msgspec.Struct):
    tool_call: str | None = None


_decoder = msgspec.json.Decoder(_Named)


def calls_of(key: str, events: Sequence[Stored]) -> dict[int, Call]:
    """Answer the calls whose steps are among `events`, by the seq of each step."""
    if not any(e.kind in STEPS for e in events):
        return {}
    with connection.cursor() as cursor:
        row = _conversation(cursor, key)
        return of_window(cursor, row, key, events) if row else {}


def ended_by(key: str, events: Sequence[Stored]) -> dict[int, list[Call]]:
    """Answer the calls that each bad end of a run among `events` ended, by its seq."""
    seqs = [e.seq for e in events if e.kind in BROKEN_OFF and e.run]
    if not seqs:
        return {}
    ended: dict[int, list[Call]] = {}
    with connection.cursor() as cursor:
        conversation = _conversation(cursor, key)
        rows = _rows(cursor, conversation, "finished_seq", seqs)
        for call in _made(cursor, conversation, key, rows, {}):
            assert call.finished is not None
            ended.setdefault(call.finished.seq, []).append(call)
    return ended


def of_window(cursor: CursorWrapper, conversation: int, key: str, events: Sequence[Stored]) -> dict[int, Call]:
    """Answer the calls of these events by the seqs of their steps, with partners that are not among them."""
    steps = {e.seq: e for e in events if e.kind in STEPS}
    if not steps:
        return {}
    named = {seq: name for seq, e in steps.items() if (name := _named(e))}
    rows = {row[0]: row for row in _rows(cursor, conversation, "called_seq", list(steps))}
    rows |= {row[0]: row for row in _rows(cursor, conversation, "finished_seq", list(steps))}
    rows |= {row[0]: row for row in _rows(cursor, conversation, "id", sorted(set(named.values()) - rows.keys()))}
    calls: dict[int, Call] = {}
    by_id: dict[str, Call] = {}
    for call in _made(cursor, conversation, key, list(rows.values()), steps):
        by_id[call.id] = call
        calls |= dict.fromkeys(call.seqs, call)
    return calls | {seq: by_id[name] for seq, name in named.items() if name in by_id}


def folded(cursor: CursorWrapper, conversation: int, rows: Sequence[Stored]) -> set[int]:
    """Answer the seqs of those that are a later step of a call: they are drawn in its block alone."""
    steps = [row for row in rows if row.kind in STEPS]
    if not steps:
        return set()
    seqs = [row.seq for row in steps]
    cursor.execute(
        "SELECT finished_seq FROM conversations_toolcall WHERE conversation_id=%s"
        f" AND finished_seq IN ({marks(len(seqs))}) AND called_seq<>finished_seq",
        [conversation, *seqs],
    )
    found = {seq for (seq,) in cursor.fetchall()}
    named = {row.seq: name for row in steps if (name := _named(row))}
    called = {row[0]: row[5] for row in _rows(cursor, conversation, "id", sorted(set(named.values())))}
    return found | {seq for seq, name in named.items() if called.get(name, seq) < seq}


def _named(event: Stored) -> str | None:
    """Answer our id of the call that one of our events names; a claim names none (law I)."""
    if event.run is None or '"tool_call"' not in event.body:
        return None
    try:
        name = _decoder.decode(event.body).tool_call
    except msgspec.DecodeError:
        return None
    return name[:64] if name else None


def _conversation(cursor: CursorWrapper, key: str) -> int:
    cursor.execute("SELECT id FROM conversations_conversation WHERE key=%s", [key])
    row = cursor.fetchone()
    return int(row[0]) if row else 0


_Row = tuple[str, str, int, int, float | None, int, int | None, str | None]


def _rows(cursor: CursorWrapper, conversation: int, column: str, values: Sequence[int | str]) -> list[_Row]:
    if not values:
        return []
    cursor.execute(
        f"SELECT {_CALL} FROM conversations_toolcall WHERE conversation_id=%s AND {column} IN ({marks(len(values))})",
        [conversation, *values],
    )
    return list(cursor.fetchall())


def _made(
    cursor: CursorWrapper, conversation: int, key: str, rows: Sequence[_Row], known: dict[int, Stored]
) -> list[Call]:
    """Make calls of rows: the approvals of ours, then the events that are not known yet."""
    asked = _approvals(cursor, [row[0] for row in rows if row[7] is not None])
    wanted = {seq for row in rows for seq in (row[5], row[6], *asked.get(row[0], ())) if seq is not None}
    events = known | _events(cursor, conversation, key, sorted(wanted - known.keys()))
    calls = []
    for id_, status, nth, started_at, duration_ms, called_seq, finished_seq, _ in rows:
        asked_seq, decided_seq = asked.get(id_, (0, None))
        ends = events.get(finished_seq or 0), events.get(asked_seq), events.get(decided_seq or 0)
        calls.append(Call(id_, status, nth, started_at, duration_ms, events[called_seq], *ends))
    return calls


def _approvals(cursor: CursorWrapper, calls: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    if not calls:
        return {}
    cursor.execute(
        f"SELECT tool_call,asked_seq,decided_seq FROM conversations_approval WHERE tool_call IN ({marks(len(calls))})",
        list(calls),
    )
    return {call: (asked, decided) for call, asked, decided in cursor.fetchall()}


def _events(cursor: CursorWrapper, conversation: int, key: str, seqs: Sequence[int]) -> dict[int, Stored]:
    if not seqs:
        return {}
    cursor.execute(
        f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(seqs))})",
        [conversation, *seqs],
    )
    return {row[0]: Stored(key, *row) for row in cursor.fetchall()}
