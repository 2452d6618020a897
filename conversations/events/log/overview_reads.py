"""Sample the events of a whole conversation evenly, and find its failed and waiting calls. For the overview strip."""

from typing import NamedTuple

from django.db import connection

from conversations.events.log.sql import marks
from conversations.models import Approval, ToolCall
from conversations.models.tool_call import FAILED

SAMPLES = 480  # events looked at, however many there are
SIGNS = 200  # of failures, and of waits: the newest
_NEWEST = 100_000  # events in which failures are looked for
_BEGINNING = 1000  # characters of a body that are read


class Sample(NamedTuple):
    """An event and the beginning of its body, which names its author."""

    seq: int
    kind: str
    principal: str
    beginning: str


class OverviewEvents(NamedTuple):
    """The events read; `failed` and `waiting` are seqs."""

    samples: list[Sample]
    failed: list[int]
    waiting: list[int]


def read(conversation: int, head: int) -> OverviewEvents:
    """Read at most this many events, whatever the size of the conversation."""
    step = max(1.0, head / SAMPLES)
    seqs = sorted({min(head, round(1 + n * step)) for n in range(min(head, SAMPLES))})
    calls = ToolCall.objects.filter(conversation_id=conversation, called_seq__gt=head - _NEWEST)
    failed = calls.filter(status__in=FAILED).order_by("-called_seq").values_list("called_seq", flat=True)
    waiting = Approval.objects.open().filter(conversation_id=conversation)
    return OverviewEvents(
        _samples(conversation, seqs),
        sorted(failed[:SIGNS]),
        sorted(waiting.order_by("-asked_seq").values_list("asked_seq", flat=True)[:SIGNS]),
    )


def _samples(conversation: int, seqs: list[int]) -> list[Sample]:
    if not seqs:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq, kind, principal, substr(body, 1, %s) FROM conversations_event"
            f" WHERE conversation_id=%s AND seq IN ({marks(len(seqs))}) ORDER BY seq",
            [_BEGINNING, conversation, *seqs],
        )
        return [Sample(*row) for row in cursor.fetchall()]
