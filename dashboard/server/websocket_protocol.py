"""uvicorn's WebSocket protocol plus an ASGI extension: write a prepared frame, wait until the buffer has room, and
disconnect a client that does not read.

It halves the CPU time of the fan-out (§6). It uses uvicorn's internal names, so uvicorn's version is pinned.
"""

import struct
from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from conversations.events.payload import MAX_BYTES

LARGER = {"/v1/responses": MAX_BYTES + 4096}  # bytes of a message, by path: requests there may contain images
LINGER = 60.0  # seconds a client has to read the close frame


class FrameProtocol(WebSocketsSansIOProtocol):
    """Offers `frame.write`, `frame.room` and `frame.hang_up` in `scope["extensions"]`."""

    has_room = True

    def pause_writing(self) -> None:
        """Note that the transport's buffer is full."""
        self.has_room = False
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the transport's buffer has drained."""
        self.has_room = True
        super().resume_writing()

    def handle_connect(self, event: Request) -> None:
        """Add the extension to the scope, unless frames are compressed; raise the message size limit for endpoints that
        need it."""
        super().handle_connect(event)
        self.conn.max_message_size = LARGER.get(event.path.partition("?")[0], self.conn.max_message_size)
        if hasattr(self, "scope") and not self.conn.extensions:
            extensions: dict[str, Any] = self.scope["extensions"]
            extensions["frame.write"] = self.write_frame
            extensions["frame.room"] = self.writable.wait
            extensions["frame.hang_up"] = self.hang_up

    async def send(self, message: Any) -> None:  # Any: uvicorn's union of ASGI messages
        """Send as uvicorn does. After a close, ours or uvicorn's own (frame too big), raises ClientDisconnected."""
        try:
            await super().send(message)
        except RuntimeError:
            if self.close_sent:
                raise ClientDisconnected from None
            raise

    def write_frame(self, frame: bytes) -> bool:
        """Write a whole frame to the transport. Return False if it is full or closing: use the ordinary send."""
        transport = self.transport
        if not self.has_room or self.close_sent or self.disconnected or transport.is_closing():
            return False
        transport.write(frame)
        return True

    def hang_up(self, code: int, reason: str = "") -> None:
        """Send a close frame after what is buffered, accept nothing more, and abort the connection after a minute."""
        if self.close_sent or self.disconnected:
            return
        payload = struct.pack("!H", code) + reason.encode()[:123]
        self.transport.write(struct.pack("!BB", 0x88, len(payload)) + payload)
        self.close_sent = True
        self.stop_keepalive()
        self.transport.close()
        self.loop.call_later(LINGER, self.transport.abort)
