"""Read events within a byte limit: the database selects the rows by size before any body is fetched.

PostgreSQL's client library holds a whole result in memory, so a window over `octet_length` (which reads no body) limits
the result. SQLite returns row after row and is stopped at the limit. Used by every read here that may meet large
bodies.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from django.db.backends.utils import CursorWrapper

READ_BYTES = 4 << 20  # of the bodies of one read, or one event
PAGE = 500  # rows of one page
FETCHED = 16  # rows that a query set fetches at a time where each may have a large body

Row = tuple[Any, ...]


def rows(
    cursor: CursorWrapper, names: str, source: str, values: Sequence[Any], *, order: str, limit: int | None = None,
    most: int = READ_BYTES,
) -> list[Row]:  # fmt: skip
    """Return `SELECT names source ORDER BY order LIMIT limit`, cut after the row at which the bodies exceed `most`
    bytes.

    `body` is the last of `names`, which are plain column names. `order` should need no sort; otherwise SQLite reads all
    rows first.
    """
    inner = f"SELECT {names} {source} ORDER BY {order}" + ("" if limit is None else f" LIMIT {limit:d}")
    if cursor.db.vendor == "sqlite":
        with cursor.db.cursor() as own:  # closed with the read: what is left of a SELECT keeps its snapshot of the file
            own.execute(inner, values)
            return _until(own, most)
    sized = f"SUM(octet_length(body)) OVER (ORDER BY {order} ROWS UNBOUNDED PRECEDING)-octet_length(body)"
    cursor.execute(
        f"SELECT {names} FROM (SELECT {names},{sized} AS bytes_before FROM ({inner}) AS every) AS measured"
        f" WHERE bytes_before<=%s ORDER BY {order}",
        [*values, most],
    )
    return list(cursor.fetchall())


def pages(
    cursor: CursorWrapper, names: str, source: str, values: Sequence[Any], *,
    after: int = 0, limit: int = PAGE, most: int = READ_BYTES,
) -> Iterator[list[Row]]:  # fmt: skip
    """Yield `SELECT names source AND seq>after ORDER BY seq` page by page, each limited as by `rows`.

    `seq` is the first of `names`, and `source` ends with conditions. The cursor may be used between two pages.
    """
    source = f"{source} AND seq>%s"
    while page := rows(cursor, names, source, [*values, after], order="seq", limit=limit, most=most):
        yield page
        if len(page) < limit and size(page) <= most:
            return  # all there was
        after = page[-1][0]


def size_of(body: str | bytes) -> int:
    """Return the size of a body in bytes of UTF-8, as the databases store it. A blob can only have been written to
    SQLite by hand."""
    return len(body) if body.isascii() or isinstance(body, bytes) else len(body.encode("utf-8", "replace"))


def size(page: Sequence[Row]) -> int:
    """Return the total size of the bodies of rows, in bytes."""
    return sum([len(body) if (body := row[-1]).isascii() else size_of(body) for row in page])


def _until(cursor: CursorWrapper, most: int) -> list[Row]:
    page: list[Row] = []
    room = most
    with cursor.db.wrap_database_errors:  # once; Django's `fetchone` does it for each row, which takes as long again
        for row in cursor.cursor:  # of `sqlite3`: a loop over Django's would close it when it is left
            page.append(row)
            body = row[-1]
            room -= len(body) if body.isascii() else size_of(body)
            if room < 0:
                break
    return page
