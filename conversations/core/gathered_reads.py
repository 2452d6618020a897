"""Reads of many tasks of an event loop, gathered: one trip to a database thread for several, and one answer.

A trip costs more than a small query: the queue, the future, the wake-up of both threads, and their struggle for the
interpreter. What comes while trips are under way waits for the next one. For reads alone: a read may wait for those
that it travels with, and would wait with them for a lock.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from django.db import connection

from conversations.core.db_threads import DatabaseThreads, resolve, with_connection

TOGETHER = 16  # reads of a trip, at most
TRIPS = 4  # at a time; on SQLite one, since its reads do not wait


class _Read(NamedTuple):
    done: asyncio.Future[Any]
    work: Callable[[], Any]


class GatheredReads:
    """The reads of one event loop in these threads."""

    def __init__(self, threads: DatabaseThreads) -> None:
        self._threads = threads
        self._waiting: deque[_Read] = deque()
        self._trips = 0  # under way, or about to begin
        self._most = 1 if connection.vendor == "sqlite" else TRIPS

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Return what `work` returns, or raise what it raises; as for `DatabaseThreads`."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(_Read(done, partial(work, *arguments)))
        if self._trips < self._most:
            self._trips += 1
            loop.call_soon(self._travel, loop)  # with what else this turn of the loop brings
        return await done

    def _travel(self, loop: asyncio.AbstractEventLoop) -> None:
        reads = [self._waiting.popleft() for _ in range(min(TOGETHER, len(self._waiting)))]
        if not reads:
            self._trips -= 1
            return
        try:
            self._threads.submit(self._read, reads, loop)
        except RuntimeError as error:  # the threads have ended
            self._trips -= 1
            resolve([(read.done, error) for read in reads])

    def _read(self, reads: Sequence[_Read], loop: asyncio.AbstractEventLoop) -> None:
        """Read one after another. In a database thread."""
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for done, work in reads:
            try:
                answers.append((done, with_connection(work)))
            except Exception as error:  # whatever it is: it belongs to who asked
                answers.append((done, error))
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody who waits
            loop.call_soon_threadsafe(self._arrive, answers, loop)

    def _arrive(self, answers: Sequence[tuple[asyncio.Future[Any], Any]], loop: asyncio.AbstractEventLoop) -> None:
        resolve(answers)
        self._travel(loop)
