"""Reads of events within a bound of bytes: the database chooses the rows by their sizes before a body is fetched.

PostgreSQL's library keeps a whole result in memory, so a window over `octet_length` (which reads no body) cuts it off
there. SQLite hands out row after row, and is told to stop. Used by every read here that may meet large bodies.
"""

from collections.abc import Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

READ_BYTES = 4 << 20  # of the bodies of one read, or one event

Row = tuple[Any, ...]


def rows(
    cursor: CursorWrapper, names: str, source: str, values: Sequence[Any], *, order: str, limit: int | None = None,
    most: int = READ_BYTES,
) -> list[Row]:  # fmt: skip
    """Return `SELECT names source ORDER BY order LIMIT limit`, cut after the row with which bodies pass `most` bytes.

    `body` is the last of `names`, the plain names of columns; `order` needs no sort, else SQLite reads all first.
    """
    inner = f"SELECT {names} {source} ORDER BY {order}" + ("" if limit is None else f" LIMIT {limit:d}")
    if cursor.db.vendor == "sqlite":
        cursor.execute(inner, values)
        return _until(cursor, most)
    sized = f"SUM(octet_length(body)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)-octet_length(body)"
    cursor.execute(
        f"SELECT {names} FROM (SELECT {names},{sized} AS bytes_before FROM ({inner}) AS every) AS measured"
        f" WHERE bytes_before<=%s ORDER BY {order}",
        [*values, most],
    )
    return list(cursor.fetchall())


def size_of(body: str | bytes) -> int:
    """Return the bytes of a body in UTF-8, as the databases store it. A blob is what somebody put into SQLite's."""
    return len(body) if isinstance(body, bytes) or body.isascii() else len(body.encode("utf-8", "replace"))


def size(page: Sequence[Row]) -> int:
    """Return the bytes of the bodies of rows."""
    return sum(size_of(row[-1]) for row in page)


def _until(cursor: CursorWrapper, most: int) -> list[Row]:
    page: list[Row] = []
    read = 0
    for row in iter(cursor.fetchone, None):  # a loop over the cursor itself would close it when it is left
        page.append(row)
        read += size_of(row[-1])
        if read > most:
            break
    return page
