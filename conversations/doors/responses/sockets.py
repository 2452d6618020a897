"""The websocket of `/v1/responses`: `response.create` frames in, the stream's events out as JSON, one at a time.

What is asked while one is answered waits its turn, up to eight. A response asked for with `store=false` can be
continued on its own socket only, while that is open; a continuation that fails forgets the response it named. After an
hour the socket is closed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from conversations import frames
from conversations.doors import http
from conversations.doors.responses import asking
from conversations.doors.responses.encoding import Encoder, Frame
from conversations.doors.responses.house import SLOW_AFTER, House, UnderWay, refuse, told
from conversations.envelopes import MAX_BYTES
from conversations.errors import Busy, Invalid, SwitchboardError, Unavailable
from conversations.responses import Asked
from conversations.sessions import Visitor

MAX_AGE = 3600.0  # seconds
MOST_WAITING = 8  # requests of one socket
TOO_SLOW, TOO_BIG, GOING_AWAY = 4408, 1009, 1001


class ResponsesSocket:
    """The route. A bearer in the upgrade lets in, from any page or from none; a cookie does not."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Serve one socket to its end."""
        await receive()  # websocket.connect
        try:
            visitor = await self._house.admit(scope)
        except SwitchboardError as error:
            self._house.count_refusal(error)
            await _refuse_upgrade(scope, send, error)
            return
        await send({"type": "websocket.accept"})
        socket = _Socket(self._house, visitor, scope, send)
        self._house.engine.watch.sockets.add(socket)
        try:
            await socket.serve(receive)
        finally:
            self._house.engine.watch.sockets.discard(socket)


class _Socket:
    """One open socket. `visitor`, `dismiss` and `tell_heads` are the watch's."""

    def __init__(self, house: House, visitor: Visitor, scope: http.Scope, send: http.Send) -> None:
        self.visitor = visitor
        self._house, self._send = house, send
        self._extensions: dict[str, Any] = scope.get("extensions") or {}
        self._id = secrets.token_hex(16)
        self._forgotten: set[str] = set()
        self._waiting: asyncio.Queue[str] = asyncio.Queue(MOST_WAITING)
        self._is_closed = False
        self._closing: asyncio.Future[None] | None = None

    async def serve(self, receive: http.Receive) -> None:
        """Answer until the client leaves or the hour is over."""
        answering = asyncio.create_task(self._answer_all(), name="responses socket")
        try:
            async with asyncio.timeout(MAX_AGE):
                await self._listen(receive, answering)
        except TimeoutError:
            error = Invalid(
                "a socket is open for at most 60 minutes: open another", code="websocket_connection_limit_reached"
            )
            await self._tell(error)
            self.dismiss(GOING_AWAY)
        finally:
            self._is_closed = True
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    async def _listen(self, receive: http.Receive, answering: asyncio.Task[None]) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            if self._is_closed or answering.done():
                return
            if text is None or len(text) > MAX_BYTES:
                self.dismiss(TOO_BIG)
                return
            try:
                self._waiting.put_nowait(text)
            except asyncio.QueueFull:
                await self._tell(Busy(f"at most {MOST_WAITING} requests wait on one socket: open another"))

    async def _answer_all(self) -> None:
        with suppress(OSError):  # the client left
            while not self._is_closed:
                await self._answer(await self._waiting.get())

    async def _answer(self, text: str) -> None:
        """Answer one frame: by the events of a response, or by one error."""
        previous = None
        try:
            value = asking.value_of(text.encode("utf-8", "surrogatepass"))
            previous = value.get("previous_response_id")
            if value.get("type") != "response.create":
                raise Invalid('expected {"type": "response.create", …}', code="unknown_event", field="type")
            begun = await self._house.do(self._begin, value)
        except SwitchboardError as error:
            self._house.count_refusal(error)
            if isinstance(previous, str):
                self._forget(previous)
            await self._tell(error)
            return
        try:
            await self._stream(begun)
        finally:
            self._house.followers.leave(begun.follower)

    def _begin(self, value: dict[str, Any]) -> UnderWay:
        asked = asking.asked_on_socket(value)
        return self._house.begin(self.visitor, asked, self._id, self._knows(asked))

    def _knows(self, asked: Asked) -> bool:
        return asked.previous_response_id not in self._forgotten

    def _forget(self, response: str) -> None:
        if len(self._forgotten) < 10_000:
            self._forgotten.add(response)

    async def _stream(self, begun: UnderWay) -> None:
        encoder = Encoder(begun.received)
        async for some in self._house.frames(begun, encoder):
            if self._is_closed:
                return
            if not self._house.engine.is_ready and encoder.final is None:
                await self._tell(Unavailable("this server is stopping; the run goes on", code="server_stopping"))
                return
            if some:
                await self._write(some)
        if encoder.final is not None and encoder.final["status"] == "failed" and begun.asked.previous_response_id:
            self._forget(begun.asked.previous_response_id)

    async def _write(self, some: Sequence[Frame]) -> None:
        write = self._extensions.get("frame.write")
        try:
            async with asyncio.timeout(SLOW_AFTER):
                for _, data in some:
                    if write is None or not write(frames.wire(data)):
                        await self._send({"type": "websocket.send", "text": data.decode()})
        except TimeoutError:
            self.dismiss(TOO_SLOW)

    async def _tell(self, error: SwitchboardError) -> None:
        body = {"type": "error", "status": error.status, "error": told(error)}
        with suppress(OSError):
            await self._write([Frame("error", msgspec.json.encode(body))])

    def dismiss(self, code: int) -> None:
        """Send nothing more and close, now."""
        if self._is_closed:
            return
        self._is_closed = True
        self._house.engine.watch.drops[code] += 1
        if hang_up := self._extensions.get("frame.hang_up"):
            hang_up(code)
        else:
            self._closing = asyncio.ensure_future(self._send({"type": "websocket.close", "code": code}))

    def tell_heads(self) -> None:
        """A socket of responses has no head to tell; uvicorn's pings keep it open."""


async def _refuse_upgrade(scope: http.Scope, send: http.Send, error: SwitchboardError) -> None:
    """Answer the upgrade with the error's own status where the server can, else with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1000})
        return

    async def as_http(message: dict[str, Any]) -> None:
        await send(message | {"type": f"websocket.{message['type']}"})

    await refuse(as_http, error)
