"""When events were recorded, by ranges of their ids: where a search with a time has to look. Called by `finder` and
`index_writer`.

Ids say nothing about times: a fork copies old events under new ids, a clock may be set back. So the earliest and the
latest moment of each range are kept. They are only ever widened: erasing an event leaves its range as wide as it was.
"""

from collections.abc import Iterator, Mapping

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.events.log.sql_blocks import execute_rows

TABLE = "conversations_searchtime"
BITS = 11  # of an id that do not count: a span is 2,048 ids
EVER = (1 << 63) - 1  # a moment, µs, after all others
_SMALLER_AND_LARGER = {"sqlite": ("MIN", "MAX"), "postgresql": ("LEAST", "GREATEST")}


def note(cursor: CursorWrapper, moments: Mapping[int, int]) -> None:
    """Widen the ranges of these ids by their moments (µs UTC), inside `write_transaction()`."""
    spans: dict[int, list[int]] = {}
    for id_, at in moments.items():
        spans.setdefault(id_ >> BITS, []).append(at)
    lower, upper = _SMALLER_AND_LARGER[connection.vendor]
    execute_rows(
        cursor,
        f"INSERT INTO {TABLE}(span,earliest,latest) VALUES %s ON CONFLICT(span) DO UPDATE SET"
        f" earliest={lower}({TABLE}.earliest,excluded.earliest),latest={upper}({TABLE}.latest,excluded.latest)",
        3,
        [value for span, times in sorted(spans.items()) for value in (span, min(times), max(times))],
    )


def empty(cursor: CursorWrapper) -> None:
    """Delete all ranges, inside `write_transaction()`."""
    cursor.execute(f"DELETE FROM {TABLE}")


def stretches(cursor: CursorWrapper, since: int | None, until: int | None, high: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of ids (first, end), newest first; no other event below `high` is of this time.

    `since` (inclusive) and `until` (exclusive) are µs UTC.
    """
    if since is None and until is None:
        yield 1, high
        return
    cursor.execute(
        f"SELECT span FROM {TABLE} WHERE span<=%s AND latest>=%s AND earliest<%s ORDER BY span DESC",
        [(high - 1) >> BITS, since or 0, EVER if until is None else until],
    )
    low = top = 0
    for (span,) in cursor.fetchall():
        if low != (span + 1) << BITS:  # there is a gap
            if low < top:
                yield low, top
            top = min(high, (span + 1) << BITS)
        low = max(1, span << BITS)
    if low < top:
        yield low, top


def latest_below(cursor: CursorWrapper, id_: int) -> int | None:
    """Return the latest moment of all ids below this one, µs UTC; None if there are none."""
    cursor.execute(f"SELECT MAX(latest) FROM {TABLE} WHERE span<=%s", [(id_ - 1) >> BITS])
    row = cursor.fetchone()
    return int(row[0]) if row and row[0] is not None else None
