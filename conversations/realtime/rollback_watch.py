"""Watch for a database that was replaced by an older copy, or whose files were removed under this process: at the
start, every second, and at the end (laws C, D and E).

Used by `server_runtime` in processes that serve pages, by `record` and by `runagents`, each with its own data
directory.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from django.conf import settings
from django.db import connection

from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.core import data_dir as datadir
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.database_files import OpenFiles
from conversations.core.db_threads import DatabaseThreads
from conversations.events.epoch import HighWater
from conversations.realtime.redaction_watch import RedactionWatch

EVERY = 1.0  # seconds


class RollbackWatch:
    """The high-water files and the audit anchor of one data directory. Sync; called in a thread."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._high_water, self._anchor = HighWater(data_dir), AuditAnchorFile(data_dir)
        self._redactions = RedactionWatch(data_dir)
        self._last_files: list[tuple[int, ...]] = []  # SQLite's files at the last look
        self._open_files = OpenFiles()

    @property
    def epoch(self) -> str:
        """The epoch at the last check; empty if the check failed."""
        return self._high_water.epoch

    def look(self) -> None:
        """Change the epoch if the record is older than before; store how far the record and the audit log are. If
        SQLite's files have not changed, neither has the record. Does nothing once they are not those that were
        opened."""
        if self._open_files.are_replaced():
            return
        files = self._files()
        if files and files == self._last_files and self._redactions.is_done:
            return
        self._high_water.check()
        self._open_files.note()  # this thread's connection is open since the check
        self._write_anchor()
        self._redactions.look()
        self._last_files = files

    def _files(self) -> list[tuple[int, ...]]:
        """Return which files SQLite has and when they were written, and our own; empty if this says nothing about the
        database: on PostgreSQL, without one of the files, or inside a transaction."""
        if connection.vendor != "sqlite" or connection.in_atomic_block:
            return []
        name = str(connection.settings_dict["NAME"])
        with contextlib.suppress(OSError):
            stats = [os.stat(path) for path in (name, f"{name}-wal", self._data_dir / "high-water")]
            return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]
        return []

    def write(self) -> None:
        """Store it once more, at the end."""
        self._high_water.write()
        self._write_anchor()

    def _write_anchor(self) -> None:
        with datadir.file_lock(self._data_dir, "audit-head.lock"):
            self._anchor.write()

    async def again(self) -> None:
        """Wait and check; for `background_loop.run_forever`."""
        await asyncio.sleep(EVERY)
        await asyncio.to_thread(self.look)


@contextlib.asynccontextmanager
async def watching() -> AsyncIterator[None]:
    """Check now and every second, in a process that serves no pages."""
    asyncio.get_running_loop().set_default_executor(DatabaseThreads("errand"))
    watch = RollbackWatch(settings.DATA_DIR)
    await asyncio.to_thread(watch.look)
    task = asyncio.create_task(run_forever(watch.again, what="looking for a rollback"), name="rollback")
    try:
        yield
    finally:
        await cancel_all([task])
