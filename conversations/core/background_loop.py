"""Background loops that outlive an error: one bad round is logged, the next one comes. And the end of such tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

logger = logging.getLogger(__name__)

PAUSE = 0.2  # seconds after an error


async def run_forever(rounds: Callable[[], Awaitable[None]], *, what: str) -> None:
    """Do one round after the other, for ever; each one waits for its own time. An error costs its round
    and a short pause: what fails at once must not fill the log and the loop."""
    while True:
        try:
            await rounds()
        except Exception:
            logger.exception("%s failed once", what)
            await asyncio.sleep(PAUSE)


async def cancel_all(tasks: Iterable[asyncio.Future[Any] | None]) -> None:
    """End tasks, and wait until they have ended, however."""
    ending = [task for task in tasks if task is not None]
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
