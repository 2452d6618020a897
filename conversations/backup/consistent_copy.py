"""Read all rows of the record as of one moment, while other processes keep writing. Called by `make_backup`.

On SQLite, the file is copied first, in one step: a long read of the database itself would keep its WAL from being
checkpointed. On PostgreSQL, one snapshot is held for the whole time.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from django.db import connection, transaction

from conversations.backup.portable_rows import FROM_POSTGRESQL, FROM_SQLITE, RecordTable, converter

OWNER_ALONE = 0o600
SIDE_FILES = ("-wal", "-shm", "-journal")
SOURCE_READS = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS)
_TYPES = {"int": "int8", "text": "text", "bool": "bool", "time": "timestamptz", "float": "float8",
          "decimal": "numeric", "bytes": "bytea"}  # fmt: skip


class ConsistentCopy(Protocol):
    """The record as of one moment."""

    def rows(self, table: RecordTable) -> Iterator[list[Any]]:
        """Yield the rows of a table in the order of its key, with values in the backup's form (`portable_rows`)."""

    def first_row(self, sql: str) -> Sequence[Any]:
        """Return the first row of a query."""


@contextmanager
def consistent_copy_beside(beside: Path) -> Iterator[ConsistentCopy]:
    """Make the copy. On SQLite it is a file next to this path, readable by its owner alone, and removed at the end."""
    if connection.vendor == "sqlite":
        place = beside.with_name(f"{beside.name}.copy")
        try:
            _copy_file(place)
            with closing(sqlite3.connect(f"{place.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
                yield SqliteCopy(database)
        finally:
            _remove(place)
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        cursor.execute("SET LOCAL TIME ZONE 'UTC'")
        yield PostgresSnapshot(cursor)


def _copy_file(place: Path) -> None:
    """Copy the whole file in one step: a copy in several steps starts over whenever another process writes.

    Raises OSError if the copy cannot be written, DatabaseError if the database cannot be read.
    """
    _remove(place)  # of a process that was killed
    os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE))
    connection.ensure_connection()
    source: Any = connection.connection  # Django's own subclass of sqlite3.Connection
    with closing(sqlite3.connect(place)) as target:
        with connection.wrap_database_errors:
            try:
                source.backup(target)
            except sqlite3.OperationalError as error:
                if _is_of_copy(error):
                    raise OSError(errno.EIO, str(error)) from None
                raise
        for end in SIDE_FILES:
            with suppress(FileNotFoundError):
                Path(f"{place}{end}").chmod(OWNER_ALONE)


def _remove(place: Path) -> None:
    """Remove the copy and what SQLite leaves beside it when it cannot finish: pages of the record."""
    for end in ("", *SIDE_FILES):
        Path(f"{place}{end}").unlink(missing_ok=True)


def _is_of_copy(error: sqlite3.OperationalError) -> bool:
    """Return whether the disk of the copy is full or fails; the database itself is only read."""
    if error.sqlite_errorcode in SOURCE_READS:
        return False
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class SqliteCopy:
    """A copy of the SQLite file, to which nobody else writes."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def rows(self, table: RecordTable) -> Iterator[list[Any]]:
        """Yield the rows of a table, as `ConsistentCopy.rows`."""
        convert = converter([kind for _, kind in table.columns], FROM_SQLITE)
        with connection.wrap_database_errors:
            yield from map(convert, self._database.execute(table.select))

    def first_row(self, sql: str) -> Sequence[Any]:
        """Return the first row of a query."""
        with connection.wrap_database_errors:
            row: Sequence[Any] = self._database.execute(sql).fetchone()
        return row


class PostgresSnapshot:
    """A transaction of PostgreSQL that sees the record as of its start."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def rows(self, table: RecordTable) -> Iterator[list[Any]]:
        """Yield the rows of a table, as `ConsistentCopy.rows`, read by COPY."""
        kinds = [kind for _, kind in table.columns]
        convert = converter(kinds, FROM_POSTGRESQL)
        with self._cursor.copy(f"COPY ({table.select}) TO STDOUT") as copy:
            copy.set_types([_TYPES[kind] for kind in kinds])
            yield from map(convert, copy.rows())

    def first_row(self, sql: str) -> Sequence[Any]:
        """Return the first row of a query."""
        self._cursor.execute(sql)
        row: Sequence[Any] = self._cursor.fetchone()
        return row
