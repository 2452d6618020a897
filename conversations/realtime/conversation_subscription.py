"""One topic of one socket: an integer (the last seq sent) and a wake-up. Pulls from the ring, else the database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from conversations.realtime import frames
from conversations.realtime.send_gate import SendGate

if TYPE_CHECKING:
    from conversations.realtime.feed import Mode
    from conversations.realtime.hub import Hub

NEWEST = 60  # events sent first to a client that names no place
SLOW_AFTER = 20.0  # seconds a send may block


class TooSlow(Exception):
    """The reader did not read for 20 seconds."""


class SocketWriter:
    """How a subscription sends: ready frames straight to the transport where it takes them, else an ASGI send."""

    def __init__(
        self,
        send: Callable[[Mapping[str, object]], Awaitable[None]],
        write: Callable[[bytes], bool] | None,
        hold: SendGate | None = None,
        room: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._send, self.write, self._hold, self._room = send, write, hold or SendGate(), room
        self.turn = asyncio.Lock()  # of the topic that reads the database and sends: not all of them hold MiB at once

    async def frame(self, frame: frames.Frame) -> None:
        """Send one frame, once frames may go out. Raises TooSlow when the reader does not read."""
        if frame.is_large:
            await self._turn()
        if self._hold.is_held:
            await self._hold.opened()
        if self.write is None or not self.write(frame.wire):
            await self.message(frame.message)

    async def _turn(self) -> None:
        """Wait until there is room for the bytes that all share (a message of one's own is another copy), and until no
        other large frame goes out. Raises TooSlow."""
        if self._room is not None:
            try:
                async with asyncio.timeout(SLOW_AFTER):
                    await self._room()
            except TimeoutError:
                raise TooSlow from None
        await self._hold.turn()

    async def text(self, text: str) -> None:
        """Send one text message."""
        await self.message({"type": "websocket.send", "text": text})

    def hint(self, text: str) -> bool:
        """Send a text if there is room for it now, and tell whether; a reader without room hears what matters later."""
        if self._hold.is_held:
            return False
        if self.write is not None:
            return self.write(frames.wire(text.encode()))
        self._hinting = asyncio.ensure_future(self._send({"type": "websocket.send", "text": text}))
        return True

    async def message(self, message: Mapping[str, object]) -> None:
        """Send one ASGI message, once frames may go out, within the time a reader has."""
        if self._hold.is_held:
            await self._hold.opened()
        try:
            async with asyncio.timeout(SLOW_AFTER):  # `wait_for` may lose a cancellation (Python before 3.12)
                await self._send(message)
        except TimeoutError:
            raise TooSlow from None


def _no_room(_: bytes) -> bool:
    return False


def report_failure(failed: Callable[[BaseException], None], task: asyncio.Task[None]) -> None:
    """Call `failed` with what a task ended of, unless it ended well or was cancelled."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        failed(error)


class ConversationSubscription:
    """Follows one feed from `last` on. `failed` is called with what ended it, if anything did."""

    def __init__(
        self, hub: Hub, wire: SocketWriter, key: str, mode: Mode, *, last: int, failed: Callable[[BaseException], None]
    ) -> None:
        self._hub, self._wire, self.last = hub, wire, last
        self.write = wire.write or _no_room
        self.is_live = False  # level with the ring: the hub writes frames itself
        self._event = asyncio.Event()
        self._feed = hub.follow(key, mode, self)  # first follow, then read
        self._task = asyncio.create_task(self._run(), name=f"subscription {key}")
        self._task.add_done_callback(partial(report_failure, failed))

    def wake(self) -> None:
        """There is more than the hub could write: run."""
        self.is_live = False
        self._event.set()

    def head(self) -> None:
        """Say where the conversation is, so that a client that missed something finds out."""
        self._wire.hint(frames.control("head", topic=self._feed.topic, seq=max(self._feed.head, self.last)))

    async def _run(self) -> None:
        await self._catch_up()
        await self._wire.text(frames.control("caught_up", topic=self._feed.topic, epoch=self._hub.epoch, seq=self.last))
        while True:
            self._event.clear()
            if self.last < self._feed.head:
                await self._send_new()
                continue
            self.is_live = True
            await self._event.wait()

    async def _catch_up(self) -> None:
        """Read from the database until it has no more."""
        while await self._send_read():
            pass
        self._hub.level(self._feed, self.last)

    async def _send_new(self) -> None:
        ready = self._feed.after(self.last)
        if ready is None and self._feed.is_coming_after(self.last):
            await self._event.wait()
            return
        if ready is not None:
            await self._send(ready)
        elif not await self._send_read():
            self._feed.head = self.last  # told of more than there is: a restored file, found by the client's epoch

    async def _send_read(self) -> bool:
        """Read from the database and send, when it is this topic's turn; return whether there was anything."""
        async with self._wire.turn:
            ready = await self._hub.read(self._feed, self.last)
            await self._send(ready)
        return bool(ready)

    async def _send(self, ready: list[frames.Frame]) -> None:
        for frame in ready:
            if frame.first == self.last + 1:
                await self._wire.frame(frame)
                self.last = frame.last

    def close(self) -> None:
        """End it."""
        self._hub.leave(self._feed, self)
        self._task.cancel()
