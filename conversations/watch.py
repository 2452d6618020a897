"""Looks after open sockets: closes those whose rights ended, within a second and without the doorbell (law H), and
keeps how many one principal has open."""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from conversations import doorbell, sessions
from conversations.holding import Hold
from conversations.lasting import repeat
from conversations.principals import Principal
from conversations.sessions import Visitor
from conversations.threads import DatabaseThreads

logger = logging.getLogger(__name__)

LOOK_EVERY = 0.5  # seconds
TRY_AGAIN = 1012  # close code: come back
HEAD_EVERY = 15.0  # seconds between two `head` frames of a topic


class Guarded(Protocol):
    """An open socket."""

    visitor: Visitor

    def dismiss(self, code: int) -> None:
        """Send nothing more and close with this code."""

    def tell_heads(self) -> None:
        """Say where each topic is."""


class Watch:
    """All open sockets of this process. `start` in the loop it shall live in.

    While a look is late, since the database hangs, what the sockets would send is held.
    """

    def __init__(self) -> None:
        self.hold = Hold()
        self.sockets: set[Guarded] = set()
        self.topics: Counter[Principal] = Counter()  # that one principal follows, over all its sockets
        self._open: Counter[Principal] = Counter()
        self.drops: Counter[int] = Counter()  # sockets we closed, by code
        self._pool = DatabaseThreads("watch")
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._stop_listening: Callable[[], None] = lambda: None
        self._looked_at = 0.0  # monotonic, the beginning of the last look

    def admit(self, socket: Guarded, *, most: int) -> bool:
        """Look after a socket from now on; False when its principal has `most` open here already."""
        if self._open[socket.visitor.principal] >= most:
            return False
        self._open[socket.visitor.principal] += 1
        self.sockets.add(socket)
        return True

    def forget(self, socket: Guarded) -> None:
        """A socket is closed; one that was not admitted is nothing new."""
        if socket in self.sockets:
            self.sockets.discard(socket)
            _give_back(self._open, socket.visitor.principal)

    def left(self, principal: Principal, topics: int) -> None:
        """A principal follows so many topics no more."""
        _give_back(self.topics, principal, topics)

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()

        def revoked() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        self._stop_listening = doorbell.on_revoked(revoked)
        self._tasks = [
            asyncio.create_task(repeat(self._guard, what="the watch"), name="watch-guard"),
            asyncio.create_task(repeat(self._heads, what="telling heads"), name="watch-heads"),
        ]

    async def stop(self) -> None:
        """End it."""
        self._stop_listening()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown(wait=False)

    async def _guard(self) -> None:
        wait = self._looked_at + LOOK_EVERY - time.monotonic()
        if wait > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
        self._wake.clear()
        self._looked_at = time.monotonic()
        if self.sockets:
            await self._look()
        self.hold.passed(self._looked_at)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            gone = await loop.run_in_executor(self._pool, sessions.revoked, {s.visitor for s in self.sockets})
        except Exception:
            logger.exception("nobody's rights could be looked up: all sockets are closed, and may come back")
            gone = {s.visitor: TRY_AGAIN for s in self.sockets}
        for socket in [s for s in self.sockets if s.visitor in gone]:
            socket.dismiss(gone[socket.visitor])

    async def _heads(self) -> None:
        await asyncio.sleep(HEAD_EVERY)
        for socket in list(self.sockets):
            socket.tell_heads()


def _give_back(counts: Counter[Principal], principal: Principal, number: int = 1) -> None:
    counts[principal] -= number
    if counts[principal] <= 0:
        del counts[principal]
