"""Check SQLite's file with SQLite's own check, and report damage. Used by `verify` and the command line."""

from collections.abc import Iterator

from django.db import DatabaseError, connection

from conversations.core.db_threads import is_damage

MAX_PROBLEMS = 20  # problems named
ADVICE = (
    "Stop every process that uses it, keep the file, and restore a backup that `switchboard verify` reports as intact"
)


def damaged(reason: str) -> str:
    """Return the message that the database is damaged: which one, and what to do."""
    return f"The database {place()} is damaged: {reason}. {ADVICE}."


def place() -> str:
    """Return SQLite's file, or PostgreSQL's host and database, never its password."""
    config = connection.settings_dict
    return str(config["NAME"]) if connection.vendor == "sqlite" else f"{config['HOST'] or 'localhost'}/{config['NAME']}"


def problems() -> Iterator[str]:
    """Check SQLite's whole file, indexes included; yield the damage, table by table.

    PostgreSQL checks its pages itself as it reads them. Raises DatabaseError for a file whose schema cannot be read.
    """
    if connection.vendor != "sqlite" or not any(_check("PRAGMA integrity_check(1)")):
        return
    is_located = False
    for table in _tables():
        for problem in _check(f"PRAGMA integrity_check({connection.ops.quote_name(table)})"):
            is_located = True
            yield f"table {table} or one of its indexes: {problem}"
    if not is_located:
        yield from _check(f"PRAGMA integrity_check({MAX_PROBLEMS})")


def _tables() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")
        return [name for (name,) in cursor.fetchall()]


def _check(pragma: str) -> Iterator[str]:
    """Run one check, which ends with an error at an unreadable page; yield its lines that are not `ok`."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(pragma)
            for (text,) in cursor:
                yield from (line for line in text.splitlines() if line != "ok" and not line.startswith("***"))
    except DatabaseError as error:
        if not is_damage(error):
            raise
        yield str(error)
