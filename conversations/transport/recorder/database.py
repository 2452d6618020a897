"""The recorder's single database thread: the loop gives it work and awaits the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from django.db import connection

from conversations.core.db_threads import POOL_SIZE, release_connection
from conversations.events.log.commit_batch import be_writer

T = TypeVar("T")


class RecorderDatabase:
    """Runs one piece of work after the other, on one connection of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(POOL_SIZE["recorder"], "recorder-database")

    def __call__(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """Start `work(*arguments)`; await the result."""
        return asyncio.get_running_loop().run_in_executor(self._thread, partial(_do, work, *arguments))

    async def close(self) -> None:
        """Finish the work in progress and close the connection."""
        await self(lambda: connection.close())  # looked up in that thread: it is that thread's connection
        self._thread.shutdown()


def _do(work: Callable[..., T], *arguments: Any) -> T:
    try:
        if connection.connection is None:
            _prepare()
        return work(*arguments)
    finally:
        release_connection()


def _prepare() -> None:
    """Let this connection run WAL checkpoints too, since an idle writer thread never sees its commits. One at a time:
    in one process every commit holds the lock of `write_transaction`, and on SQLite no other process writes."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            be_writer(cursor)
