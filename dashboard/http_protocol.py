"""uvicorn's HTTP protocol with a bound on what is no body: without it a head that never ends fills the memory.

Called by uvicorn for every connection; `dashboard.server` names it.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD = 64 << 10  # bytes of a request that are no body
CREDIT = 4 << 20  # bytes of a body that earn it more: chunks of a few bytes are framed by as many
FRAMING = 8  # bytes of framing that a byte of body may have
REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n"
    b"x-content-type-options: nosniff\r\n\r\n"
)


class BoundedHttp(HttpToolsProtocol):
    """Hangs up on a request whose head, chunk frames and trailers are larger than any sensible one."""

    _stopping: asyncio.Event
    _body = 0  # bytes of bodies on this connection
    _at_begin = 0  # of them, those before this request
    _other = 0  # bytes of this request that are no body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Have something to say to who waits, when the server stops."""
        super().connection_made(transport)
        self._stopping = asyncio.Event()
        self._extensions: dict[str, Any] = {"http.stopping": self._stopping}

    def shutdown(self) -> None:
        """Tell long requests to come to their end."""
        self._stopping.set()
        super().shutdown()

    def on_message_begin(self) -> None:
        """Count anew."""
        self._at_begin, self._other = self._body, 0
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def on_body(self, body: bytes) -> None:
        """Count a part of the body."""
        self._body += len(body)
        super().on_body(body)

    def data_received(self, data: bytes) -> None:
        """Take what came; answer 431 and close once it is too much."""
        before = self._body
        super().data_received(data)
        self._other += len(data) - (self._body - before)
        allowed = MAX_HEAD + FRAMING * min(CREDIT, self._body - self._at_begin)
        if self._other > allowed and not self.transport.is_closing():
            self.transport.write(REFUSAL)
            self.transport.close()
