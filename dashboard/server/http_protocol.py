"""uvicorn's HTTP protocol with limits on size and time: an endless head would fill the memory, and clients that send or
read very slowly would hold connections forever.

Called by uvicorn for every connection; `dashboard.server.draining_server` names it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MAX_HEAD = 64 << 10  # bytes of a request that are not body
CREDIT = 4 << 20  # bytes of a body that earn it more: chunks of a few bytes are framed by as many
FRAMING = 8  # bytes of framing that a byte of body may have
PASS_OVER = 128 << 20  # bytes of a body that come after its answer, for a client that listens only at the end
PATIENCE = 20.0  # seconds: for a whole head; for each further `PROGRESS` of a body, or of an answer that waits
POLL_EVERY_S = 5.0
PROGRESS = 4 << 10  # bytes
AT_ONCE = 64 << 10  # bytes of chunks that are written together
_CLOSE = b"content-length: 0\r\nconnection: close\r\nx-content-type-options: nosniff\r\n\r\n"
REFUSAL = b"HTTP/1.1 431 Request Header Fields Too Large\r\n" + _CLOSE
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\n" + _CLOSE


class BoundedHttp(HttpToolsProtocol):
    """Closes a connection whose head, chunk frames and trailers exceed a limit, and one whose request or response makes
    no progress. Each connection is checked every 5 seconds, so a request costs nothing extra."""

    _stopping: asyncio.Event
    _body = 0  # bytes of bodies on this connection
    _at_begin = 0  # of them, those before this request
    _at_answer = 0  # of them, those before this request's answer
    _at_mark = 0  # of them, those before `_marked`
    _marked = 0.0  # since when nothing much came, loop time
    _is_coming = True  # a head or a body is awaited
    _other = 0  # bytes of this request that are not body
    _is_begun = False  # a request has begun and is not complete
    _in_read = 0  # requests that are, at least in part, in the bytes that arrived last
    _unread = 0  # bytes that waited to be sent when the reader was seen to read last
    _unread_since = 0.0  # when that was, loop time
    _has_resumed = False  # there was room for more since

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Add the extensions, and start checking the connection."""
        super().connection_made(transport)
        self._stopping = asyncio.Event()
        self._extensions: dict[str, Any] = {
            "http.stopping": self._stopping,
            "http.hang_up": transport.abort,
            "http.write_chunks": self._write_chunks,
            "http.write_response": self._write_response,
        }
        self._marked = self._unread_since = self.loop.time()
        self._looking = self.loop.call_later(POLL_EVERY_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking."""
        self._looking.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Stop checking: a WebSocket has its own pings."""
        self._looking.cancel()
        super().handle_websocket_upgrade()

    def _look(self) -> None:
        """Close the connection if it makes no progress; one on which nothing is expected, or which the server itself
        does not read, is left open."""
        now = self.loop.time()
        if self._is_left_unread(now):
            self.transport.abort()  # forgets what waits; to close it would wait for the reader
            return
        if not self._is_coming or self.flow.read_paused or self._body - self._at_mark >= PROGRESS:
            self._at_mark, self._marked = self._body, now
        if now - self._marked >= PATIENCE and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(TOO_SLOW)
            self.transport.close()
        self._looking = self.loop.call_later(POLL_EVERY_S, self._look)

    def _is_left_unread(self, now: float) -> bool:
        """Return whether the client has not read its response for too long. While nothing is added, what is buffered
        can only shrink."""
        size = self.transport.get_write_buffer_size()
        may_grow = not (self.flow.write_paused or self.cycle is None or self.cycle.response_complete)
        is_stuck = self._unread - PROGRESS < size <= self._unread
        if not size or may_grow or self._has_resumed or not is_stuck:
            self._unread, self._unread_since, self._has_resumed = size, now, False
        return now - self._unread_since >= PATIENCE

    def _write_chunks(self, scope: dict[str, Any], bodies: Sequence[bytes]) -> int:
        """Write pieces of a body whose response has started, none of them empty, each as a chunk, while the client
        reads; return how many were written. Called where `send` for each piece is too slow: the rest is for `send`."""
        cycle, written = self.cycle, 0
        if cycle is None or cycle.scope["headers"] is not scope["headers"]:  # a further request came already
            return 0
        if not cycle.chunked_encoding or cycle.response_complete or cycle.disconnected:
            return 0
        while written < len(bodies) and not self.flow.write_paused:
            chunks, size = [], 0
            while written < len(bodies) and size < AT_ONCE:
                body = bodies[written]
                chunks.append(b"%x\r\n%b\r\n" % (len(body), body))
                written, size = written + 1, size + len(body)
            self.transport.write(b"".join(chunks))
        return written

    def _write_response(self, scope: dict[str, Any], status: int, head: bytes, body: bytes) -> bool:
        """Write a whole response, `head` being its header lines, each with its end and none of them the date; return
        whether it was written. Called where `send` is too slow: it checks and copies each header. If False, nothing was
        written, and the response is for `send`."""
        cycle = self.cycle
        if cycle is None or cycle.scope["headers"] is not scope["headers"]:  # a further request came already
            return False
        if cycle.response_started or cycle.disconnected or not cycle.keep_alive or self.config.access_log:
            return False
        if self.flow.write_paused or scope["method"] == "HEAD":
            return False
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        dates = [b"%b: %b\r\n" % pair for pair in self.server_state.default_headers]
        self.transport.write(b"".join((STATUS_LINE[status], *dates, head, b"\r\n", body)))
        cycle.message_event.set()
        cycle.on_response()
        return True

    def resume_writing(self) -> None:
        """Note that the client has read."""
        self._has_resumed = True
        super().resume_writing()

    def shutdown(self) -> None:
        """Ask long requests to finish."""
        self._stopping.set()
        super().shutdown()

    def on_message_begin(self) -> None:
        """Start counting the bytes of a new request."""
        self._at_begin = self._at_answer = self._body
        self._other, self._is_coming, self._at_mark, self._marked = 0, True, self._body, self.loop.time()
        self._is_begun, self._in_read = True, self._in_read + 1
        super().on_message_begin()
        self.scope["extensions"] = self._extensions

    def on_body(self, body: bytes) -> None:
        """Count a piece of the body, which the limits of a head do not include."""
        self._body += len(body)
        super().on_body(body)
        if not self.cycle.response_complete:
            self._at_answer = self._body
        elif self._body - self._at_answer > PASS_OVER:
            self.transport.close()

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        self._is_coming = self._is_begun = False
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived; answer 431 and close the connection if the head is too large."""
        before, self._in_read = self._body, int(self._is_begun)
        super().data_received(data)
        if self._in_read <= 1:  # else it is not known how many of these bytes are of the last request: none count
            self._other += len(data) - (self._body - before)
        allowed = MAX_HEAD + FRAMING * min(CREDIT, self._body - self._at_begin)
        if self._other > allowed and not self.transport.is_closing():
            self.transport.write(REFUSAL)
            self.transport.close()
