"""Pages of a list, newest first: cut where a walk along an index ends, continued by a cursor. It runs no query."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from conversations.core.errors import Invalid

WALK = 5_000  # rows that one page looks at, when it has to look at more than it shows
FAR = 100_000  # those of a page whose reader asked to look further

Position = TypeVar("Position")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class ListPage(Generic[Row, Position]):
    """Some rows, newest first. `after`: the position after which older rows follow; None at the end.

    `looked_at`: how many rows were read, if the walk ended before the page was full; else 0. `begins`: the moment from
    which on rows are listed, µs UTC, where a page of the list says it.
    """

    items: list[Row]
    after: Position | None = None
    looked_at: int = 0
    begins: int | None = None


def cut_page(
    rows: list[Row], limit: int, position_of: Callable[[Row], Position], *, floor: Position | None, walk: int
) -> ListPage[Row, Position]:
    """Return a page of at most `limit` rows. `rows` has one more if there are more; else the walk of `walk` rows ended
    at `floor`."""
    if len(rows) > limit:
        return ListPage(rows[:limit], position_of(rows[limit - 1]))
    return ListPage(rows, floor, walk if floor else 0)


def read_cursor(cursor: str, numbers: int) -> tuple[int, ...] | None:
    """Parse the numbers of a cursor; None if it is empty. Raises Invalid if it is not one of ours."""
    if not cursor:
        return None
    parts = cursor.split(".")
    if len(parts) != numbers or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise Invalid("must be a cursor from an earlier response", field="before")
    return tuple(map(int, parts))
