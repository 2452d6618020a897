"""The timeline of a conversation: its rows, a window of them drawn. Called by the conversation page."""

from functools import lru_cache
from typing import NamedTuple

from conversations.core import micros
from conversations.events import epoch
from conversations.events.log import timeline_reads
from conversations.models import Conversation
from conversations.rendering import conversation_timeline, timestamps
from conversations.rendering.conversation_timeline import DrawnRow, TimelineLayout
from conversations.rendering.timeline_scale import WIDTH

ROWS = 120  # of a window
TICKS = 8  # on the axis


class TimelinePage(NamedTuple):
    """A window of the rows, and what is said of all of them. `scale`: start, end (ms since the first moment), place,
    place of the end, and whether it is folded, of each stretch."""

    rows: list[DrawnRow]
    start: int
    total: int
    first: int
    head: int
    picked: int  # the number of the row of the event that was asked for; -1: none
    failures: bool
    began: str  # ISO 8601
    ticks: list[str]
    scale: list[tuple[float, float, int, int, bool]]
    whole: str
    models: str
    tools: str
    waits: str
    folds: int
    width: int = WIDTH


def timeline_of(
    conversation: Conversation, *, start: int | None = None, event: int = 0, failures: bool = False, at: int = 0
) -> TimelinePage:
    """Draw a window of the rows from number `start`, else around an event, else the newest; `at`: as it was then."""
    head = at or conversation.head_seq
    read_from, layout = _layout(conversation.pk, conversation.key, head, epoch.current(), failures)
    total = len(layout.rows)
    picked = layout.row_of(event) if event and total else -1
    if start is None:
        start = picked - ROWS // 2 if picked >= 0 else total
    start = max(0, min(start, total - ROWS))
    totals = layout.totals
    return TimelinePage(
        rows=conversation_timeline.drawn(layout, start, ROWS),
        start=start,
        total=total,
        first=read_from,
        head=head,
        picked=picked,
        failures=failures,
        began=micros.to_datetime(layout.first).isoformat() if total else "",
        ticks=_ticks(layout),
        scale=_scale(layout),
        whole=timestamps.duration(totals.whole / 1000),
        models=timestamps.duration(totals.models / 1000),
        tools=timestamps.duration(totals.tools / 1000),
        waits=timestamps.duration(totals.waits / 1000),
        folds=len(layout.scale.folded),
    )


@lru_cache(maxsize=8)
def _layout(conversation: int, key: str, head: int, _epoch: str, failures: bool) -> tuple[int, TimelineLayout]:
    events = timeline_reads.read(conversation, key, head)
    return events.first, conversation_timeline.layout(events, failures=failures)


def _scale(layout: TimelineLayout) -> list[tuple[float, float, int, int, bool]]:
    return [
        ((s.start - layout.first) / 1000, (s.end - layout.first) / 1000, s.x, s.x_end, s.is_folded)
        for s in layout.scale.stretches
    ]


def _ticks(layout: TimelineLayout) -> list[str]:
    """Say the time since the first moment at even places."""
    moments = [layout.scale.moment(WIDTH * n // TICKS) for n in range(TICKS)]
    return [timestamps.duration((moment - layout.first) / 1000) or "0 s" for moment in moments]
