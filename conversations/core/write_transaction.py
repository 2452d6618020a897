"""`write_transaction()`: the only way to open a write transaction (§6)."""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, OperationalError, connection, connections, transaction

from conversations.core import database_files


class FifoLock:
    """A first come, first served lock. SQLite's busy handler sleeps up to 100 ms between tries and starves an action
    for seconds beside a busy writer; with this lock an action waits for one batch at most."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._is_taken = False

    def acquire(self, within: float) -> bool:
        """Wait for the lock at most `within` seconds; return whether it was taken."""
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            if mine.acquire(timeout=within):  # handed over by `release`
                return True
        except BaseException:  # raised by a signal: the lock must not be handed to a waiter that has given up
            if not self._gives_up(mine):
                self.release()
            raise
        return not self._gives_up(mine)

    def _gives_up(self, mine: threading.Lock) -> bool:
        """Stop waiting; return False if the lock was handed over at the last moment."""
        with self._guard:
            if mine not in self._waiting:
                return False
            self._waiting.remove(mine)
        return True

    def release(self) -> None:
        """Hand the lock to the longest waiting thread."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


ACTIONS = 0x5377_6163  # PostgreSQL's advisory lock of actions, any number of its own


class TransactionDepth(threading.local):
    """How many `write_transaction()` this thread is inside, and how many transactions it has begun."""

    depth = number = 0

    def __enter__(self) -> None:
        self.number += not self.depth
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


PATIENCE = 10.0  # seconds for the lock and for the file together: SQLite's own settings say as much for the file


class WaitedBefore(threading.local):
    """How long this thread's work waited before it began, as long as that shortens its wait for the file."""

    seconds: float = 0.0


_write_lock = FifoLock()
_deeper = TransactionDepth()
_waited = WaitedBefore()


@contextmanager
def asked_at(at: float) -> Iterator[None]:
    """Count the time from `at` (monotonic clock), when the work was requested, until now as part of its wait for the
    file: of its first transaction alone, and not the time it works before that."""
    _waited.seconds = time.monotonic() - at
    try:
        yield
    finally:
        _waited.seconds = 0.0


@contextmanager
def write_transaction(*, within: float | None = None) -> Iterator[None]:
    """Hold the process's write lock and one transaction. Inside another `write_transaction()` of the same thread it
    joins that one, without a savepoint: an error in it ends the whole.

    PostgreSQL needs no lock: writers to the same conversation wait for its row. `within`: how many seconds to wait for
    either, if less than `PATIENCE`; raises OperationalError after them, and if SQLite's files were replaced.
    """
    if in_write_transaction():
        with _deeper, transaction.atomic(savepoint=False):
            yield
        return
    here: Any = connections[DEFAULT_DB_ALIAS]  # Any: `dashboard.sqlite` adds an attribute
    if here.vendor == "sqlite":
        database_files.require_own()
        with _HeldWriteLock(here, PATIENCE if within is None else within), _deeper, transaction.atomic():
            _waited.seconds = 0.0
            yield
        return
    with _deeper, transaction.atomic():
        if within is not None:
            _wait_for_rows(within)
        yield


class _HeldWriteLock:
    """Hold the process's write lock. While another process has the file, all waiting threads give up together, not one
    by one."""

    def __init__(self, here: Any, patience: float) -> None:
        self._here, self._patience = here, patience

    def __enter__(self) -> None:
        began = time.monotonic() - _waited.seconds
        if not _write_lock.acquire(_time_left(began, self._patience)):
            raise OperationalError(f"could not start writing within {self._patience:g} s")
        try:
            self._here.begin_within = _time_left(began, self._patience)
        except BaseException:  # raised by a signal
            _write_lock.release()
            raise

    def __exit__(self, *_: object) -> None:
        _write_lock.release()


@contextmanager
def write_lock(within: float) -> Iterator[None]:
    """Hold the process's write lock without a transaction, for a checkpoint of SQLite's log. Raises OperationalError if
    it did not come within so many seconds."""
    with _HeldWriteLock(connections[DEFAULT_DB_ALIAS], within):
        yield


def _wait_for_rows(seconds: float) -> None:
    """Let PostgreSQL give up a locked row after so many seconds, until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout',%s,true)", [f"{max(1, round(seconds * 1000))}ms"])


def _time_left(began: float, patience: float) -> float:
    return max(0.0, patience - (time.monotonic() - began))  # with nothing left it is tried once


def lock_actions(*, is_shared: bool = False) -> None:
    """Let one action at a time run in the whole deployment until this transaction ends, so what it reads stays true
    while it decides. Call it first in an action's `write_transaction()`; on SQLite that already has this effect.

    `is_shared`: actions that change nobody's permissions and lock the rows they decide on run beside each other, and
    exclude all others: permissions that such an action has read stay as they are until it has committed. Actions are
    rare and short; `append` does not take this lock and waits only for rows, so there is no deadlock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_advisory_xact_lock{'_shared' if is_shared else ''}(%s)", [ACTIONS])


def transaction_number() -> int:
    """Return which of this thread's transactions the current one is, or was last."""
    return _deeper.number


def in_write_transaction() -> bool:
    """Return whether this thread is inside `write_transaction()`."""
    return _deeper.depth > 0
