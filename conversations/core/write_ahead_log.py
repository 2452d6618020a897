"""Keep SQLite's write-ahead log short where no server does it. Called between the transactions of long work: an
expiry, a redaction about a person, a rebuild."""

from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.db import connection

from conversations.core import data_dir
from conversations.core.errors import Unavailable

MAX_SIZE = 64 << 20  # bytes: as many pages as the writer of a server lets it have
READERS_WITHIN_MS = 50  # how long the readers of other processes are waited for; else the next call does it


def shorten() -> None:
    """Write a large log into the database, unless another process holds the data directory: SQLite before 3.51.3 allows
    one process that does so."""
    if connection.vendor != "sqlite" or _size() < MAX_SIZE:
        return
    with suppress(Unavailable), data_dir.hold(settings.DATA_DIR), connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout={READERS_WITHIN_MS}")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _size() -> int:
    with suppress(FileNotFoundError):
        return Path(f"{connection.settings_dict['NAME']}-wal").stat().st_size
    return 0
