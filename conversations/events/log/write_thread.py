"""One of the writer's threads: stores the jobs in its queue in one transaction after another.

Jobs that a caller waits for are committed with the next free transaction, together with those that arrived in the
meantime. Only the tokens of our own runs are buffered: the first is stored at once, then every 50 ms or 1 kB, and
before any other event of that run (§3.1).
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence

from django.db import connection

from conversations.core.db_threads import release_connection
from conversations.events.log.commit_batch import Committer, Tally
from conversations.events.log.retry_thread import RetryThread
from conversations.events.log.token_buffers import TokenBuffers
from conversations.events.log.write_job import Job

logger = logging.getLogger(__name__)

MAX_ROWS = 2000  # a transaction
IDLE = 0.1  # seconds after which a connection goes back: no restart of a database is quicker


class WriteThread(threading.Thread):
    """Owns one database connection while there is work. `guard` is the writer's lock over all queues."""

    def __init__(self, name: str, guard: threading.Lock, tally: Tally, retrying: RetryThread) -> None:
        super().__init__(name=name, daemon=True)
        self.jobs: deque[Job] = deque()
        self.size = 0  # bytes of them
        self.under_way: Sequence[Job] = ()
        self._is_open = True
        self._news = threading.Condition(guard)
        self._token_buffers = TokenBuffers()
        self._committer = Committer(tally)
        self._retrying = retrying

    def put(self, job: Job) -> None:
        """Queue a job. Called with the guard held."""
        self.size += job.size
        self.jobs.append(job)
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
            has_come = self._news.wait_for(lambda: self.jobs or not self._is_open, seconds if due is None else due)
            return bool(has_come) or due is not None

    def _take_jobs(self) -> list[Job]:
        jobs, rows = [], 0
        while self.jobs and rows < MAX_ROWS:
            job = self.jobs.popleft()
            jobs.append(job)
            rows += len(job.events)
            self.size -= job.size
        return jobs
