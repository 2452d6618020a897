"""Statements over many rows. Called inside `write_transaction()`.

Rows are passed as multi-row VALUES in blocks: `sqlite3` releases the GIL at every statement, and with one statement per
row the rate falls from 162,000 to 185 rows/s beside a busy thread (§6).
"""

from functools import lru_cache
from typing import Any

import msgspec
from django.db.backends.utils import CursorWrapper

BLOCK = 512  # rows a statement
AT_ONCE = 8  # rows that are one statement, whatever their number


def execute_rows(cursor: CursorWrapper, sql: str, width: int, flat: list[Any]) -> None:
    """Run `sql` with its `%s` replaced by rows of `width` values: a few in one statement, more in power-of-two blocks,
    so that statements are prepared once."""
    if not flat:
        return
    is_sqlite = cursor.db.vendor == "sqlite"
    # The same connection and transaction, without Django's rewriting of placeholders.
    execute = cursor.db.connection.execute if is_sqlite else cursor.execute
    at, left = 0, len(flat) // width
    while left:
        n = left if left <= AT_ONCE else min(BLOCK, 1 << (left.bit_length() - 1))
        execute(_block(sql, "?" if is_sqlite else "%s", width, n), flat[at : at + n * width])
        at, left = at + n * width, left - n


def columns_of(row: type[msgspec.Struct]) -> str:
    """Return the columns of a row's table that a fold writes."""
    return ",".join(row.__struct_fields__)


@lru_cache(256)
def _block(sql: str, mark: str, width: int, n: int) -> str:
    row = "(" + ",".join([mark] * width) + ")"
    return sql % ",".join([row] * n)
