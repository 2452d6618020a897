"""Read the data of a conversation's timeline within limits: runs, calls without their bodies, and the events that show
which agent was active in a run at what time. Called by the timeline page."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from django.db import connection
from django.db.models import OuterRef, Subquery

from conversations.core import principals
from conversations.events import original_times, payload, registry
from conversations.events.log import bounded_reads
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored
from conversations.events.log.run_history import KINDS
from conversations.events.log.sql import marks
from conversations.events.projections.open_calls import NO_RESULT
from conversations.models import Approval, Event, Run, ToolCall

_KINDS = (*registry.names_with("agent_input"), *KINDS, "model.call")
NEWEST = 10_000  # events looked at; what was before has no rows
_STATUS = {
    "queued": "queued",
    "resumed": "queued",
    "started": "running",
    "waiting": "waiting",
}  # of a run after its event


class CallTimes(NamedTuple):
    """A tool call without its arguments and output; times in µs UTC, `finished_at` None while it runs."""

    id: str
    run: str | None
    agent: str
    name: str
    called_seq: int
    finished_seq: int | None
    status: str
    started_at: int
    duration_ms: float | None
    approver: str | None = None
    finished_at: int | None = None

    @property
    def began_at(self) -> int:
        """Return when its function was entered; a call that waited for a decision was called much earlier."""
        if self.finished_at is None or self.duration_ms is None:
            return self.started_at
        return max(self.started_at, self.finished_at - int(self.duration_ms * 1000))

    @property
    def ended_at(self) -> int | None:
        """Return when it ended; a call that waits for a decision has not started, one without a result ended at a
        time that is unknown."""
        if self.status in ("waiting", "approved", NO_RESULT):
            return self.started_at
        if self.duration_ms is not None:
            return self.began_at + int(self.duration_ms * 1000)
        return self.finished_at

    @property
    def place_seq(self) -> int:
        """Return the event at whose position it is shown: the one at which it was entered."""
        return self.finished_seq if self.approver is not None and self.finished_seq else self.called_seq


class RunTimes(NamedTuple):
    """A run, as stored in its row."""

    id: str
    kind: str
    agent: str
    status: str


class TimelineEvents(NamedTuple):
    """What was read, from event `first` to `head`, which was stored at `last_at` (µs UTC). Without `is_timed` it was
    imported from a record without times, and the numbers of the events stand in place of the times."""

    first: int
    head: int
    last_at: int
    events: list[Stored]
    calls: list[CallTimes]
    runs: list[RunTimes]
    is_timed: bool = True


def read(conversation: int, key: str, head: int) -> TimelineEvents:
    """Read the newest 10,000 events up to `head`, fewer if the rendered ones exceed 4 MiB."""
    first, events = _events(conversation, key, max(1, head - NEWEST + 1), head)
    calls = ToolCall.objects.filter(conversation_id=conversation, called_seq__gte=first, called_seq__lte=head)
    ends = Event.objects.filter(conversation_id=conversation, seq=OuterRef("finished_seq")).values("at")
    calls = calls.annotate(finished_at=Subquery(ends[:1])).order_by("called_seq")
    runs = Run.objects.filter(id__in={event.run for event in events if event.run})
    last = Event.objects.filter(conversation_id=conversation, seq=head).values_list("at", flat=True).first()
    steps = ((event.run, event.kind.removeprefix("run.")) for event in events if event.run)
    statuses = {run: _STATUS[step] for run, step in steps if step in _STATUS}
    pending = _pending_calls(conversation, head)
    rows = [_call_then(CallTimes(*row), head, pending) for row in calls.values_list(*CallTimes._fields)]
    times = _original_times(conversation, head, events, rows)
    is_timed = bool(times) or not _is_imported(events)
    if not is_timed:
        times = {event.seq: event.seq for event in events} | {head: head}
        rows = [_call_in_order(call) for call in rows]
    return TimelineEvents(
        first=first,
        head=head,
        last_at=times.get(head, last or 0),
        events=[event._replace(at=times.get(event.seq, event.at)) for event in events] if times else events,
        calls=[_call_at_first(call, times) for call in rows] if times else rows,
        runs=[
            _run_then(RunTimes(*row), end, head, statuses)
            for *row, end in runs.values_list(*RunTimes._fields, "ended_seq")
        ],
        is_timed=is_timed,
    )


def _original_times(
    conversation: int, head: int, events: Sequence[Stored], calls: Sequence[CallTimes]
) -> dict[int, int]:
    """Return when those of these events, of the calls' and of the last first happened that were imported or are told of
    spans, by seq (µs UTC)."""
    shown = [head, *(seq for call in calls if not call.run for seq in (call.called_seq, call.finished_seq) if seq)]
    times = {event.seq: _first_at(event.principal, event.body) for event in events if not event.run}
    if any(times.values()) or any(_times_of(conversation, [*shown[:3], *shown[-2:]]).values()):
        for at in range(0, len(shown), bounded_reads.PAGE):
            times |= _times_of(conversation, shown[at : at + bounded_reads.PAGE])
    return {seq: first for seq, first in times.items() if first is not None}


def _times_of(conversation: int, seqs: Sequence[int]) -> dict[int, int | None]:
    source = f"FROM conversations_event WHERE conversation_id=%s AND seq IN ({marks(len(seqs))}) AND run IS NULL"
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, "seq,principal,body", source, [conversation, *seqs], order="seq")
    return {seq: _first_at(principal, body) for seq, principal, body in rows}


def _first_at(principal: str, body: str) -> int | None:
    return None if principals.is_ours(principal) else original_times.of_event(principal, payload.fields_of(body))


def _call_at_first(call: CallTimes, times: Mapping[int, int]) -> CallTimes:
    """Return a call with the times at which its events first happened."""
    finished = times.get(call.finished_seq or 0, call.finished_at)
    return call._replace(started_at=times.get(call.called_seq, call.started_at), finished_at=finished)


def _is_imported(events: Sequence[Stored]) -> bool:
    return bool(events) and all(principals.is_imported(event.principal) for event in events)


def _call_in_order(call: CallTimes) -> CallTimes:
    """Return a call with the numbers of its events in place of the times."""
    return call._replace(started_at=call.called_seq, finished_at=call.finished_seq, duration_ms=None)


def _pending_calls(conversation: int, head: int) -> set[str]:
    """Return the calls whose approval request was open at the head."""
    requests = Approval.objects.filter(conversation_id=conversation, asked_seq__lte=head)
    return set(requests.exclude(decided_seq__lte=head).values_list("tool_call", flat=True))


def _call_then(call: CallTimes, head: int, pending: Container[str]) -> CallTimes:
    """Return a call as it was at the head: one that ended or was decided later was still running or waiting."""
    if call.finished_seq is not None and call.finished_seq <= head:
        return call
    status = "waiting" if call.id in pending else "executing" if call.finished_seq else call.status
    return call._replace(status=status, finished_seq=None, finished_at=None, duration_ms=None)


def _run_then(run: RunTimes, ended: int | None, head: int, statuses: Mapping[str, str]) -> RunTimes:
    """Return a run as it was at the head: one that had not ended has the status of its last event until then."""
    return run if ended is not None and ended <= head else run._replace(status=statuses.get(run.id, run.status))


def _events(conversation: int, key: str, least: int, head: int) -> tuple[int, list[Stored]]:
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND seq<=%s AND NOT kind='token'"
        f" AND (kind IN ({marks(len(_KINDS))}) OR kind LIKE %s OR (kind='output' AND run IS NULL))"
    )
    values = [conversation, least, head, *_KINDS, "%.stage"]
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, values, order="seq DESC", limit=NEWEST)
    events = [Stored(key, *row) for row in reversed(rows)]
    return events[0].seq if bounded_reads.size(rows) > bounded_reads.READ_BYTES else least, events
