"""Catch up on one topic of one socket: read what it lacks from the ring, or else from the database. Once it has all,
the topic's `Feed` writes to the socket itself (`feed.py`), until the socket falls behind again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from conversations.realtime import frames
from conversations.realtime.socket_writer import SocketWriter, report_failure

if TYPE_CHECKING:
    from conversations.realtime.feed import Mode
    from conversations.realtime.hub import Hub

NEWEST = 60  # events sent first to a client that names no place


def _no_room(_: bytes) -> bool:
    return False


class CatchUpSubscription:
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
