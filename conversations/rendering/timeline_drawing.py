"""Draw a window of a timeline's rows: marks, positions and words. A long conversation costs no more than a short
one."""

from __future__ import annotations

from typing import NamedTuple

from conversations.core import hidden_characters
from conversations.rendering import timestamps
from conversations.rendering.conversation_timeline import BAD, DEPTHS, TimelineLayout
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.rendering.timeline_rows import TimelineRow
from conversations.rendering.timeline_scale import WIDTH

MIN_OPEN_WIDTH = WIDTH // 80  # of what is not over


class TimelineBar(NamedTuple):
    """A bar of a row, in positions of the scale."""

    kind: str
    x: int
    width: int


class DrawnRow(NamedTuple):
    """A row for templates/partials/conversation_timeline.html; `number` counts from 0 over all rows."""

    number: int
    kind: str
    depth: int
    mark: ParticipantMark | None
    name: str
    words: str
    state: str
    took: str
    since: timestamps.When | None
    seq: int
    bars: list[TimelineBar]


def drawn(plan: TimelineLayout, start: int, count: int) -> list[DrawnRow]:
    """Draw a window of the rows."""
    return [_drawn(plan, n, row) for n, row in enumerate(plan.rows[start : start + count], start)]


def _drawn(plan: TimelineLayout, number: int, row: TimelineRow) -> DrawnRow:
    scale, is_open = plan.scale, row.end is None or row.state == "waiting"
    end = plan.last if is_open or row.end is None else row.end
    kind = "failed" if row.state in BAD else "wait" if row.state == "waiting" and row.kind == "call" else row.kind
    outer = _open_bar if is_open else _bar
    bars = [outer(kind, scale.at(row.start), scale.at(end))]
    bars += [_bar("model", scale.at(turn.start), scale.at(turn.end)) for turn in row.turns]
    is_tool, has_moment = row.kind == "call", is_open or row.kind == "message"
    took = "" if has_moment else timestamps.duration((end - row.start) / 1000)
    return DrawnRow(
        number=number,
        kind=row.kind,
        depth=min(row.depth, DEPTHS),
        mark=mark_for(row.name, row.principal) if row.name and not is_tool else None,
        name=hidden_characters.spelled_out(row.name)[:120] if is_tool else "",
        words=hidden_characters.spelled_out(row.words)[:160],
        state=row.state,
        took=took if plan.is_timed else str(row.seq),
        since=timestamps.moment(row.start) if has_moment and plan.is_timed else None,
        seq=row.seq,
        bars=bars,
    )


def _open_bar(kind: str, x: int, end: int) -> TimelineBar:
    """Return the bar of something ongoing: wide enough to be seen, even if it began with the last event."""
    start = min(x, WIDTH - MIN_OPEN_WIDTH)
    return _bar(kind, start, max(end, start + MIN_OPEN_WIDTH))


def _bar(kind: str, x: int, end: int) -> TimelineBar:
    """Return a bar that is drawn, however short it is: SVG leaves out those without width."""
    return TimelineBar(kind, min(x, WIDTH - 1), max(1, end - x))
