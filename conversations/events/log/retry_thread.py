"""The writer's thread for events that wait for a lock: conversations held by an action, a rebuild or another process.
The writer's other threads store all other events in the meantime."""

import logging
import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import NamedTuple

from django.db import connection

from conversations.core.db_threads import release_connection
from conversations.core.errors import Busy, Unavailable
from conversations.events.log.commit_batch import Committer, WriterTrouble, resolve_futures
from conversations.events.log.lock_waits import AT_ONCE, BRIEFLY
from conversations.events.log.write_job import Job

logger = logging.getLogger(__name__)

PATIENCE = 8.0  # seconds a job waits for a lock, as long as `lock_timeout` lets anybody else wait
LAST_PATIENCE = 2.0  # seconds, once the writer is closed
MAX_TRIED_JOBS = 1000  # jobs of one try
MAX_JOBS = 5000  # that wait for one conversation
MAX_BYTES = 8 << 20  # that wait for one conversation
MAX_ALL = 32 << 20  # bytes that wait for all of them


class DelayedJob(NamedTuple):
    """A job and its deadline (monotonic time)."""

    job: Job
    until: float


class ConversationQueue:
    """The jobs that wait for one conversation, in order; a job with several conversations waits alone."""

    def __init__(self) -> None:
        self.lates: deque[DelayedJob] = deque()
        self.size = 0  # bytes

    def put(self, job: Job) -> None:
        """Add a job at the end."""
        self.lates.append(DelayedJob(job, time.monotonic() + PATIENCE))
        self.size += job.size

    def pop(self) -> Job:
        """Take the oldest job."""
        job = self.lates.popleft().job
        self.size -= job.size
        return job


class RetryThread(threading.Thread):
    """Retries all jobs whose locks have been released together, then waits briefly for one conversation in turn."""

    def __init__(self, trouble: WriterTrouble) -> None:
        super().__init__(name="writer-retry", daemon=True)
        self._queues: dict[Hashable, ConversationQueue] = {}
        self._news = threading.Condition()
        self._is_open = True
        self._committer = Committer(trouble)

    @property
    def jobs(self) -> list[Job]:
        """The waiting jobs."""
        with self._news:
            return [late.job for queue in self._queues.values() for late in queue.lates]

    def sift(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Take over the jobs of conversations that already have waiting jobs here; return the others."""
        with self._news:  # without it `_first` could be met while it moves the only conversation that waits
            if not self._queues:
                return jobs
            mine = {id(job) for job in jobs if job.key is not None and job.key in self._queues}
            self._enqueue([job for job in jobs if id(job) in mine])
        return [job for job in jobs if id(job) not in mine]

    def take(self, jobs: Sequence[Job]) -> None:
        """Take over jobs that could not be stored, in their order."""
        with self._news:
            self._enqueue(jobs)

    def close(self) -> None:
        """Wait a little for locked rows, then end. Returns at once."""
        with self._news:
            self._is_open = False
            self._news.notify()

    def run(self) -> None:
        """Retry until all jobs are stored or given up."""
        while (jobs := self._next()) is not None:
            self._settle(jobs, self._committer.commit(jobs, AT_ONCE))
            if first := self._first():
                self._settle(first, self._committer.commit(first, BRIEFLY))
        connection.close()

    def _enqueue(self, jobs: Sequence[Job]) -> None:
        whole = sum(queue.size for queue in self._queues.values())
        for job in jobs:
            queue = self._queues.setdefault(_key(job), ConversationQueue())
            is_full = queue.size + job.size > MAX_BYTES or whole + job.size > MAX_ALL or len(queue.lates) >= MAX_JOBS
            if queue.lates and is_full:
                resolve_futures([(job, Busy(f"too many writes are waiting for {_name(job)}: try again later"))])
                continue
            whole += job.size
            queue.put(job)
        self._news.notify()

    def _next(self) -> list[Job] | None:
        """Wait for work and return the oldest job of each conversation; None if closed and empty."""
        self._give_up()
        if not self._queues:
            release_connection()
        with self._news:
            self._news.wait_for(lambda: self._queues or not self._is_open)
            lates = (late for queue in self._queues.values() for late in queue.lates)
            return [late.job for late in islice(lates, MAX_TRIED_JOBS)] if self._queues else None

    def _give_up(self) -> None:
        """Fail the jobs whose deadline has passed."""
        now = time.monotonic() + (0 if self._is_open else PATIENCE - LAST_PATIENCE)
        with self._news:
            over = [q.pop() for q in self._queues.values() for late in list(q.lates) if late.until <= now]
            self._forget_empty()
        for job in over:
            logger.error("not stored: a lock that %s needs was not free in time", _name(job))
        why = "nothing was stored: a lock that {} needs was not free in time. Try again"  # a row's or the table's
        resolve_futures([(job, Unavailable(why.format(_name(job)))) for job in over])

    def _first(self) -> list[Job]:
        """Return the jobs of the next conversation in turn, and move it to the end of the queue."""
        with self._news:
            if not self._queues:
                return []
            key = next(iter(self._queues))
            queue = self._queues[key] = self._queues.pop(key)
            return [late.job for late in islice(queue.lates, MAX_TRIED_JOBS)]

    def _settle(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> None:
        """Remove the jobs that have been completed."""
        done = {id(job) for job in jobs} - {id(job) for job in waiting}
        with self._news:
            for key in {_key(job) for job in jobs if id(job) in done}:
                queue = self._queues[key]
                queue.size -= sum(late.job.size for late in queue.lates if id(late.job) in done)
                queue.lates = deque(late for late in queue.lates if id(late.job) not in done)
            self._forget_empty()

    def _forget_empty(self) -> None:
        self._queues = {key: queue for key, queue in self._queues.items() if queue.lates}


def _key(job: Job) -> Hashable:
    return job.key if job.key is not None else id(job)


def _name(job: Job) -> str:
    keys = sorted({event.conversation for event in job.events if event.conversation is not None})
    return f"conversation {keys[0][:200]}{', or another one in its batch' * (len(keys) > 1)}" if keys else "its topic"
