"""Which of our runs ended after a row of the record, and what happened in one. Read-only."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db.models import F, QuerySet

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.models import Event, Run, ToolCall
from conversations.models.run import EXTERNAL

ENDS = tuple(name for name in registry.run_ends() if name != "run.delivered")
MAX_ROWS = 20_000  # events looked at in one read
MAX_NESTED = 20  # runs within runs


class EndedRun(NamedTuple):
    """The event that ended a run. `row` is its row id."""

    row: int
    conversation: int
    key: str
    seq: int
    run: str


class StepOfRun(NamedTuple):
    """One event of a run. `at` is µs UTC."""

    seq: int
    kind: str
    at: int
    turn: int | None
    body: str


def newest_row() -> int:
    """Return the newest row id of all events."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def between(after: int, upto: int, limit: int) -> list[EndedRun]:
    """Return the ends of runs after one row, up to another, in order."""
    rows = _ends(after, upto).order_by("pk").values_list("pk", "conversation_id", "conversation__key", "seq", "run")
    return [EndedRun(row, number, key, seq, run or "") for row, number, key, seq, run in rows[:limit]]


def count(after: int, most: int) -> int:
    """Return how many runs have ended after a row, up to `most`."""
    return _ends(after, after + 10 * MAX_ROWS).order_by().values("pk")[:most].count()


def run_of(end: EndedRun) -> Run | None:
    """Return the run if an agent of ours executed it: not a recording, nor one that stands for an external agent."""
    row = Run.objects.filter(id=end.run, conversation_id=end.conversation).first()
    return None if row is None or row.kind in ("recording", EXTERNAL) else row


def outermost(run: Run) -> str:
    """Return the id of the outermost run around a run."""
    around, call = run.id, run.parent_call
    for _ in range(MAX_NESTED):
        if call is None:
            break
        around = ToolCall.objects.filter(id=call).values_list("run", flat=True).first() or around
        call = Run.objects.filter(id=around).values_list("parent_call", flat=True).first()
    return around


def steps_of(end: EndedRun, run: Run, kinds: Sequence[str]) -> Iterator[StepOfRun]:
    """Yield the events of a run in order: those of these types, and its end."""
    events = Event.objects.filter(
        conversation=end.conversation, run=end.run, seq__gte=run.queued_seq, seq__lte=end.seq, kind__in=(*kinds, *ENDS)
    )
    rows = events.order_by("seq").values_list("seq", "kind", "at", "turn", "body")
    return (StepOfRun(*row) for row in rows.iterator(bounded_reads.FETCHED))


def input_of(end: EndedRun, run: Run) -> str:
    """Return the body of the event that a run answers; empty without one."""
    bodies = Event.objects.filter(conversation=end.conversation, seq=run.input_seq).values_list("body", flat=True)
    return bodies.first() or ""


def _ends(after: int, upto: int) -> QuerySet[Event]:
    """Select the ends of our own runs, without a fork's copies, which ended in the original."""
    events = Event.objects.filter(pk__gt=after, pk__lte=upto, kind__in=ENDS, run__isnull=False)
    return events.filter(seq__gt=F("conversation__copied_seq"))
