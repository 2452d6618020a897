"""Counts of thumbs and notes as a small mark, for views without room for the texts, such as a timeline's rows. Plain
numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.rendering.timeline_rows import TimelineRow


class AnnotationMarks(NamedTuple):
    """The current thumbs and notes of one or several events."""

    up: int = 0
    down: int = 0
    notes: int = 0

    def __bool__(self) -> bool:
        return any(self)

    @property
    def glyphs(self) -> list[tuple[str, int]]:
        """Return the icons with their counts, thumbs down first."""
        counted = (("thumb-down", self.down), ("thumb-up", self.up), ("note", self.notes))
        return [(glyph, number) for glyph, number in counted if number]

    @property
    def words(self) -> str:
        """Return the counts in words."""
        parts = (
            f"{self.down} thumbs down" if self.down else "",
            f"{self.up} thumbs up" if self.up else "",
            f"{self.notes} note{'s' if self.notes > 1 else ''}" if self.notes else "",
        )
        return ", ".join(filter(None, parts))


Marks = Mapping[int, AnnotationMarks]  # by the numbers of rows
NONE = AnnotationMarks()


def marks_of(annotations: Iterable[RecordedAnnotation]) -> AnnotationMarks:
    """Count the current annotations."""
    up = down = notes = 0
    for annotation in annotations:
        up += annotation.thumb == "up"
        down += annotation.thumb == "down"
        notes += bool(annotation.text)
    return AnnotationMarks(up, down, notes)


def marks_by_row(rows: Sequence[TimelineRow], annotations: Mapping[int, Sequence[RecordedAnnotation]]) -> Marks:
    """Count the thumbs and notes of each row's events; `annotations` by the events that they are about."""
    by_row: dict[int, list[RecordedAnnotation]] = {}
    for seq, number in _rows_of(rows, annotations).items():
        by_row.setdefault(number, []).extend(annotations[seq])
    return {number: marks_of(those) for number, those in by_row.items()}


def _rows_of(rows: Sequence[TimelineRow], seqs: Iterable[int]) -> dict[int, int]:
    """Return the row number of each event: a message's or a call's own, else the shortest row of an agent, wait or run
    around it. Events in no row are left out."""
    ordered, numbers = sorted(seqs), dict[int, int]()
    for number, row in enumerate(rows):
        for seq in ordered[bisect_left(ordered, row.seq) : bisect_right(ordered, row.last_seq)]:
            if row.kind in ("call", "message") and seq not in (row.seq, row.last_seq):
                continue
            before = rows[numbers[seq]] if seq in numbers else None
            if before is None or row.last_seq - row.seq <= before.last_seq - before.seq:
                numbers[seq] = number
    return numbers
