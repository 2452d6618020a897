"""`writing()`: the one way to open a write transaction (design, section 6)."""

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

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


ACTIONS = 0x5377_6163  # PostgreSQL's advisory lock of actions, any number of its own


class Held(threading.local):
    """How deep this thread is inside `writing()`."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


_turn = Turn()
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
    with _turn if connection.vendor == "sqlite" else nullcontext(), _deeper, transaction.atomic():
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
