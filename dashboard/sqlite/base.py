"""The engine: Django's own, but who waits for the file asks again soon (Django loads this module by its name).

SQLite's busy handler sleeps longer from try to try, up to 100 ms, while others walk in: of eight processes that want to
write at once the last one waits for a quarter of a second, though each writes for a few milliseconds.
"""

import os
import random
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from dashboard.databases import ReleasesErrors

PAUSES = 0.0005, 0.002  # seconds between attempts: the least and the most
OWNER_ALONE = 0o600
_NOTHING: dict[None, None] = {}
# What the driver asks two attributes of for every value that is bound, 0.4 µs, unless it knows a function for its type.
sqlite3.register_adapter(type(None), _NOTHING.get)
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY)


class DatabaseWrapper(ReleasesErrors, base.DatabaseWrapper):
    """One thread's connection. `begin_within`: seconds that its next transaction has to begin, if fewer. `only_writes`:
    it reads nothing outside its transactions, so SQLite's own wait stays off, which saves two statements for each.
    """

    begin_within: float | None = None
    only_writes = False
    _waits_s: float | None = None  # SQLite's own wait, once it is set

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:  # Django's own shapes
        """Open the file, readable by its owner alone: the record is in it. Raises as SQLite does."""
        if not self.is_in_memory_db():
            _make_private(Path(conn_params["database"]))
        self._waits_s = None
        return super().get_new_connection(conn_params)

    def _start_transaction_under_autocommit(self) -> None:
        """Begin; wait for the lock as long as the settings say. Raises as SQLite does when it was not to be had."""
        patience = float(self.settings_dict["OPTIONS"].get("timeout", 5.0))  # seconds
        within, self.begin_within = self.begin_within, None
        deadline = time.monotonic() + (patience if within is None else min(within, patience))
        self._wait_in_sqlite(0)
        try:
            while not self._has_begun(is_last=time.monotonic() > deadline):
                time.sleep(random.uniform(*PAUSES))
        finally:
            if not self.only_writes:
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
        if seconds != self._waits_s:
            self.connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")
            self._waits_s = seconds


def _make_private(database: Path) -> None:
    """Create the file for its owner alone, or take it from others who may read it; SQLite's own files beside it follow.

    A file that is there is never opened: closing it would drop the locks that SQLite holds for this process.
    """
    with suppress(OSError):  # it is there, or SQLite says what is wrong with the place
        os.close(os.open(database, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE))
    for path in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
        with suppress(OSError):
            if path.stat().st_mode & ~OWNER_ALONE & 0o777:
                path.chmod(OWNER_ALONE)
