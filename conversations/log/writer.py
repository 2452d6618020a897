"""The writer: one thread that turns what everybody submits into one transaction after another.

What a caller waits on commits with the next free transaction, together with what arrived meanwhile. Only the tokens of
our own runs wait: the first goes at once, then 50 ms or 1 kB, and before any other event of that run (design 3.1).
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from functools import partial

from django.db import InterfaceError, OperationalError, connection

from conversations.errors import Busy, NotSignedIn, Unavailable
from conversations.log import standing
from conversations.log.append import append
from conversations.log.events import NewEvent, Stored
from conversations.log.job import Done, Job
from conversations.log.segments import Segments
from conversations.threads import give_back, sqlstate, unavailable

logger = logging.getLogger(__name__)

MAX_ROWS = 2000  # a transaction
MAX_BYTES = 32 << 20  # waiting
CHECKPOINT = 16_000  # pages; in this thread alone
IDLE = 0.1  # seconds after which a connection is looked at before it is used again: no restart is quicker
TOO_LARGE = "54"  # PostgreSQL's class for a value that no index can take: the event's fault, not the database's


class Writer(threading.Thread):
    """Owns one database connection. Started by the server, closed by `close`."""

    def __init__(self) -> None:
        super().__init__(name="writer", daemon=True)
        self._jobs: deque[Job] = deque()
        self._bytes = 0
        self._condition = threading.Condition()
        self._is_open = True
        self._segments = Segments()
        self.commits = self.rows = self.stored_bytes = 0
        self._used_at = 0.0

    def submit(
        self, events: Sequence[NewEvent], done: Done | None = None, *, riding: Callable[[], None] | None = None
    ) -> None:
        """Queue events; `done` is answered after their commit. Raises Busy over 32 MiB, Unavailable once closed.

        `riding` changes rows in the same transaction, after the events; it may run again, and what it raises is the
        answer, with nothing stored.
        """
        size = sum(len(e.body) for e in events)
        with self._condition:
            if not self._is_open:
                raise Unavailable("the server is stopping")
            if self._bytes + size > MAX_BYTES:
                raise Busy("the write queue is full: send again later")
            self._bytes += size
            self._jobs.append(Job(events, done, size, riding))
            self._condition.notify()

    @property
    def waiting_bytes(self) -> int:
        """How much is queued."""
        return self._bytes

    @property
    def waiting_jobs(self) -> int:
        """How many callers' events are queued."""
        return len(self._jobs)

    def close(self) -> None:
        """Take nothing more, write what is queued, end the thread."""
        with self._condition:
            self._is_open = False
            self._condition.notify()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        """Commit what is there at once; what piles up meanwhile is the next batch."""
        while True:
            jobs = self._next()
            if jobs is None:
                break
            self._commit(self._joined(jobs, is_last=not self._is_open))
        self._commit(self._joined([], is_last=True))
        connection.close()

    def _joined(self, jobs: list[Job], *, is_last: bool) -> list[Job]:
        """Join tokens; when that fails they go as they are: the thread must live."""
        try:
            return self._segments.join(jobs, time.monotonic(), is_last=is_last)
        except Exception:
            logger.exception("tokens could not be joined")
            return jobs

    def _next(self) -> list[Job] | None:
        """Wait for work or for a token that is due; None when closed and empty."""
        with self._condition:
            while self._is_open and not self._jobs:
                due = self._segments.due_in(time.monotonic())
                if due is not None and due <= 0:
                    break
                self._condition.wait(due)
            if not self._is_open and not self._jobs:
                return None
            jobs, rows = [], 0
            while self._jobs and rows < MAX_ROWS:
                job = self._jobs.popleft()
                jobs.append(job)
                rows += len(job.events)
                self._bytes -= job.size
            return jobs

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Store the jobs in one transaction; on failure in halves, so that one bad job costs one job."""
        if not jobs:
            return
        try:
            self._look_at_connection()
            events = [event for job in jobs for event in job.events]
            stored = append(events, riding=partial(_ride, jobs, events))
        except standing.TokenRevoked as gone:
            self._commit_without(gone.principals, jobs)
        except (OperationalError, InterfaceError) as error:
            if sqlstate(error).startswith(TOO_LARGE):
                self._commit_halves(jobs, error)
                return
            logger.error("cannot write: %s", error)
            give_back()  # it may be broken; the next batch takes another
            _answer([(job.done, unavailable(error, what="write")) for job in jobs])
        except Exception as error:  # whatever it is: it costs one job, never the thread
            self._commit_halves(jobs, error)
        else:
            self.commits, self.rows = self.commits + 1, self.rows + len(stored)
            self.stored_bytes += sum(job.size for job in jobs)
            answers, at = [], 0
            for job in jobs:
                answers.append((job.done, stored[at : at + len(job.events)]))
                at += len(job.events)
            _answer(answers)

    def _look_at_connection(self) -> None:
        """Take another one, a good one, after a pause in which the database may have been restarted."""
        now = time.monotonic()
        if now - self._used_at > IDLE:
            give_back()
        self._used_at = now
        if connection.connection is None and connection.vendor == "sqlite":
            connection.cursor().execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")

    def _commit_halves(self, jobs: Sequence[Job], error: Exception) -> None:
        if len(jobs) > 1:
            self._commit(jobs[: len(jobs) // 2])
            self._commit(jobs[len(jobs) // 2 :])
        else:
            logger.error("an event could not be stored", exc_info=error)
            _answer([(jobs[0].done, error)])

    def _commit_without(self, principals: Container[str], jobs: Sequence[Job]) -> None:
        """Store the others' jobs; tell those whose token was revoked before the commit (law H)."""
        gone = [job for job in jobs if _is_of(principals, job)]
        _answer([(job.done, NotSignedIn("this token was revoked: nothing was stored")) for job in gone])
        self._commit([job for job in jobs if not _is_of(principals, job)])


def _ride(jobs: Sequence[Job], events: Sequence[NewEvent]) -> None:
    standing.check(events)
    for job in jobs:
        if job.riding is not None:
            job.riding()


def _is_of(principals: Container[str], job: Job) -> bool:
    return any(event.principal in principals for event in job.events)


def _answer(answers: Sequence[tuple[Done | None, list[Stored] | Exception]]) -> None:
    """Tell everybody who waits; one hop into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Done, list[Stored] | Exception]]] = {}
    for done, answer in answers:
        if isinstance(done, asyncio.Future):
            by_loop.setdefault(done.get_loop(), []).append((done, answer))
        elif done is not None:
            _settle([(done, answer)])
    for loop, some in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody who waits
            loop.call_soon_threadsafe(_settle, some)


def _settle(answers: Sequence[tuple[Done, list[Stored] | Exception]]) -> None:
    for done, answer in answers:
        if done.done():  # given up
            continue
        if isinstance(answer, Exception):
            done.set_exception(answer)
        else:
            done.set_result(answer)
