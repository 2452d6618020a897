"""Guard open sockets and long requests: end those whose permissions ended, within a second even if no notification
arrives (law H), and limit how many sockets and responses a principal has open. Whether a socket may be opened at all is
checked by `EventsConsumer.connect` in `conversations/asgi/socket_consumer.py`."""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from conversations.access import authentication
from conversations.access.authentication import RECONNECT, Caller
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import SwitchboardError
from conversations.core.principals import Principal
from conversations.events import commit_listeners
from conversations.realtime.send_gate import SendGate

logger = logging.getLogger(__name__)

POLL_EVERY_S = 0.5
MIN_POLL_INTERVAL_S = 0.1  # however often a change of rights is announced
HEAD_EVERY = 15.0  # seconds between two `head` frames of a topic


T = TypeVar("T")
Key = TypeVar("Key")


class GuardedSocket(Protocol):
    """An open socket, or a long request."""

    caller: Caller

    def dismiss(self, code: int) -> None:
        """Send nothing more and close with this code."""

    def send_heads(self) -> None:
        """Send the head of each topic."""


class GuardedRequest:
    """A long request that is guarded: a poll that waits, an import, an export."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self._refusal: SwitchboardError | None = None
        self._ended = asyncio.Event()

    def dismiss(self, code: int) -> None:
        """End it."""
        self._refusal = authentication.refusal(code)
        self._ended.set()

    def send_heads(self) -> None:
        """Do nothing: a request has no heads to send."""

    def check(self) -> None:
        """Raise the error with which it was dismissed, if it was."""
        if self._refusal is not None:
            raise self._refusal

    async def unless_dismissed(self, work: Awaitable[T]) -> T:
        """Return the result of `work`; it is cancelled when the reader is dismissed. Raises like `check`."""
        task, ending = asyncio.ensure_future(work), asyncio.ensure_future(self._ended.wait())
        try:
            await asyncio.wait({task, ending}, return_when=asyncio.FIRST_COMPLETED)
            self.check()
            return await task
        finally:
            ending.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


class SocketRegistry:
    """All open sockets of this process. Call `start` in its loop.

    While a check is late because the database does not respond, frames to the sockets are held.
    """

    def __init__(self) -> None:
        self.send_gate = SendGate()
        self.sockets: set[GuardedSocket] = set()
        self.responses: set[GuardedSocket] = set()  # requests and sockets of /v1/responses
        self._readers: set[GuardedSocket] = set()
        self.topics: Counter[Principal] = Counter()  # that one principal follows, over all its sockets
        self._open: Counter[tuple[Principal, bool]] = Counter()  # of each principal; True: of /v1/responses
        self.drops: Counter[int] = Counter()  # sockets we closed, by code
        self._pool = DatabaseThreads("watch")
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._stop_listening: Callable[[], None] = lambda: None
        self._looked_at = 0.0  # monotonic, the beginning of the last look

    def admit(self, socket: GuardedSocket, *, most: int, is_response: bool = False) -> bool:
        """Guard a socket, or a reader of `/v1/responses`, from now on; return False if its principal already has `most`
        of them open here."""
        if self._open[socket.caller.principal, is_response] >= most:
            return False
        self._open[socket.caller.principal, is_response] += 1
        self._guard_too(self.responses if is_response else self.sockets, socket)
        return True

    def forget(self, socket: GuardedSocket) -> None:
        """Remove a closed socket; one that was not admitted is ignored."""
        for is_response, there in enumerate((self.sockets, self.responses)):
            if socket in there:
                there.discard(socket)
                _give_back(self._open, (socket.caller.principal, bool(is_response)))

    @contextmanager
    def reading(self, caller: Caller) -> Iterator[GuardedRequest]:
        """Guard a long request."""
        reader = GuardedRequest(caller)
        self._guard_too(self._readers, reader)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def _guard_too(self, sockets: set[GuardedSocket], socket: GuardedSocket) -> None:
        """Guard one more; the check runs only while there is something to guard."""
        if not (self.sockets or self.responses or self._readers):
            self._wake.set()
        sockets.add(socket)

    @property
    def guarded(self) -> set[GuardedSocket]:
        """Everything whose permissions are checked: sockets, readers of responses, and other long requests."""
        return self.sockets | self.responses | self._readers

    def release_topics(self, principal: Principal, topics: int) -> None:
        """Reduce the number of topics that a principal follows."""
        _give_back(self.topics, principal, topics)

    def start(self) -> None:
        """Start the checks."""
        loop = asyncio.get_running_loop()

        def revoked() -> None:
            loop.call_soon_threadsafe(self._wake.set)

        self._stop_listening = commit_listeners.on_revoked(revoked)
        self._tasks = [
            asyncio.create_task(run_forever(self._guard, what="checking permissions"), name="watch-guard"),
            asyncio.create_task(run_forever(self._heads, what="sending heads"), name="watch-heads"),
        ]

    async def stop(self) -> None:
        """Stop the checks."""
        self._stop_listening()
        await cancel_all(self._tasks)
        self._pool.shutdown(wait=False)

    async def _guard(self) -> None:
        if not self.guarded and self._looked_at:
            await self._wake.wait()
        elif (wait := self._looked_at + POLL_EVERY_S - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
        await asyncio.sleep(self._looked_at + MIN_POLL_INTERVAL_S - time.monotonic())
        self._wake.clear()
        self._looked_at = time.monotonic()
        if self.guarded:
            await self._look()
        self.send_gate.passed(self._looked_at)

    async def _look(self) -> None:
        concerned = self.guarded
        try:
            gone = await self._pool.run(authentication.revoked, {s.caller for s in concerned})
            # Whoever lost one of several roles connects again without it; a request checks its own right itself.
            concerned = {s for s in self.guarded if gone.get(s.caller) != RECONNECT or s in self.sockets}
        except Exception:
            logger.exception("permissions could not be checked: all sockets were closed and may reconnect")
            gone = {s.caller: RECONNECT for s in concerned}
        for socket in [s for s in concerned if s.caller in gone]:
            socket.dismiss(gone[socket.caller])

    async def _heads(self) -> None:
        await asyncio.sleep(HEAD_EVERY)
        for socket in list(self.sockets):
            socket.send_heads()


def _give_back(counts: Counter[Key], key: Key, number: int = 1) -> None:
    counts[key] -= number
    if counts[key] <= 0:
        del counts[key]
