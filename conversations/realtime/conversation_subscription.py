"""One topic of one socket until it is up to date: the last seq sent, read from the ring or else from the database. From
then on the topic's `Feed` writes to the socket itself."""

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
    """The client did not read for 20 seconds."""


class SocketWriter:
    """Sends for a subscription: prepared frames directly to the transport if it accepts them, or else with an ASGI
    send."""

    def __init__(
        self,
        send: Callable[[Mapping[str, object]], Awaitable[None]],
        write: Callable[[bytes], bool] | None,
        send_gate: SendGate | None = None,
        room: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        self._send, self.write, self._send_gate, self._room = send, write, send_gate or SendGate(), room
        # of the topic that reads the database and sends: not all of them hold MiB at once
        self.database_lock = asyncio.Lock()

    async def frame(self, frame: frames.Frame) -> None:
        """Send one frame as soon as frames may be sent. Raises TooSlow if the client does not read."""
        if frame.is_large:
            await self._wait_for_room()
        if self._send_gate.is_held:
            await self._send_gate.wait_until_open()
        if self.write is None or not self.write(frame.encoded):
            await self.message(frame.message)

    async def _wait_for_room(self) -> None:
        """Wait until the shared byte budget has room (a message of its own is another copy) and no other large frame is
        being sent. Raises TooSlow."""
        if self._room is not None:
            try:
                async with asyncio.timeout(SLOW_AFTER):
                    await self._room()
            except TimeoutError:
                raise TooSlow from None
        await self._send_gate.next_slot()

    async def text(self, text: str) -> None:
        """Send one text message."""
        await self.message({"type": "websocket.send", "text": text})

    def hint(self, text: str) -> bool:
        """Send a text if there is room now, and return whether it was sent; a client without room gets later updates
        instead."""
        if self._send_gate.is_held:
            return False
        if self.write is not None:
            return self.write(frames.encode_text_frame(text.encode()))
        self._hinting = asyncio.ensure_future(self._send({"type": "websocket.send", "text": text}))
        return True

    async def message(self, message: Mapping[str, object]) -> None:
        """Send one ASGI message, once frames may be sent, within the time that a client has to read."""
        if self._send_gate.is_held:
            await self._send_gate.wait_until_open()
        try:
            async with asyncio.timeout(SLOW_AFTER):  # `wait_for` may lose a cancellation (Python before 3.12)
                await self._send(message)
        except TimeoutError:
            raise TooSlow from None


def _no_room(_: bytes) -> bool:
    return False


def report_failure(failed: Callable[[BaseException], None], task: asyncio.Task[None]) -> None:
    """Call `failed` with the exception of a task, unless the task succeeded or was cancelled."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        failed(error)


class ConversationSubscription:
    """Follows one feed from `last` on. `failed` is called with the exception that ended it, if any."""

    def __init__(
        self,
        hub: Hub,
        writer: SocketWriter,
        key: str,
        mode: Mode,
        *,
        last: int,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._hub, self._writer, self.last = hub, writer, last
        self.write = writer.write or _no_room
        self.is_up_to_date = False  # with the ring; while it is, the feed writes frames itself
        self._event = asyncio.Event()
        self._feed = hub.follow(key, mode, self)  # first follow, then read
        self._task = asyncio.create_task(self._run(), name=f"subscription {key}")
        self._task.add_done_callback(partial(report_failure, failed))

    def wake(self) -> None:
        """Start reading: there is more than the hub could write."""
        self.is_up_to_date = False
        self._event.set()

    def say_moved(self, to: str) -> None:
        """Tell the client where the conversation is since its id was erased."""
        self._writer.hint(frames.control("moved", topic=self._feed.topic, to=to))

    def send_head(self) -> None:
        """Send the conversation's head, so that a client that missed events notices."""
        self._writer.hint(frames.control("head", topic=self._feed.topic, seq=max(self._feed.head, self.last)))

    async def _run(self) -> None:
        await self._catch_up()
        await self._writer.text(
            frames.control("caught_up", topic=self._feed.topic, epoch=self._hub.epoch, seq=self.last)
        )
        while True:
            self._event.clear()
            if self.last < self._feed.head:
                await self._send_new()
                continue
            self.is_up_to_date = True
            await self._event.wait()

    async def _catch_up(self) -> None:
        """Read from the database until there are no more events."""
        while await self._send_read():
            pass
        self._hub.mark_caught_up(self._feed, self.last)

    async def _send_new(self) -> None:
        ready = self._feed.after(self.last)
        if ready is None and self._feed.is_coming_after(self.last):
            await self._event.wait()
            return
        if ready is not None:
            await self._send(ready)
        elif not await self._send_read():
            self._feed.head = self.last  # notified of more than there is: a restored file, found by the client's epoch

    async def _send_read(self) -> bool:
        """Read from the database and send, when this topic has its turn; return whether there were events."""
        async with self._writer.database_lock:
            ready = await self._hub.read_frames(self._feed, self.last)
            await self._send(ready)
        return bool(ready)

    async def _send(self, ready: list[frames.Frame]) -> None:
        for frame in ready:
            if frame.first == self.last + 1:
                await self._writer.frame(frame)
                self.last = frame.last

    def close(self) -> None:
        """End the subscription."""
        self._hub.leave(self._feed, self)
        self._task.cancel()
