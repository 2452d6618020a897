"""Background loops that outlive an error: one bad round is logged, the next one comes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

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
