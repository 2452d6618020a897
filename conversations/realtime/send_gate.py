"""Whether frames may go out: only while the last look at everybody's rights is fresh (law H).

A look that began at some moment and found nobody out of place proves that nothing was revoked before that moment. When
a database hangs the next look is late; frames are held then, and go on behind it.
"""

import asyncio
import time

FRESH = 0.95  # seconds from the beginning of a look: after a revocation no frame goes out later than a second


class SendGate:
    """Open until the first look has begun, so that nothing waits for a watch that nobody started."""

    def __init__(self) -> None:
        self._looked_at = float("inf")  # monotonic
        self._opened = asyncio.Event()
        self._turn = asyncio.Lock()

    @property
    def is_held(self) -> bool:
        """Return whether the look that is due is late."""
        return time.monotonic() - self._looked_at > FRESH

    def passed(self, looked_at: float) -> None:
        """A look that began then is over, and whoever may no longer stay was sent away."""
        self._looked_at = looked_at
        self._opened.set()

    async def turn(self) -> None:
        """Return in a turn of the loop in which nobody else returns: a large frame may be written, and no other one."""
        async with self._turn:
            await asyncio.sleep(0)

    async def opened(self) -> None:
        """Wait until frames may go out."""
        while self.is_held:
            self._opened.clear()
            await self._opened.wait()
