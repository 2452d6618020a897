"""`writing()`: the one way to open a write transaction (design, section 6)."""

import fcntl
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


class Turn:
    """A lock that serves first come, first served. SQLite's own busy handler sleeps up to 100 ms between tries and
    starves an action for seconds beside a hot writer; with this one an action waits for one batch at most."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._is_taken = False

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        mine.acquire()  # handed over by __exit__

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


class TurnOfProcesses:
    """The same between processes that write to one SQLite file: a lock on a file beside it, tried each millisecond.

    It only spares SQLite's handler its long sleeps. What keeps two from writing at once is SQLite's own lock: whoever
    has not had a turn after `PATIENCE`, or cannot make the file, goes on to that one.
    """

    PATIENCE, PAUSE = 1.0, 0.001  # seconds

    def __init__(self) -> None:
        self._files: dict[tuple[int, str], int] = {}
        self._held: int | None = None  # one thread of a process is here at a time

    def __enter__(self) -> None:
        until = time.monotonic() + self.PATIENCE
        file = self._file(f"{connection.settings_dict['NAME']}-turn")
        while file is not None and time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(self.PAUSE)
            except OSError:
                return
            else:
                self._held = file
                return

    def __exit__(self, *_: object) -> None:
        held, self._held = self._held, None
        if held is not None:
            fcntl.flock(held, fcntl.LOCK_UN)

    def _file(self, path: str) -> int | None:
        """Open it, once a process: what was opened before a fork is shared, and no lock between the two."""
        key = os.getpid(), path
        if key not in self._files:
            if not os.path.isabs(path):  # a database in memory
                return None
            try:
                self._files[key] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                return None
        return self._files[key]


ACTIONS = 0x5377_6163  # PostgreSQL's advisory lock of actions, any number of its own


class Held(threading.local):
    """How deep this thread is inside `writing()`."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


_turn, _turn_of_processes = Turn(), TurnOfProcesses()
_deeper = Held()


@contextmanager
def writing() -> Iterator[None]:
    """Hold the process's turn and one transaction. Inside another `writing()` of the same thread it joins that one,
    without a savepoint: what goes wrong in it is the end of the whole.

    PostgreSQL needs no turn: whoever writes to the same conversation waits for its row.
    """
    if is_writing():
        with _deeper, transaction.atomic(savepoint=False):
            yield
        return
    if connection.vendor != "sqlite":
        with _deeper, transaction.atomic():
            yield
        return
    with _turn, _turn_of_processes, _deeper, transaction.atomic():
        yield


def take_turn() -> None:
    """Let one action at a time through, in the whole deployment, until this transaction ends: what it reads stays true
    while it decides. Call it first in an action's `writing()`, which on SQLite is that turn already.

    Actions are rare and short; `append` takes none and waits for rows only, so nobody waits in a circle.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ACTIONS])


def is_writing() -> bool:
    """Tell whether this thread is inside `writing()`."""
    return _deeper.depth > 0
