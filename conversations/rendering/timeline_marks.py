"""The annotations of each row of a timeline. Called by the timeline's page."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.rendering.annotation_marks import Marks, marks_of
from conversations.rendering.timeline_rows import TimelineRow


def marks_by_row(rows: Sequence[TimelineRow], annotations: Mapping[int, Sequence[RecordedAnnotation]]) -> Marks:
    """Count the thumbs and notes of each row's events; `annotations` by the events that they are about."""
    by_row: dict[int, list[RecordedAnnotation]] = {}
    for seq, number in rows_of(rows, annotations).items():
        by_row.setdefault(number, []).extend(annotations[seq])
    return {number: marks_of(those) for number, those in by_row.items()}


def rows_of(rows: Sequence[TimelineRow], seqs: Iterable[int]) -> dict[int, int]:
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
