"""Background loops that survive errors: a failed round is logged, and the next one follows. Also cancels such tasks."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

from conversations.core.db_threads import is_unavailable
from conversations.core.errors import Unavailable

logger = logging.getLogger(__name__)

PAUSE = 0.2  # seconds after an error; twice as long after each further one
MAX_PAUSE = 1.0  # what is followed is late by no more than law A says
LOGGED_EVERY = 60.0  # seconds between two lines about the same kind of error


async def run_forever(rounds: Callable[[], Awaitable[None]], *, what: str) -> None:
    """Run one round after the other forever; each round waits for its own time. An error costs its round and a pause,
    so that a permanent failure floods neither the log nor the loop."""
    failures, pause = FailureLog(what), PAUSE
    while True:
        try:
            await rounds()
        except Exception as error:
            failures.add(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)
        else:
            failures.end()
            pause = PAUSE


class FailureLog:
    """Logs the failures of one loop: of each kind the first, then one line a minute with their number, and their end.
    An unavailable database is told without a traceback."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._unlogged = Counter[type[Exception]]()
        self._logged_at: dict[type[Exception], float] = {}
        self._in_a_row = 0
        self._is_logged = False  # since it last worked

    def add(self, error: Exception) -> None:
        """Log a failed round, or only count it."""
        kind, now = type(error), monotonic()
        self._in_a_row += 1
        self._unlogged[kind] += 1
        if kind in self._logged_at and now - self._logged_at[kind] < LOGGED_EVERY:
            return
        self._logged_at[kind], times = now, self._unlogged.pop(kind)
        self._is_logged = True
        if times > 1:
            logger.warning("%s failed %d times more: %s", self._what, times, error)
        elif isinstance(error, Unavailable) or is_unavailable(error):
            logger.warning("%s failed once: %s", self._what, error)
        else:
            logger.error("%s failed once", self._what, exc_info=error)

    def end(self) -> None:
        """Log that a round has succeeded after several failed, unless these were only counted."""
        if self._in_a_row > 1 and self._is_logged:
            logger.info("%s works again after %d failures", self._what, self._in_a_row)
        self._in_a_row, self._is_logged = 0, False


def take_error(shared: asyncio.Future[Any]) -> None:
    """Take the error of work that may end after all who waited for it have given up: asyncio logs one that nobody
    takes. For `add_done_callback`."""
    if not shared.cancelled():
        shared.exception()


async def cancel_all(tasks: Iterable[asyncio.Future[Any] | None]) -> None:
    """Cancel tasks, and wait until they have ended in any way."""
    ending = [task for task in tasks if task is not None]
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
