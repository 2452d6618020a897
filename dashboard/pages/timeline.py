"""The timeline of a conversation: its rows, drawn one window at a time. Called by the conversation page."""

import time
from functools import lru_cache
from typing import NamedTuple

from conversations.core import micros
from conversations.events.log import annotation_reads, timeline_reads
from conversations.models import Conversation, Run
from conversations.rendering import conversation_timeline, timeline_drawing, timestamps
from conversations.rendering.annotation_marks import Marks, marks_by_row
from conversations.rendering.conversation_timeline import TimelineLayout
from conversations.rendering.timeline_drawing import DrawnRow
from conversations.rendering.timeline_scale import WIDTH
from dashboard.pages.playhead import version_of

ROWS = 120  # of a window
FIRST_ROWS = 72  # of those that come with the page: a screen's, and room to scroll (static/js/timeline-window.js)
REDRAWN_US = 10_000_000  # by which a wait that goes on grows


class TimelinePage(NamedTuple):
    """A window of the rows, with figures about all of them. `scale`: for each stretch its start and end (ms since the
    first moment), the positions of both, and whether it is folded. While something waits, `whole` and `waits` go on: as
    if all of it had lasted since `began`, and all waits since `waits_since` (ISO 8601)."""

    rows: list[DrawnRow]
    start: int
    total: int
    first: int
    head: int
    picked: int  # the number of the row of the event that was asked for; -1: none
    failures: bool
    began: str  # ISO 8601
    ticks: list[tuple[str, str]]  # where, in percent, and its words
    scale: list[tuple[float, float, int, int, bool]]
    whole: str
    models: str
    tools: str
    waits: str
    is_waiting: bool
    waits_since: str
    folds: int
    marks: Marks
    is_timed: bool
    width: int = WIDTH


def timeline_of(
    conversation: Conversation,
    *,
    start: int | None = None,
    event: int = 0,
    failures: bool = False,
    at: int = 0,
    rows: int = ROWS,
) -> TimelinePage:
    """Draw a window of `rows` rows from row number `start`, else around an event, else the newest; `at`: as it was
    after that event."""
    head = at or conversation.head_seq
    upto = 0 if at else _waits_until(conversation.pk)
    first, layout, marks = _layout(conversation.pk, conversation.key, head, version_of(conversation), failures, upto)
    total = len(layout.rows)
    picked = layout.row_of(event) if event and total else -1
    around = picked - rows // 2 if picked >= 0 else total
    start = max(0, min(around if start is None else start, total - rows))
    totals, duration = layout.totals, timestamps.elapsed if upto else timestamps.duration
    return TimelinePage(
        rows=timeline_drawing.drawn(layout, start, rows),
        start=start,
        total=total,
        first=first,
        head=head,
        picked=picked,
        failures=failures,
        began=micros.to_datetime(layout.first).isoformat() if total else "",
        ticks=[(f"{share:.2%}", words) for share, words in layout.scale.ticks()],
        scale=_scale(layout),
        whole=duration(totals.whole / 1000),
        models=timestamps.duration(totals.models / 1000),
        tools=timestamps.duration(totals.tools / 1000),
        waits=duration(totals.waits / 1000),
        is_waiting=totals.is_waiting and bool(upto),
        waits_since=micros.to_datetime(layout.last - totals.waits).isoformat(),
        folds=len(layout.scale.folded),
        marks=marks,
        is_timed=layout.is_timed,
    )


def _waits_until(conversation: int) -> int:
    """Return until when an unfinished wait is drawn, µs UTC, rounded so that requests close together share a cached
    drawing."""
    if not Run.objects.filter(conversation=conversation, status="waiting").exists():
        return 0
    return time.time_ns() // 1000 // REDRAWN_US * REDRAWN_US


@lru_cache(maxsize=8)
def _layout(
    conversation: int, key: str, head: int, _version: str, failures: bool, upto: int
) -> tuple[int, TimelineLayout, Marks]:
    events = timeline_reads.read(conversation, key, head)
    layout = conversation_timeline.layout(events, failures=failures, upto=upto)
    return events.first, layout, marks_by_row(layout.rows, annotation_reads.of_conversation(conversation, head))


def _scale(layout: TimelineLayout) -> list[tuple[float, float, int, int, bool]]:
    return [
        ((s.start - layout.first) / 1000, (s.end - layout.first) / 1000, s.x, s.x_end, s.is_folded)
        for s in layout.scale.stretches
    ]
