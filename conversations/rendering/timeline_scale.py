"""Map time to positions along a timeline: work keeps its length, idle stretches are folded. Plain numbers.

Used by `conversation_timeline`; the browser maps positions back to times by the same stretches (`timeline-scale.js`).
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import ceil, floor
from typing import NamedTuple

WIDTH = 1_000_000  # places; whole numbers, so that a row of a long timeline is exact
IDLE_SHARE = 0.5  # of the work: what all folded stretches take together, at most
MANY = 16  # gaps
MIN_FOLDED_US = 1_000  # a stretch that is not longer is never folded


TICKS = 8  # about as many on an axis
TICK_GAP = 0.09  # of the axis, between two ticks at least
LAST_TICK = 0.93  # where the last one may begin, so that its words have room
FAR_MS = 3_600_000  # from when on seconds are counted again in each stretch: together with hours they have no room
STEPS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000),
    *(60_000 * minutes for minutes in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1_440)),
)


class Stretch(NamedTuple):
    """A stretch of time (start and end, µs UTC) with the positions of both; `is_folded`: it is drawn shorter than it
    was."""

    start: int
    end: int
    x: int
    x_end: int
    is_folded: bool


class TimelineScale:
    """The positions of moments from the first to the last; moments outside are clamped."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self.stretches = stretches
        self._starts = [stretch.start for stretch in stretches]

    def at(self, moment: int) -> int:
        """Return the position of a moment (µs UTC)."""
        if not self.stretches:
            return 0
        stretch = self.stretches[max(0, bisect_right(self._starts, moment) - 1)]
        span = stretch.end - stretch.start
        part = min(1.0, max(0.0, (moment - stretch.start) / span)) if span else 0.0
        return round(stretch.x + part * (stretch.x_end - stretch.x))

    def ticks(self) -> list[tuple[float, str]]:
        """Return the ticks of the axis as positions (0 to 1) with the time since the beginning: round times where work
        is drawn, counted from the stretch's beginning after an hour, and the ends of folded stretches. `ticks` of
        static/js/timeline-scale.js does the same."""
        drawn = [s for s in self.stretches if not s.is_folded and s.x_end > s.x]
        first = self.stretches[0].start if self.stretches else 0
        step = 0
        if drawn:
            longest = max(drawn, key=lambda s: s.x_end - s.x)
            ms = (longest.end - longest.start) / (longest.x_end - longest.x) * WIDTH / 1000
            step = next((step for step in STEPS_MS if step >= ms / TICKS), STEPS_MS[-1])
        marks = [(0.0, "0 s")] if drawn or self.folded else []
        for stretch in drawn:
            begin, end = (stretch.start - first) / 1000, (stretch.end - first) / 1000
            since = begin if begin >= FAR_MS and step < 60_000 else 0
            if since:
                _mark(marks, stretch.x / WIDTH, tick_words(begin, 1_000))
            from_n = ceil((begin - since) / step) + (1 if since else 0)
            for n in range(from_n, min(floor((end - since) / step), from_n + 10 * TICKS) + 1):
                share = (stretch.x + (since + n * step - begin) / (end - begin) * (stretch.x_end - stretch.x)) / WIDTH
                _mark(marks, share, ("+" if since else "") + tick_words(n * step, step))
        for stretch in self.folded:
            ms = (stretch.end - first) / 1000
            _mark(marks, stretch.x_end / WIDTH, tick_words(ms, 100 if ms < 60_000 else 1_000))
        return sorted(marks)

    @property
    def folded(self) -> list[Stretch]:
        """Return the folded stretches."""
        return [stretch for stretch in self.stretches if stretch.is_folded]


def _mark(marks: list[tuple[float, str]], share: float, words: str) -> None:
    if share <= LAST_TICK and all(abs(share - other) >= TICK_GAP for other, _ in marks):
        marks.append((share, words))


def tick_words(ms: float, step: float) -> str:
    """Return a time since the beginning (ms) as text, as exact as `step`, the ms between two ticks, requires."""
    if step < 1000 and 0 < floor(ms + 0.5) < 1000:
        return f"{floor(ms + 0.5)} ms"
    digits = 2 if step < 100 else 1 if step < 1000 else 0
    unit = 1000 / 10**digits
    ms = floor(ms / unit + 0.5) * unit  # before it is split
    if ms < 60_000:
        return f"{ms / 1000:.{digits if ms else 0}f} s"
    minutes, seconds = divmod(ms, 60_000)
    if minutes < 60:
        return f"{minutes:.0f} min" + (f" {seconds / 1000:.{digits}f} s" if step < 60_000 and seconds else "")
    return f"{minutes // 60:.0f} h" + (f" {minutes % 60:.0f} min" if minutes % 60 else "")


def scale_of(busy: Iterable[tuple[int, int]], first: int, last: int) -> TimelineScale:
    """Return a scale that folds what lies between busy times (µs UTC, start and end; for a moment both are equal)."""
    merged = _merged(busy, first, last)
    gaps = [after[0] - before[1] for before, after in pairwise(merged)]
    work = sum(end - start for start, end in merged)
    longest = _longest(gaps, work)
    return TimelineScale(_placed(_parts(merged, longest), work + sum(min(gap, longest) for gap in gaps)))


def covered(spans: Iterable[tuple[int, int]]) -> int:
    """Return how long at least one of these spans lasted (µs)."""
    return sum(end - start for start, end in _joined(spans, []))


def _merged(busy: Iterable[tuple[int, int]], first: int, last: int) -> list[tuple[int, int]]:
    merged = _joined(busy, [(first, first)])
    return merged if merged[-1][1] >= last else [*merged, (last, last)]


def _joined(spans: Iterable[tuple[int, int]], joined: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add spans in order to others before them, those that overlap or touch as one."""
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _longest(gaps: Sequence[int], work: int) -> int:
    """Return the longest length at which a gap is drawn: all gaps together within their share of the work; of many
    gaps, as in a chat without work, the shortest are drawn in full."""
    if not gaps:
        return MIN_FOLDED_US
    usual = sorted(gaps)[len(gaps) // 4] if len(gaps) >= MANY else 0
    return max(MIN_FOLDED_US, usual, int(work * IDLE_SHARE / len(gaps)))


def _parts(merged: Sequence[tuple[int, int]], longest: int) -> list[tuple[int, int, int]]:
    """Return start, end and drawn length of each part; adjacent parts drawn in full are joined."""
    parts: list[tuple[int, int, int]] = []
    before = merged[0][0]
    for start, end in merged:
        gap = start - before
        if gap > longest:
            parts.append((before, start, longest))
            parts.append((start, end, end - start))
        elif parts and parts[-1][2] == parts[-1][1] - parts[-1][0]:
            parts[-1] = (parts[-1][0], end, end - parts[-1][0])
        else:
            parts.append((before, end, end - before))
        before = end
    return parts


def _placed(parts: Sequence[tuple[int, int, int]], whole: int) -> list[Stretch]:
    placed, so_far = [], 0
    for start, end, length in parts:
        x = round(so_far / whole * WIDTH) if whole else 0
        so_far += length
        x_end = round(so_far / whole * WIDTH) if whole else 0
        placed.append(Stretch(start, end, x, x_end, length < end - start))
    return placed
