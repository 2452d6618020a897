"""Build tool calls from their events, and determine which events are steps of a call. Used by page reads and live
rendering."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec
from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.fork_lineage import ORIGIN, HistoryOrigin, LineagePart, lineage
from conversations.events.log.records import LEFT, CallEvents, Stored
from conversations.events.log.sql import marks, wanted

COLUMNS = "seq,kind,at,principal,run,turn,event_id,body"
STEPS = frozenset(registry.names_with("call_step"))
BROKEN_OFF = registry.bad_run_ends()  # they end calls of their run
PARTNER_BYTES = 1 << 20  # of the bodies that calls need beside those at hand
_ANY = 1 << 62
_CALLS = """SELECT t.id,t.status,t.nth,t.started_at,t.duration_ms,t.called_seq,t.finished_seq,a.asked_seq,a.decided_seq
FROM conversations_toolcall t LEFT JOIN conversations_approval a ON a.tool_call=t.id"""
MAX_ROWS = 1000  # calls that a reader remembers


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
        reader = _reader(cursor, key)
        return reader.of_window(events, is_whole=len(events) == 1) if reader else {}


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
        stored = [(id_of[key], seq) for key, seq in places if key in id_of]
        if not stored:
            return named
        with_clause, values = wanted(stored)
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
        reader = _reader(cursor, key)
        for call in reader.ended_by(seqs) if reader else ():
            assert call.finished is not None
            ended.setdefault(call.finished.seq, []).append(call)
    return ended


def _reader(cursor: CursorWrapper, key: str) -> "CallReader | None":
    cursor.execute(f"SELECT {ORIGIN} FROM conversations_conversation WHERE key=%s", [key])
    row = cursor.fetchone()
    return CallReader(cursor, key, HistoryOrigin(*row)) if row else None


class _CallRow(NamedTuple):
    """A call as the tables have it; where approval of it was requested and decided, if it was."""

    id: str
    status: str
    nth: int
    started_at: int
    duration_ms: float | None
    called_seq: int
    finished_seq: int | None
    asked_seq: int | None
    decided_seq: int | None
    border: int | None  # the fork point, or the event after which nothing is read

    def cut(self) -> "_CallRow":
        """Remove what happened after the border."""
        border = self.border
        if border is None:
            return self
        row = self
        if row.finished_seq is None or row.finished_seq > border:
            row = row._replace(status=LEFT, duration_ms=None, finished_seq=None)
        if row.asked_seq is None or row.asked_seq > border:
            return row._replace(asked_seq=None, decided_seq=None)
        return row if row.decided_seq is None or row.decided_seq <= border else row._replace(decided_seq=None)


class CallReader:
    """Reads the calls of one conversation's events; the row of each only once. With `upto`, as they were after that
    event, or (`is_copied`) as they are in a fork made there."""

    def __init__(
        self,
        cursor: CursorWrapper,
        key: str,
        origin: HistoryOrigin,
        upto: int | None = None,
        *,
        is_copied: bool = False,
    ) -> None:
        self._cursor, self._key, self._origin, self._upto, self._is_copied = cursor, key, origin, upto, is_copied
        self._rows: dict[str, _CallRow] = {}  # those read, by id
        self._ends: set[int] = set()  # the seqs of which it is known whether they end a call

    def folded(self, events: Sequence[Stored]) -> set[int]:
        """Return the seqs of the events that are a later step of a call; they are rendered only in its block."""
        steps = {event.seq: event for event in events if event.kind in STEPS}
        if not steps:
            return set()
        if len(self._rows) > MAX_ROWS:
            self._rows, self._ends = {}, set()
        named = self._read_ended(steps)
        results = {row.finished_seq for row in self._rows.values() if row.finished_seq != row.called_seq}
        called = {seq: self._rows[name].called_seq for seq, name in named.items() if name in self._rows}
        return {seq for seq in steps if seq in results or called.get(seq, seq) < seq}

    def of_window(self, events: Sequence[Stored], *, is_whole: bool) -> dict[int, CallEvents]:
        """Return the calls of these events by the seqs of their steps, including partner steps that are not among them.

        Raises TooManyBytes if the partners exceed 1 MiB, unless `is_whole` states that they are few enough.
        """
        steps = {event.seq: event for event in events if event.kind in STEPS}
        if not steps:
            return {}
        named = self._read_ended(steps)
        starts = {row.called_seq for row in self._rows.values()}
        self._read("called_seq", [seq for seq in steps if seq not in starts])  # an event starts one call at most
        rows = self._of_steps(steps, set(named.values()))
        calls: dict[int, CallEvents] = {}
        by_id: dict[str, CallEvents] = {}
        for call in self._with_events(rows, steps, is_whole=is_whole):
            by_id[call.id] = call
            calls |= dict.fromkeys(call.seqs, call)
        return calls | {seq: by_id[name] for seq, name in named.items() if name in by_id}

    def ended_by(self, seqs: Sequence[int]) -> list[CallEvents]:
        """Return the calls that these events ended."""
        return self._with_events(self._read("finished_seq", seqs), {}, is_whole=True)

    def _read_ended(self, steps: Mapping[int, Stored]) -> dict[int, str]:
        """Read the calls that these steps end or name; return our ids by the seqs of the steps that name one."""
        self._read("finished_seq", [seq for seq in steps if seq not in self._ends])
        self._ends |= steps.keys()
        named = {seq: name for seq, step in steps.items() if (name := _named(step))}
        self._read("id", sorted(set(named.values()) - self._rows.keys()))
        return named

    def _of_steps(self, steps: Mapping[int, Stored], ids: set[str]) -> list[_CallRow]:
        """Select the calls that these steps start or end, and those with these ids, in this order."""
        rows = self._rows.values()
        started = sorted((row for row in rows if row.called_seq in steps), key=lambda row: row.called_seq)
        ended = sorted((row for row in rows if row.finished_seq in steps), key=lambda row: row.finished_seq or 0)
        others = sorted(row for row in rows if row.id in ids)
        return list({row.id: row for row in (*started, *ended, *others)}.values())

    @cached_property
    def _parts(self) -> list[LineagePart]:
        return lineage(self._cursor, self._origin, self._upto)

    def _read(self, column: str, values: Sequence[int | str]) -> list[_CallRow]:
        """Read the calls whose column has one of these values, and remember them.

        Calls in a fork's copies are rows of its parent, as they were at the fork.
        """
        rows: list[_CallRow] = []
        for part in self._parts if values else ():
            part_values = [value for value in values if isinstance(value, str) or part.has(value)]
            if part_values:
                sql = f"{_CALLS} WHERE t.conversation_id=%s AND t.{column} IN ({marks(len(part_values))})"
                self._cursor.execute(sql, [part.conversation, *part_values])
                part_rows = [_CallRow._make((*row, part.upto)) for row in self._cursor.fetchall()]
                rows += [row.cut() for row in part_rows if part.has(row.called_seq)]
        self._rows |= {row.id: row for row in rows}
        return rows

    def _with_events(self, rows: Sequence[_CallRow], loaded: dict[int, Stored], *, is_whole: bool) -> list[CallEvents]:
        """Build calls from rows: load the events that are not loaded yet."""
        needed = {seq for row in rows for seq in (row.called_seq, row.finished_seq, row.asked_seq, row.decided_seq)}
        missing = sorted(seq for seq in needed if seq is not None and seq not in loaded)
        events = loaded | self._events(missing, most=_ANY if is_whole else PARTNER_BYTES)
        if len(events) < len(loaded) + len(missing) and not is_whole:
            raise TooManyBytes
        return [self._call(row, events) for row in rows]

    def _call(self, row: _CallRow, events: Mapping[int, Stored]) -> CallEvents:
        finished, request, decision = (
            events.get(seq or 0) for seq in (row.finished_seq, row.asked_seq, row.decided_seq)
        )
        call = CallEvents(
            row.id, row.status, row.nth, row.started_at, row.duration_ms, events[row.called_seq], finished, request,
            decision,
        )  # fmt: skip
        is_past = self._upto is not None and not self._is_copied
        is_open = is_past and row.status == LEFT and row.border == self._upto
        return call._replace(status=_status_then(call)) if is_open else call

    def _events(self, seqs: Sequence[int], *, most: int) -> dict[int, Stored]:
        if not seqs:
            return {}
        source = f"FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(seqs))})"
        values = [self._origin.conversation, *seqs]
        rows = bounded_reads.rows(self._cursor, COLUMNS, source, values, order="seq", most=most)
        return {row[0]: Stored(self._key, *row) for row in rows}


def _status_then(call: CallEvents) -> str:
    """Return the status of a call at a moment before its end."""
    if call.approval_request is None:
        return "executing"
    return "waiting" if call.approval_decision is None else "approved"


def _named(event: Stored) -> str | None:
    """Return our id of the call that one of our own events names; a claim names none (law I)."""
    if event.run is None or '"tool_call"' not in event.body:
        return None
    try:
        name = _decoder.decode(event.body).tool_call
    except msgspec.DecodeError:
        return None
    return name[:64] if name else None
