"""`POST /v1/responses`: a response as JSON when it is over, or as a stream of events while it is made.

The run is the worker's: a client that leaves ends nothing. While nothing happens a word is said every 15 seconds (a
comment in the stream, white space before the JSON).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import msgspec

from conversations.doors import http, waiting
from conversations.doors.responses import asking, resource
from conversations.doors.responses.encoding import Encoder, Frame
from conversations.doors.responses.house import SILENCE, SLOW_AFTER, Guest, House, UnderWay, refuse, told
from conversations.envelopes import MAX_BYTES
from conversations.errors import NotSignedIn, SwitchboardError, Unavailable
from conversations.responses import Json
from conversations.sessions import Visitor

STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # a proxy passes each event on at once
    *http.FIXED[1:],
)
DONE = b"data: [DONE]\n\n"
STILL_HERE = b": keep-alive\n\n"


class ResponsesDoor:
    """The route."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer one request."""
        try:
            visitor = await self._house.admit(scope)
            body = await http.body(scope, receive, MAX_BYTES)
            begun = await self._house.do(self._begin, visitor, body)
        except SwitchboardError as error:
            self._house.count_refusal(error)
            await refuse(send, error)
            return
        guest = self._house.enter(visitor, begun)
        try:
            with _leaving(receive, begun) as gone:
                wire = _Wire(scope, send, begun, guest, gone)
                await (self._stream(wire) if begun.asked.stream else self._whole(wire))
        finally:
            self._house.leave(guest, begun)

    def _begin(self, visitor: Visitor, body: bytes) -> UnderWay:
        return self._house.begin(visitor, asking.read(body))

    async def _stream(self, wire: _Wire) -> None:
        """Send every event as one write, then `[DONE]`."""
        encoder = Encoder(wire.begun.received)
        await wire.start(STREAM_HEADERS)
        async for frames in self._house.frames(wire.begun, encoder):
            if wire.is_over:
                break
            if wire.is_stopping and encoder.final is None:
                frames += _broken_off(encoder, wire.begun)
            await (wire.events(frames) if frames else wire.still_here(STILL_HERE))
            if encoder.final is not None:
                break
        await wire.end(DONE if encoder.final is not None else b"")

    async def _whole(self, wire: _Wire) -> None:
        """Send the response once it is over; at once where nobody waits for it."""
        received = wire.begun.received
        if wire.begun.asked.is_background:
            status = "queued" if received.must_wait else "in_progress"
            await wire.json(200, resource.resource(received, status))
            return
        async for events in self._house.events(wire.begun):
            final = next(filter(None, (resource.ending(received, event) for event in events)), None)
            if final is not None:
                self._house.engine.responses[str(final["status"])] += 1
                await wire.json(200, final)
            elif wire.is_stopping:
                await wire.refuse(_stopping())
            elif wire.guest.is_dismissed:
                await wire.refuse(NotSignedIn("this token was revoked meanwhile"))
            elif not wire.is_over:
                await wire.still_here(b"\n", http.FIXED)
                continue
            return


class _Wire:
    """How one answer is sent: bounded in time, and to nobody who left or lost the right."""

    def __init__(
        self, scope: http.Scope, send: http.Send, begun: UnderWay, guest: Guest, gone: asyncio.Future[None]
    ) -> None:
        self.begun, self.guest = begun, guest
        self._send, self._gone = send, gone
        self._extensions = scope.get("extensions") or {}
        self._has_started = self._is_dropped = False
        self._said_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Tell whether nothing more is to be sent."""
        return self.guest.is_dismissed or self._gone.done() or self._is_dropped

    @property
    def is_stopping(self) -> bool:
        """Tell whether the server stops."""
        stopping = self._extensions.get("http.stopping")
        return stopping is not None and stopping.is_set()

    async def start(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin an answer of unknown length."""
        self._has_started = True
        found = [*headers, self._conversation]
        await self._sent({"type": "http.response.start", "status": 200, "headers": found})

    @property
    def _conversation(self) -> tuple[bytes, bytes]:
        return b"x-conversation-id", quote(self.begun.received.conversation, safe="").encode()

    async def events(self, frames: Iterable[Frame]) -> None:
        """Send events, each in one write: some clients' parsers forget a part."""
        self._said_at = time.monotonic()
        bodies = (b"event: %s\ndata: %s\n\n" % (kind.encode(), data) for kind, data in frames)
        await self._sent(*({"type": "http.response.body", "body": body, "more_body": True} for body in bodies))

    async def still_here(self, word: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Say something when nothing was said for long."""
        if time.monotonic() - self._said_at < SILENCE:
            return
        self._said_at = time.monotonic()
        if not self._has_started:
            await self.start(headers)
        await self._sent({"type": "http.response.body", "body": word, "more_body": True})

    async def end(self, last: bytes) -> None:
        """Send the end."""
        await self._sent({"type": "http.response.body", "body": last, "more_body": False})

    async def json(self, status: int, value: Json) -> None:
        """Send a whole answer, or the rest of one that was begun."""
        body = msgspec.json.encode(value)
        if self._has_started:
            await self.end(body)
        else:
            await http.answer(self._sent, status, body, self._conversation)

    async def refuse(self, error: SwitchboardError) -> None:
        """Send an error; where the answer was begun, as its body."""
        if self._has_started:
            await self.end(msgspec.json.encode({"error": told(error)}))
        else:
            await refuse(self._sent, error)

    async def _sent(self, *messages: dict[str, Any]) -> None:
        """Send messages, each one write, within the time a reader has; drop one that does not read."""
        if self._is_dropped:
            return
        try:
            async with asyncio.timeout(SLOW_AFTER):
                for message in messages:
                    await self._send(message)
        except TimeoutError:
            self._is_dropped = True
            if hang_up := self._extensions.get("http.hang_up"):
                hang_up()
                await asyncio.wait([self._gone], timeout=SLOW_AFTER)


@contextmanager
def _leaving(receive: http.Receive, begun: UnderWay) -> Iterator[asyncio.Future[None]]:
    """Notice when the client leaves."""
    gone = asyncio.ensure_future(waiting.left(receive))
    gone.add_done_callback(lambda _: begun.follower.wake())
    try:
        yield gone
    finally:
        gone.cancel()


def _stopping() -> Unavailable:
    return Unavailable("this server is stopping; the run goes on", code="server_stopping")


def _broken_off(encoder: Encoder, begun: UnderWay) -> list[Frame]:
    error = _stopping()
    final = resource.resource(begun.received, "failed", error={"code": error.code, "message": error.message})
    return [encoder.error(told(error)), *encoder.end(final)]
