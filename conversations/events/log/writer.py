"""The writer: stores submitted events in a few threads. Started by a server or a worker.

Each conversation belongs to one thread, so that its events keep their order; a job with several conversations belongs
to the thread of its first. SQLite has one thread, because its file has one lock.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from django.db import connection

from conversations.core.db_threads import POOL_SIZE
from conversations.core.errors import Busy, Unavailable
from conversations.events.log.commit_batch import Tally
from conversations.events.log.open_tokens import OpenTokens
from conversations.events.log.records import NewEvent, Stored
from conversations.events.log.retry_thread import RetryThread
from conversations.events.log.write_job import Done, Job, answer
from conversations.events.log.write_thread import WriteThread

logger = logging.getLogger(__name__)

MAX_BYTES = 32 << 20  # waiting
CLOSE_WITHIN = 8.0  # seconds the database may take for what is queued: less than a server's end waits for it


class Writer:
    """The writer threads of one process. Call `start`, then `submit`; end it with `close`."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_open = True
        self._deadline = 0.0  # monotonic, once closed
        self._tally = Tally()
        self._trial: Future[list[Stored]] = Future()
        self._trial.set_result([])
        self._retrying = RetryThread(self._tally)
        names = ["writer"] if connection.vendor == "sqlite" else [f"writer-{n}" for n in range(1, POOL_SIZE["writer"])]
        self._threads = [WriteThread(name, self._guard, self._tally, self._retrying) for name in names]

        self._all: tuple[WriteThread | RetryThread, ...] = (*self._threads, self._retrying)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._all:
            thread.start()

    def submit(
        self,
        events: Sequence[NewEvent],
        done: Done | None = None,
        *,
        in_same_transaction: Callable[[], None] | None = None,
        open_tokens: OpenTokens | None = None,
    ) -> None:
        """Queue events; `done` is resolved after their commit. Raises Busy above 32 MiB, Unavailable once closed.

        `in_same_transaction` changes further rows, after the events. It may run again; if it raises, `done` gets
        that exception and nothing is stored. `open_tokens` are the pieces that the only event, a token, begins.
        """
        size = sum(len(e.body) for e in events)
        with self._guard:
            if not self._is_open:
                raise Unavailable("the server is stopping")
            if self.waiting_bytes + size > MAX_BYTES:
                raise Busy("the write queue is full: try again later")
            self._thread_of(events).put(Job(events, done, size, in_same_transaction, open_tokens=open_tokens))

    def _thread_of(self, events: Sequence[NewEvent]) -> WriteThread:
        first = events[0] if events else None
        return self._threads[hash(first and (first.conversation or first.topic)) % len(self._threads)]

    @property
    def waiting_bytes(self) -> int:
        """The size of the queue, in bytes."""
        return sum(thread.size for thread in self._threads)

    @property
    def waiting_jobs(self) -> int:
        """The number of queued jobs, including those that wait for a lock."""
        return sum(len(thread.jobs) for thread in self._threads) + len(self._retrying.jobs)

    @property
    def commits(self) -> int:
        """The number of committed transactions."""
        return self._tally.commits

    @property
    def rows(self) -> int:
        """The number of stored events."""
        return self._tally.rows

    @property
    def stored_bytes(self) -> int:
        """The total size of the stored bodies, in bytes."""
        return self._tally.stored_bytes

    def is_alive(self) -> bool:
        """Return whether all threads are running."""
        return all(thread.is_alive() for thread in self._all)

    @property
    def state(self) -> str:
        """`ok`, or the reason why nothing can be written. In the second case writing is tried again, so that the next
        result is current."""
        if not self.is_alive():
            return "a writer thread has ended: restart this process"
        if (trouble := self._tally.trouble) and self._trial.done():
            self._trial = Future()
            with contextlib.suppress(Busy, Unavailable):
                self.submit((), self._trial, in_same_transaction=_write_something)
        return trouble or "ok"

    def close(self) -> None:
        """Stop accepting jobs, write the queue, and end the threads. An unresponsive database is waited for at most 8
        s; callers are then notified that nothing is acknowledged. A second call waits for the remaining threads."""
        with self._guard:
            self._is_open = False
            deadline = self._deadline = self._deadline or time.monotonic() + CLOSE_WITHIN
        for thread in self._all:  # what is held comes to the last one from the others
            thread.close()
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in self._all):
            self._abandon()

    def _abandon(self) -> None:
        """Fail the jobs that an unresponsive database did not store; jobs that are only queued are never stored."""
        with self._guard:
            jobs = [job for thread in self._threads for job in thread.abandon()]
        jobs += self._retrying.jobs
        logger.error(
            "the database did not respond within %.0f s: %d events were not acknowledged and may not have been stored",
            CLOSE_WITHIN, sum(len(job.events) for job in jobs),
        )  # fmt: skip
        answer([(job, Unavailable("the server stopped before the database responded. Try again")) for job in jobs])


def _write_something() -> None:
    """Write a row unchanged, to detect a database that is full, locked or read-only."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE conversations_meta SET value=value WHERE name='epoch'")
