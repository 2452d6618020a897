"""Background loops that survive errors: a failed round is logged, and the next one follows. Also cancels such tasks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

logger = logging.getLogger(__name__)

PAUSE = 0.2  # seconds after an error


async def run_forever(rounds: Callable[[], Awaitable[None]], *, what: str) -> None:
    """Run one round after the other forever; each round waits for its own time. An error costs its round and a short
    pause, so that a permanent failure floods neither the log nor the loop."""
    while True:
        try:
            await rounds()
        except Exception:
            logger.exception("%s failed once", what)
            await asyncio.sleep(PAUSE)


async def cancel_all(tasks: Iterable[asyncio.Future[Any] | None]) -> None:
    """Cancel tasks, and wait until they have ended in any way."""
    ending = [task for task in tasks if task is not None]
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
