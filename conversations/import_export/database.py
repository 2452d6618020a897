"""A SQLite database of a recording, for formats to read: opened read-only, its schema not trusted.

A foreign database may contain views and triggers that never end, and functions that a schema calls: only tables are
read, by name, and a statement that runs too long is stopped.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import RecordingFile

MAX_CELL = 64 << 20  # bytes of one value
_STEPS = 10_000  # of SQLite's machine between looks
_TABLES = "SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL %' LIMIT 1000"
_MAX_LOOKS = 200_000  # of one statement: minutes of work

Tables = dict[str, tuple[str, ...]]  # columns by table
Row = dict[str, Any]  # what SQLite has: None, int, float, str, bytes


class Database:
    """An open database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._looks = 0
        connection.set_progress_handler(self._is_over, _STEPS)

    def tables(self) -> Tables:
        """Return the columns of each table, without views and virtual tables, whose modules may be missing here. Raises
        Invalid for a damaged database."""
        names = [row["name"] for row in self._all(_TABLES)]
        return {
            name: tuple(row["name"] for row in self._all(f"PRAGMA table_info({_quoted(name)})"))
            for name in names
            if isinstance(name, str)
        }

    def rows(
        self, table: str, columns: tuple[str, ...], order: tuple[str, ...], *, of: Row | None = None
    ) -> Iterator[Row]:
        """Read the rows of a table, limited to those with the values in `of`. Raises Invalid for a damaged database."""
        chosen, sorted_by = (", ".join(map(_quoted, names)) for names in (columns, order))
        where = " AND ".join(f"{_quoted(name)} IS ?" for name in of or {}) or "1"
        statement = f"SELECT {chosen} FROM {_quoted(table)} WHERE {where} ORDER BY {sorted_by}"
        return self._all(statement, tuple((of or {}).values()))

    def _all(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Row]:
        self._looks = 0
        try:
            cursor = self._connection.execute(statement, values)
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except (sqlite3.Error, OverflowError) as error:
            raise Invalid(f"the database is damaged: {error}") from None

    def _is_over(self) -> bool:
        self._looks += 1
        return self._looks > _MAX_LOOKS


@contextmanager
def open_database(source: RecordingFile) -> Iterator[Database]:
    """Open a file as a database. Nothing is written, not even beside it. Raises Invalid for a damaged one."""
    with source.binary():
        pass
    connection = sqlite3.connect(_address(source.path), uri=True, isolation_level=None)
    try:
        connection.text_factory = _text
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
        for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "mmap_size=0"):
            connection.execute(f"PRAGMA {pragma}")
        yield Database(connection)
    except sqlite3.Error as error:
        raise Invalid(f"the database is damaged: {error}") from None
    finally:
        connection.close()


def _address(path: Path) -> str:
    """Return the URI: a file that no other program writes to is opened as immutable, so that no other file is
    created."""
    journal = path.with_name(f"{path.name}-wal")
    is_in_use = journal.exists() and journal.stat().st_size > 0
    return f"file:{quote(str(path.absolute()))}?mode=ro" + ("" if is_in_use else "&immutable=1")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
