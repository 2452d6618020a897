"""Notice that SQLite's files were removed or replaced under this process (law C).

Its open connections go on writing to the removed ones, and all of that is lost when the process is killed.
`rollback_watch` looks every second; `write_transaction` and the writer's state refuse from then on.
"""

import contextlib
import logging
import os
import threading

from django.db import OperationalError, connection

REPLACED = "the database's files were removed or replaced while this process uses them: restart it"

logger = logging.getLogger(__name__)
_replaced = threading.Event()


class OpenFiles:
    """The database's file and its write-ahead log, as they were once this process had them open."""

    def __init__(self) -> None:
        self._opened: list[int] = []

    def note(self) -> None:
        """Note which files these are, once. Call it with a connection open: SQLite keeps the log while one is."""
        self._opened = self._opened or _inodes()

    def are_replaced(self) -> bool:
        """Return whether the files are no longer those that were noted. From the first time on, nothing is written."""
        if self._opened and self._opened != _inodes() and not _replaced.is_set():
            logger.error("%s", REPLACED)
            _replaced.set()
        return _replaced.is_set()


def trouble() -> str:
    """Return why nothing may be written; empty if the files are those that this process has open."""
    return REPLACED if _replaced.is_set() else ""


def require_own() -> None:
    """Raise OperationalError if the files are no longer those that this process has open."""
    if _replaced.is_set():
        raise OperationalError(REPLACED)


def _inodes() -> list[int]:
    """Return the files that are there now; empty without a log, and where there are no files."""
    if connection.vendor != "sqlite":
        return []
    name = str(connection.settings_dict["NAME"])
    with contextlib.suppress(OSError):
        return [os.stat(path).st_ino for path in (name, f"{name}-wal")]
    return []
