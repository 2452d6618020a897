"""Store jobs in one transaction and resolve their callers' futures; if it fails, find out which job caused it.

Called by the writer's threads; calls `append`. A job is the events of one caller, stored together or not at all.

Jobs that need rows locked by others wait; a job that cannot be stored fails alone; all other jobs are stored at once.
Only an error of the database itself fails all jobs.
"""

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, InterfaceError, OperationalError, connection, connections
from django.db.backends.utils import CursorWrapper

from conversations.core.db_threads import is_damage, is_read_only, release_connection, resolve, sqlstate, unavailable
from conversations.core.errors import NotSignedIn, SwitchboardError, TooLarge
from conversations.events.log import lock_waits, token_check
from conversations.events.log.append import DEADLOCKS, append
from conversations.events.log.lock_waits import AT_ONCE, LockedElsewhere, LockWait
from conversations.events.log.records import Stored
from conversations.events.log.write_job import Done, Job

logger = logging.getLogger(__name__)

CHECKPOINT = 16_000  # pages; by the writer's connections alone
WRITER_CACHE_KIB = 64 << 10  # of the database's pages; every other connection has `dashboard.databases.PRAGMAS`'
EMPTY_WITHIN_MS = 1000  # how long a server that stops waits for readers
SEARCH_FOR = 0.3  # seconds one batch may spend to find out which of its jobs waits for a lock
# What is an event's own fault, though the databases call it operational: PostgreSQL's class for a value that no index
# can take, and a statement that was cancelled; SQLite's for a statement that it cannot run.
TOO_LARGE, CANCELLED = "54", "57014"
SQLITE_OWN = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_MISMATCH)

Answer = list[Stored] | Exception


class WriterTrouble:
    """The database error of the last attempt of the writer's threads; an empty text if it succeeded."""

    def __init__(self) -> None:
        self.text = ""


class Committer:
    """Stores jobs for one thread, over that thread's connection."""

    def __init__(self, trouble: WriterTrouble) -> None:
        self._trouble = trouble
        self._waiting: list[Job] = []
        self._wait = AT_ONCE
        self._until = 0.0

    def commit(self, jobs: Sequence[Job], wait: LockWait = AT_ONCE) -> list[Job]:
        """Store jobs and resolve their callers' futures; return the jobs that need rows locked by others, in order."""
        self._waiting, self._wait, self._until = [], wait, time.monotonic() + SEARCH_FOR
        self._store(jobs)
        order = {id(job): index for index, job in enumerate(jobs)}
        return sorted(self._waiting, key=lambda job: order[id(job)])

    def _store(self, jobs: Sequence[Job]) -> None:
        jobs = self._in_order(jobs)
        if not jobs:
            return
        events = [event for job in jobs for event in job.events]
        try:
            configure_writer_connection()
            stored = append(events, in_same_transaction=_changes_of(jobs), wait=self._wait, checks_tokens=True)
        except token_check.TokenRevoked as gone:
            self._store_without(gone.holders, jobs)
        except LockedElsewhere as held:
            self._set_aside([job for job in jobs if _needs(job, held)], jobs)
        except Exception as error:  # whatever it is: it costs one job, never the thread
            self._failed(jobs, error)
        else:
            self._trouble.text = ""
            results = iter(stored)
            resolve_futures([(job, [next(results) for _ in job.events]) for job in jobs])

    def _in_order(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Return the jobs that need not wait; queue a job behind those of its conversation that already wait."""
        keys = {job.key for job in self._waiting} - {None}
        if not keys:
            return jobs
        self._waiting += [job for job in jobs if job.key in keys]
        return [job for job in jobs if job.key not in keys]

    def _set_aside(self, held: Sequence[Job], jobs: Sequence[Job]) -> None:
        self._waiting += held
        ids = {id(job) for job in held}
        self._store([job for job in jobs if id(job) not in ids])

    def _failed(self, jobs: Sequence[Job], error: Exception) -> None:
        if is_damage(error) and len(jobs) > 1:  # a page is damaged: who does not need it goes on
            self._halve(jobs)
        elif is_of_database(error):
            self._trouble.text = str(unavailable(error, what="write"))
            logger.error("cannot write: %s", error)
            release_connection()  # it may be broken; the next batch takes another
            resolve_futures([(job, unavailable(error, what="write")) for job in jobs])
        elif len(jobs) > 1 and (not is_of_lock(error) or time.monotonic() < self._until):
            self._halve(jobs)
        elif is_of_lock(error):
            self._waiting += jobs
        else:
            if isinstance(error, SwitchboardError):  # a refusal, which its caller answers: a run that was taken away
                logger.debug("not stored: %s", error)
            else:
                logger.error("an event could not be stored", exc_info=error)
            resolve_futures([(jobs[0], _caller_error(error))])

    def _halve(self, jobs: Sequence[Job]) -> None:
        self._store(jobs[: len(jobs) // 2])
        self._store(jobs[len(jobs) // 2 :])

    def _store_without(self, holders: Container[token_check.Holder], jobs: Sequence[Job]) -> None:
        """Store the others' jobs; fail those whose token was revoked before the commit (law H)."""
        gone = [job for job in jobs if _is_of(holders, job)]
        resolve_futures([(job, NotSignedIn("this token has been revoked; nothing was stored")) for job in gone])
        self._store([job for job in jobs if not _is_of(holders, job)])


def resolve_futures(answers: Sequence[tuple[Job, Answer]]) -> None:
    """Resolve all waiting futures, with one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Done, Answer]]] = {}
    for done, result in _waiters(answers):
        if isinstance(done, asyncio.Future):
            by_loop.setdefault(done.get_loop(), []).append((done, result))
        else:
            resolve([(done, result)])
    for loop, pairs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody who waits
            loop.call_soon_threadsafe(resolve, pairs)


def _waiters(answers: Sequence[tuple[Job, Answer]]) -> list[tuple[Done, Answer]]:
    waiters: list[tuple[Done, Answer]] = []
    for job, result in answers:
        if job.on_done is not None:
            waiters.append((job.on_done, result))
        waiters += [(done, result if isinstance(result, Exception) else []) for done in job.joined]
    return waiters


def configure_writer_connection() -> None:
    """Configure a new SQLite connection of this thread as the one that checkpoints, and as one that only writes."""
    here: Any = connections[DEFAULT_DB_ALIAS]  # Any: `dashboard.sqlite` adds an attribute
    if here.connection is None and here.vendor == "sqlite":
        here.only_writes = True
        with here.cursor() as cursor:
            be_writer(cursor)


def be_writer(cursor: CursorWrapper) -> None:
    """Configure SQLite's connection as the one that checkpoints and caches more pages."""
    cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")
    cursor.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}")


def empty_wal() -> None:
    """Write SQLite's write-ahead log into the database file and empty it, when the writing process ends. If a reader in
    another process prevents this, the next writer does it."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout={EMPTY_WITHIN_MS}")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def is_of_database(error: Exception) -> bool:
    """Return whether the error lies with the database itself, so that no job of a batch can succeed."""
    if is_damage(error) or is_read_only(error):
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF not in SQLITE_OWN
    return not sqlstate(error).startswith((TOO_LARGE, CANCELLED)) and not is_of_lock(error)


def _caller_error(error: Exception) -> Exception:
    """Return the exception that a caller gets for an event that the database rejects."""
    if not isinstance(error, OperationalError):
        return error
    is_too_large = sqlstate(error).startswith(TOO_LARGE)
    return (
        TooLarge(f"the database does not accept this value: {error}")
        if is_too_large
        else unavailable(error, what="write")
    )


def is_of_lock(error: Exception) -> bool:
    """Return whether a transaction failed because others held a lock."""
    return isinstance(error, Error) and sqlstate(error) in (lock_waits.TIMED_OUT, *DEADLOCKS)


def _changes_of(jobs: Sequence[Job]) -> Callable[[], None] | None:
    """Return what makes the further changes of these jobs; None where there are none."""
    changes = [job.in_same_transaction for job in jobs if job.in_same_transaction is not None]
    return partial(_make, changes) if changes else None


def _make(changes: Sequence[Callable[[], None]]) -> None:
    for change in changes:
        change()


def _needs(job: Job, held: LockedElsewhere) -> bool:
    return any(event.conversation in held.keys or event.principal in held.principals for event in job.events)


def _is_of(holders: Container[token_check.Holder], job: Job) -> bool:
    return any((event.principal, event.credential) in holders for event in job.events)
