"""Build tool calls from their events, and determine which events are steps of a call. Used by page reads and live
rendering."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.fork_lineage import lineage
from conversations.events.log.records import LEFT, CallEvents, Stored
from conversations.events.log.sql import marks

COLUMNS = "seq,kind,at,principal,run,turn,event_id,body"
STEPS = registry.names_with("call_step")
BROKEN_OFF = registry.bad_run_ends()  # they end calls of their run
PARTNER_BYTES = 1 << 20  # of the bodies that calls need beside those at hand
_ANY = 1 << 62
_CALL = "id,status,nth,started_at,duration_ms,called_seq,finished_seq,run"


class TooManyBytes(Exception):
    """The further events that these calls need exceed 1 MiB together; request fewer calls."""


class _Named(msgspec.Struct):
    tool_call: str | None = None


_decoder = msgspec.json.Decoder(_Named)


def calls_of(key: str, events: Sequence[Stored]) -> dict[int, CallEvents]:
    """Return the calls whose steps are among `events`, by the seq of each step.

    Raises TooManyBytes, except for a single event.
    """
    if not any(e.kind in STEPS for e in events):
        return {}
    with connection.cursor() as cursor:
        row = _conversation(cursor, key)
        return of_window(cursor, row, key, events, is_whole=len(events) == 1) if row else {}


def call_ids(steps: Sequence[Stored]) -> dict[tuple[str, int], str]:
    """Return our ids of the calls to which these steps belong, by conversation and seq, with two queries for any
    conversations. A step in a fork's copy belongs to a call of its parent and is left out."""
    named = {(step.conversation, step.seq): name for step in steps if (name := _named(step))}
    places = [position for step in steps if (position := (step.conversation, step.seq)) not in named]
    if not places:
        return named
    with connection.cursor() as cursor:
        keys = sorted({key for key, _ in places})
        cursor.execute(f"SELECT id,key FROM conversations_conversation WHERE key IN ({marks(len(keys))})", keys)
        key_of = dict(cursor.fetchall())
        id_of = {key: pk for pk, key in key_of.items()}
        values = [number for key, seq in places if key in id_of for number in (id_of[key], seq)]
        if not values:
            return named
        # Joined: SQLite serves a row value IN several rows by no index, it reads all calls there are.
        with_clause = f"WITH wanted(conversation,seq) AS (VALUES {','.join(['(%s,%s)'] * (len(values) // 2))})"
        ends = " UNION ALL ".join(
            f"SELECT t.conversation_id,t.{end},t.id FROM wanted CROSS JOIN conversations_toolcall t"
            f" WHERE t.{end} IS NOT NULL AND t.conversation_id=wanted.conversation AND t.{end}=wanted.seq"
            for end in ("called_seq", "finished_seq")
        )
        cursor.execute(f"{with_clause} {ends}", values)
        return named | {(key_of[conversation], seq): str(id_) for conversation, seq, id_ in cursor.fetchall()}


def ended_by(key: str, events: Sequence[Stored]) -> dict[int, list[CallEvents]]:
    """Return the calls that were ended by each unsuccessful end of a run among `events`, by its seq."""
    seqs = [e.seq for e in events if e.kind in BROKEN_OFF and e.run]
    if not seqs:
        return {}
    ended: dict[int, list[CallEvents]] = {}
    with connection.cursor() as cursor:
        conversation = _conversation(cursor, key)
        rows = _rows(cursor, conversation, "finished_seq", seqs)
        for call in _folded_calls(cursor, conversation, key, rows, {}, is_whole=True):
            assert call.finished is not None
            ended.setdefault(call.finished.seq, []).append(call)
    return ended


def of_window(
    cursor: CursorWrapper,
    conversation: int,
    key: str,
    events: Sequence[Stored],
    *,
    is_whole: bool,
    upto: int | None = None,
) -> dict[int, CallEvents]:
    """Return the calls of these events by the seqs of their steps, including partner steps that are not among them;
    with `upto`, as they were after that event.

    Raises TooManyBytes if the partners exceed 1 MiB, unless `is_whole` states that they are few enough.
    """
    steps = {e.seq: e for e in events if e.kind in STEPS}
    if not steps:
        return {}
    named = {seq: name for seq, e in steps.items() if (name := _named(e))}
    rows = {row[0]: row for row in _rows(cursor, conversation, "called_seq", list(steps), upto)}
    rows |= {row[0]: row for row in _rows(cursor, conversation, "finished_seq", list(steps), upto)}
    rows |= {row[0]: row for row in _rows(cursor, conversation, "id", sorted(set(named.values()) - rows.keys()), upto)}
    calls: dict[int, CallEvents] = {}
    by_id: dict[str, CallEvents] = {}
    for call in _folded_calls(cursor, conversation, key, list(rows.values()), steps, is_whole=is_whole):
        if upto is not None and call.status == LEFT and rows[call.id][8] == upto:
            call = call._replace(status=_status_then(call))
        by_id[call.id] = call
        calls |= dict.fromkeys(call.seqs, call)
    return calls | {seq: by_id[name] for seq, name in named.items() if name in by_id}


def _status_then(call: CallEvents) -> str:
    """Return the status of a call at a moment before its end."""
    if call.approval_request is None:
        return "executing"
    return "waiting" if call.approval_decision is None else "approved"


def folded(cursor: CursorWrapper, conversation: int, rows: Sequence[Stored]) -> set[int]:
    """Return the seqs of the events that are a later step of a call; they are rendered only in its block."""
    steps = [row for row in rows if row.kind in STEPS]
    if not steps:
        return set()
    seqs = [row.seq for row in steps]
    ended = _rows(cursor, conversation, "finished_seq", seqs)
    result_seqs = {seq for *_, called, seq, _, _ in ended if seq is not None and seq != called}
    named = {row.seq: name for row in steps if (name := _named(row))}
    called = {row[0]: row[5] for row in _rows(cursor, conversation, "id", sorted(set(named.values())))}
    return result_seqs | {seq for seq, name in named.items() if called.get(name, seq) < seq}


def _named(event: Stored) -> str | None:
    """Return our id of the call that one of our own events names; a claim names none (law I)."""
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


_Row = tuple[str, str, int, int, float | None, int, int | None, str | None, int | None]


def _rows(
    cursor: CursorWrapper, conversation: int, column: str, values: Sequence[int | str], upto: int | None = None
) -> list[_Row]:
    """Read the calls whose column has one of these values; the last value of a row is the fork point, if any.

    Calls in a fork's copies are rows of its parent, as they were at the fork.
    """
    rows: list[_Row] = []
    for part in lineage(cursor, conversation, upto) if values else ():
        part_values = [value for value in values if isinstance(value, str) or part.has(value)]
        if part_values:
            cursor.execute(
                f"SELECT {_CALL} FROM conversations_toolcall"
                f" WHERE conversation_id=%s AND {column} IN ({marks(len(part_values))})",
                [part.conversation, *part_values],
            )
            rows += [_cut((*row, part.upto)) for row in cursor.fetchall() if part.has(row[5])]
    return rows


def _cut(row: Any) -> _Row:
    """Remove from a call what happened after the fork point."""
    id_, _, nth, started_at, _, called_seq, finished_seq, run, border = row
    if border is None or (finished_seq is not None and finished_seq <= border):
        unchanged: _Row = row
        return unchanged
    return (id_, LEFT, nth, started_at, None, called_seq, None, run, border)


def _folded_calls(
    cursor: CursorWrapper,
    conversation: int,
    key: str,
    rows: Sequence[_Row],
    loaded: dict[int, Stored],
    *,
    is_whole: bool,
) -> list[CallEvents]:
    """Build calls from rows: load their approvals, then the events that are not loaded yet."""
    approval_seqs = _approvals(cursor, {row[0]: row[8] for row in rows})
    needed = {seq for row in rows for seq in (row[5], row[6], *approval_seqs.get(row[0], ())) if seq is not None}
    missing = sorted(needed - loaded.keys())
    events = loaded | _events(cursor, conversation, key, missing, most=_ANY if is_whole else PARTNER_BYTES)
    if len(events) < len(loaded) + len(missing) and not is_whole:
        raise TooManyBytes
    calls = []
    for id_, status, nth, started_at, duration_ms, called_seq, finished_seq, *_ in rows:
        asked_seq, decided_seq = approval_seqs.get(id_, (0, None))
        ends = events.get(finished_seq or 0), events.get(asked_seq), events.get(decided_seq or 0)
        calls.append(CallEvents(id_, status, nth, started_at, duration_ms, events[called_seq], *ends))
    return calls


def _approvals(cursor: CursorWrapper, calls: Mapping[str, int | None]) -> dict[str, tuple[int, int | None]]:
    """Read where approval of these calls was requested and decided, each up to its fork point."""
    if not calls:
        return {}
    cursor.execute(
        f"SELECT tool_call,asked_seq,decided_seq FROM conversations_approval WHERE tool_call IN ({marks(len(calls))})",
        list(calls),
    )
    seqs_by_call: dict[str, tuple[int, int | None]] = {}
    for call, asked_seq, decided in cursor.fetchall():
        border = calls[call]
        if border is None or asked_seq <= border:
            is_decided = decided is not None and (border is None or decided <= border)
            seqs_by_call[call] = asked_seq, decided if is_decided else None
    return seqs_by_call


def _events(cursor: CursorWrapper, conversation: int, key: str, seqs: Sequence[int], *, most: int) -> dict[int, Stored]:
    if not seqs:
        return {}
    source = f"FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(seqs))})"
    rows = bounded_reads.rows(cursor, COLUMNS, source, [conversation, *seqs], order="seq", most=most)
    return {row[0]: Stored(key, *row) for row in rows}
