"""Counts of thumbs and notes as a small mark, for views without room for the texts. Plain numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from conversations.events.log.annotation_reads import RecordedAnnotation


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
