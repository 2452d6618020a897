"""Send on one socket: for its subscriptions to conversations and to state topics, and for presence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from conversations.realtime import frames
from conversations.realtime.send_gate import SendGate

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


def report_failure(failed: Callable[[BaseException], None], task: asyncio.Task[None]) -> None:
    """Call `failed` with the exception of a task, unless the task succeeded or was cancelled."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        failed(error)
