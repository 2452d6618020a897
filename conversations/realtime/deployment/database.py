"""The database itself: vendor, version, size. SQLite and PostgreSQL. Its indexes are `node_facts`' to look after."""

from pathlib import Path
from typing import Any, NamedTuple

from django.db import connection


class DatabaseFacts(NamedTuple):
    """What runs, and how large it is."""

    vendor: str
    version: str
    size: int  # bytes, of the whole
    log_size: int | None  # bytes of SQLite's write-ahead log


def look() -> DatabaseFacts:
    """Ask the database; three short queries."""
    if connection.vendor == "sqlite":
        version = str(_single_value("SELECT sqlite_version()"))
        size = int(_single_value("PRAGMA page_count")) * int(_single_value("PRAGMA page_size"))
        return DatabaseFacts("SQLite", version, size, _log_size())
    version = str(_single_value("SHOW server_version")).partition(" ")[0]
    size = int(_single_value("SELECT pg_database_size(current_database())"))
    return DatabaseFacts("PostgreSQL", version, size, None)


def _log_size() -> int | None:
    path = Path(f"{connection.settings_dict['NAME']}-wal")
    return path.stat().st_size if path.is_file() else None


def _single_value(query: str) -> Any:  # a database's own value
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else 0
