"""The writer's threads: they call `append` (`append.py`) for event loops, which must not wait for the database.
Actions, which run in threads, call it themselves.

Started by a server or a worker. They store what is queued in one transaction after another: the committer of each
thread (`commit_batch.py`) passes the events of many jobs to `append` and resolves the callers' futures.

Each conversation belongs to one thread, so that its events keep their order; a job with several conversations belongs
to the thread of its first. SQLite has one thread, because its file has one lock.

Jobs that a caller waits for are committed with the next free transaction, together with those that arrived in the
meantime. An event loop that stores what many clients send gathers it: it calls the threads when a turn has brought
nothing more, 3 ms after the first job at the latest. That makes fewer transactions, and the loop and the threads do not
interrupt each other. Where the last jobs came one by one, the next calls its thread at once. Only the tokens of our own
runs are buffered: the first is stored at once, then every 50 ms or 1 kB, and before any other event of that run (§3.1).
While answers stream, their pieces do not wake the thread: it looks every 10 ms for what is due. Jobs whose conversation
is locked are passed to the retry thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from django.db import connection

from conversations.core import database_files
from conversations.core.db_threads import POOL_SIZE, release_connection
from conversations.core.errors import Busy, Unavailable
from conversations.core.status import OK
from conversations.events.log.commit_batch import Committer, WriterTrouble, resolve_futures
from conversations.events.log.records import NewEvent, Stored
from conversations.events.log.retry_thread import RetryThread
from conversations.events.log.token_buffers import TokenBuffers
from conversations.events.log.write_job import FULL, Done, Job, OpenTokens

logger = logging.getLogger(__name__)

MAX_BYTES = 32 << 20  # waiting
MAX_ROWS = 2000  # a transaction
IDLE = 0.1  # seconds after which a connection goes back: no restart of a database is quicker
GATHER = 0.003  # seconds that an event loop may gather jobs before it calls the threads
CLOSE_WITHIN = 8.0  # seconds the database may take for what is queued: less than a server's end waits for it


class WriterThreads:
    """The writer threads of one process. Call `start`, then `store` or `submit`, and `close` at the end."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_open = True
        self._deadline = 0.0  # monotonic, once closed
        self._gathering: asyncio.AbstractEventLoop | None = None  # the loop that will call the threads
        self._gathered = 0  # jobs of it
        self._gather_until = 0.0  # monotonic
        self._is_crowded = True  # the last turns that followed each other brought several jobs
        self._trouble = WriterTrouble()
        self._write_test: Future[list[Stored]] = Future()
        self._write_test.set_result([])
        self._retrying = RetryThread(self._trouble)
        names = ["writer"] if connection.vendor == "sqlite" else [f"writer-{n}" for n in range(1, POOL_SIZE["writer"])]
        self._threads = [WriteThread(name, self._guard, self._trouble, self._retrying) for name in names]

        self._all: tuple[WriteThread | RetryThread, ...] = (*self._threads, self._retrying)

    def start(self) -> None:
        """Start the threads."""
        for thread in self._all:
            thread.start()

    async def store(
        self, events: Sequence[NewEvent], *, in_same_transaction: Callable[[], None] | None = None
    ) -> list[Stored]:
        """Store events together, by `append` in a writer's thread; return after the commit. Raises Busy, Unavailable,
        or the reason why they are invalid.

        `in_same_transaction` changes further rows, after the events. It may run again; an exception from it is raised
        here, and nothing is stored.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[list[Stored]] = loop.create_future()
        self._queue(Job(events, done, _size_of(events), in_same_transaction), loop)
        try:
            return await done
        except asyncio.CancelledError:
            self._call_threads()  # the loop may end with this, before it looks again
            raise

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
        that exception and nothing is stored. `open_tokens` are pieces of an answer, in place of events; they count as
        large as they may grow.
        """
        size = _size_of(events) if open_tokens is None else FULL
        self._queue(Job(events, done, size, in_same_transaction, open_tokens=open_tokens))

    def _queue(self, job: Job, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Queue a job. Its thread is called at once, or by `loop` once that has gathered what its clients send."""
        with self._guard:
            if not self._is_open:
                raise Unavailable("the server is stopping")
            if self.waiting_bytes + job.size > MAX_BYTES:
                raise Busy("the write queue is full: try again later")
            thread = self._thread_of(job)
            is_gathered = loop is not None and self._gathers(loop)
            thread.put(job, calls=not is_gathered)

    def _gathers(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Count a job of this loop, which will call the threads; return False if they are to be called at once, because
        jobs come one by one or another loop gathers. Called with the guard held."""
        if self._gathering is None or self._gathering.is_closed():
            self._gathering = loop
            self._gathered, self._gather_until = 0, time.monotonic() + GATHER
            loop.call_soon(self._call_when_quiet, 0)
        self._gathered += 1
        return self._gathering is loop and (self._is_crowded or self._gathered > 1)

    def _call_when_quiet(self, seen: int) -> None:
        """Call the threads, unless the loop's last turn brought more jobs. Called by the loop once in each turn."""
        if self._gathered > seen and time.monotonic() < self._gather_until:
            asyncio.get_running_loop().call_soon(self._call_when_quiet, self._gathered)
            return
        self._call_threads()

    def _call_threads(self) -> None:
        with self._guard:
            self._gathering = None
            self._is_crowded = self._gathered > 1
            for thread in self._threads:
                thread.call()

    def _thread_of(self, job: Job) -> WriteThread:
        if len(self._threads) == 1:
            return self._threads[0]
        if job.open_tokens is not None:
            return self._threads[hash(job.open_tokens.source.conversation) % len(self._threads)]
        first = job.events[0] if job.events else None
        return self._threads[hash(first and (first.conversation or first.topic)) % len(self._threads)]

    @property
    def waiting_bytes(self) -> int:
        """The size of the queue, in bytes."""
        return sum(thread.size for thread in self._threads)

    @property
    def waiting_jobs(self) -> int:
        """The number of queued jobs, including those that wait for a lock."""
        return sum(len(thread.jobs) for thread in self._threads) + len(self._retrying.jobs)

    def is_alive(self) -> bool:
        """Return whether all threads are running."""
        return all(thread.is_alive() for thread in self._all)

    @property
    def state(self) -> str:
        """`ok`, or the reason why nothing can be written. In the second case writing is tried again, so that the next
        result is current."""
        if not self.is_alive():
            return "a writer thread has ended: restart this process"
        if (trouble := database_files.trouble() or self._trouble.text) and self._write_test.done():
            self._write_test = Future()
            with contextlib.suppress(Busy, Unavailable):
                self.submit((), self._write_test, in_same_transaction=_write_something)
        return trouble or OK

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
        resolve_futures(
            [(job, Unavailable("the server stopped before the database responded. Try again")) for job in jobs]
        )


class WriteThread(threading.Thread):
    """Owns one database connection while there is work. `guard` is the writer's lock over all queues."""

    def __init__(self, name: str, guard: threading.Lock, trouble: WriterTrouble, retrying: RetryThread) -> None:
        super().__init__(name=name, daemon=True)
        self.jobs: deque[Job] = deque()
        self.size = 0  # bytes of them
        self.under_way: Sequence[Job] = ()
        self._is_open = True
        self._is_resting = False  # until something comes; otherwise it looks again by itself
        self._is_called = False  # to take the jobs that are queued
        self._news = threading.Condition(guard)
        self._token_buffers = TokenBuffers()
        self._committer = Committer(trouble)
        self._retrying = retrying

    def put(self, job: Job, *, calls: bool = True) -> None:
        """Queue a job, and call the thread, or leave that to whoever gathers. Called with the guard held."""
        self.size += job.size
        self.jobs.append(job)
        if calls:
            self._is_called = True
            if job.open_tokens is None or self._is_resting:
                self._news.notify()

    def call(self) -> None:
        """Have the queued jobs stored. Called with the guard held."""
        if self.jobs:
            self._is_called = True
            self._news.notify()

    def close(self) -> None:
        """Write what is queued, then end. Returns at once."""
        with self._news:
            self._is_open = False
            self._news.notify()

    def abandon(self) -> list[Job]:
        """Discard and return the queued jobs, except those being stored. Called with the guard held, once closed."""
        jobs = [*self.under_way, *self.jobs]
        self.jobs.clear()
        self.size = 0
        return jobs

    def run(self) -> None:
        """Commit the queued jobs at once; those that arrive in the meantime form the next batch."""
        while (jobs := self._next()) is not None:
            self._commit(self._join_tokens(jobs, is_last=not self._is_open))
        self._commit(self._join_tokens([], is_last=True))
        connection.close()

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Store jobs; those of locked conversations are passed to the retry thread, and so are later ones of the same
        conversations."""
        self.under_way = jobs
        try:
            free = self._retrying.sift(jobs)
            if waiting := self._committer.commit(free):
                self._retrying.take(waiting)
        finally:
            self.under_way = ()

    def _join_tokens(self, jobs: list[Job], *, is_last: bool) -> list[Job]:
        """Join tokens; if that fails, store them separately, because the thread must not die."""
        try:
            return self._token_buffers.join(jobs, time.monotonic(), is_last=is_last)
        except Exception:
            logger.exception("tokens could not be joined")
            return jobs

    def _next(self) -> list[Job] | None:
        """Wait for work or for a token buffer that is due; return None if closed and empty."""
        if not self._wait(IDLE):
            release_connection()  # lent to nobody while there is nothing to do; the database may be restarted meanwhile
            self._wait(None)
        with self._news:
            return self._take_jobs() if self._is_open or self.jobs else None

    def _wait(self, seconds: float | None) -> bool:
        """Wait for this many seconds, or until a token buffer is due; return False if there is nothing to do then."""
        with self._news:
            due = self._token_buffers.due_in(time.monotonic())
            self._is_resting = due is None
            has_come = self._news.wait_for(self._is_wanted, seconds if due is None else due)
            return has_come or due is not None

    def _is_wanted(self) -> bool:
        return (self._is_called and bool(self.jobs)) or not self._is_open

    def _take_jobs(self) -> list[Job]:
        jobs, rows = [], 0
        while self.jobs and rows < MAX_ROWS:
            job = self.jobs.popleft()
            jobs.append(job)
            rows += len(job.events)
            self.size -= job.size
        self._is_called = bool(self.jobs)
        return jobs


def _size_of(events: Sequence[NewEvent]) -> int:
    return sum([len(event.body) for event in events])


def _write_something() -> None:
    """Write a row unchanged, to detect a database that is full, locked or read-only."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE conversations_meta SET value=value WHERE name='epoch'")
