"""The engine: Django's own, but who waits for the file asks again soon (Django loads this module by its name).

SQLite's busy handler sleeps longer from try to try, up to 100 ms, while others walk in: of eight processes that want to
write at once the last one waits for a quarter of a second, though each writes for a few milliseconds.
"""

import random
import sqlite3
import time

from django.db import OperationalError
from django.db.backends.sqlite3 import base

PAUSES = 0.0005, 0.002  # seconds between two tries: the least and the most
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY)


class DatabaseWrapper(base.DatabaseWrapper):
    """One thread's connection."""

    def _start_transaction_under_autocommit(self) -> None:
        """Begin; wait for the lock as long as the settings say. Raises as SQLite does when it was not to be had."""
        patience = float(self.settings_dict["OPTIONS"].get("timeout", 5.0))  # seconds
        deadline = time.monotonic() + patience
        self._wait_in_sqlite(0)
        try:
            while not self._has_begun(is_last=time.monotonic() > deadline):
                time.sleep(random.uniform(*PAUSES))
        finally:
            self._wait_in_sqlite(patience)

    def _has_begun(self, *, is_last: bool) -> bool:
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # no stub
        except OperationalError as error:
            if is_last or getattr(error.__cause__, "sqlite_errorcode", None) not in BUSY:
                raise
            return False
        return True

    def _wait_in_sqlite(self, seconds: float) -> None:
        self.connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")
