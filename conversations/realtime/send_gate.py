"""Hold frames back unless the last check of everybody's permissions is recent (law H).

A check that started at some moment and found no violation proves that nothing was revoked before that moment. If the
database is unresponsive, the next check is late; frames are then held and sent after it.
"""

import asyncio
import time

FRESH = 0.95  # seconds from the beginning of a look: after a revocation no frame goes out later than a second


class SendGate:
    """Open until the first check has started, so that nothing waits for a guard that was never started."""

    def __init__(self) -> None:
        self.sent_bytes = 0  # written directly to subscribers that were up to date; read by any thread
        self._looked_at = float("inf")  # monotonic
        self._opened = asyncio.Event()
        self._slot = asyncio.Lock()

    @property
    def is_held(self) -> bool:
        """Return whether the check that is due is late."""
        return time.monotonic() - self._looked_at > FRESH

    def passed(self, looked_at: float) -> None:
        """Record that a check that started at this time is complete, and sockets without permission were closed."""
        self._looked_at = looked_at
        self._opened.set()

    async def next_slot(self) -> None:
        """Wait for a turn of the loop that no other caller gets, so that one large frame can be written in it."""
        async with self._slot:
            await asyncio.sleep(0)

    async def wait_until_open(self) -> None:
        """Wait until frames may be sent."""
        while self.is_held:
            self._opened.clear()
            await self._opened.wait()
