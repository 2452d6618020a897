"""The WebSocket of `/v1/responses`: `response.create` frames in, the stream's events out as JSON, one response at a
time.

Requests received during a response wait their turn, up to eight. A response with `store=false` can be continued only on
its own socket, while that is open; a continuation that fails discards the response it named. After an hour the socket
is closed.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from conversations.access.authentication import Caller
from conversations.asgi import route
from conversations.asgi.responses import parse_request
from conversations.asgi.responses.shared import (
    SLOW_AFTER,
    PendingResponse,
    ResponsesContext,
    broken_off,
    error_body,
    refuse,
    trouble,
)
from conversations.asgi.responses.stream_encoder import Encoder, StreamFrame
from conversations.core.background_loop import cancel_all
from conversations.core.errors import Busy, Invalid, SwitchboardError, Unavailable
from conversations.events.payload import MAX_BYTES
from conversations.realtime import frames
from conversations.runs.responses.create import Received

MAX_AGE = 3600.0  # seconds
MAX_WAITING = 8  # requests of one socket
TOO_SLOW, TOO_BIG, GOING_AWAY, BROKEN = 4408, 1009, 1001, 1011

logger = logging.getLogger(__name__)


class ResponsesSocket:
    """The route. It is authenticated by a bearer token in the upgrade, from any page or none; a cookie is not
    accepted."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Serve one socket to its end."""
        await receive()  # websocket.connect
        try:
            with self._context.counting_refusals():
                socket = _Socket(self._context, await self._context.admit(scope), scope, send)
                self._context.enter(socket)
        except SwitchboardError as error:
            await _refuse_upgrade(scope, send, error)
            return
        try:
            await send({"type": "websocket.accept"})
            await socket.serve(receive)
        finally:
            self._context.leave(socket)


class _Socket:
    """One open socket. `caller`, `dismiss` and `send_heads` are used by the socket registry."""

    def __init__(self, context: ResponsesContext, caller: Caller, scope: route.Scope, send: route.Send) -> None:
        self.caller = caller
        self._context, self._send = context, send
        self._scope = scope
        self._extensions: dict[str, Any] = scope.get("extensions") or {}
        self._id = secrets.token_hex(16)
        self._forgotten: set[str] = set()
        self._waiting: asyncio.Queue[str] = asyncio.Queue(MAX_WAITING)
        self._is_closed = False
        self._closing: asyncio.Future[None] | None = None

    async def serve(self, receive: route.Receive) -> None:
        """Serve requests until the client disconnects or the hour is over."""
        answering = asyncio.create_task(self._answer_all(), name="responses socket")
        try:
            async with asyncio.timeout(MAX_AGE):
                await self._listen(receive, answering)
        except TimeoutError:
            error = Invalid(
                "the socket has been open for 60 minutes, the maximum: open another",
                code="websocket_connection_limit_reached",
            )
            await self._send_error(error)
            self.dismiss(GOING_AWAY)
        finally:
            self._is_closed = True
            await cancel_all([answering])

    async def _listen(self, receive: route.Receive, answering: asyncio.Task[None]) -> None:
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
                await self._send_error(Busy(f"at most {MAX_WAITING} requests may wait on one socket: open another"))

    async def _answer_all(self) -> None:
        """Serve one request after the other; after any error, the client is notified and the socket is closed."""
        try:
            while not self._is_closed:
                await self._answer(await self._waiting.get())
        except OSError:  # the client left
            return
        except Exception:
            logger.exception("a socket of /v1/responses is closed")
            await self._send_error(
                Unavailable("internal server error; a run that has started continues", code="server_error")
            )
            self.dismiss(BROKEN)

    async def _answer(self, text: str) -> None:
        """Answer one frame with the events of a response, or with one error."""
        previous = None
        try:
            with self._context.counting_refusals():
                value = await self._context.do(_value_of, text)  # in a thread: a large frame takes tens of milliseconds
                previous = value.get("previous_response_id")
                if value.get("type") != "response.create":
                    message = 'the message must be {"type": "response.create", …}'
                    raise Invalid(message, code="unknown_event", field="type")
                received = await self._receive(value)
                begun = self._context.follow(received, self._scope)
        except SwitchboardError as error:
            if isinstance(previous, str):
                self._forget(previous)
            await self._send_error(error)
            return
        try:
            await self._stream(begun)
        finally:
            self._context.followers.leave(begun.follower)

    async def _receive(self, value: dict[str, Any]) -> Received:
        previous = value.get("previous_response_id")
        knows = not (isinstance(previous, str) and previous in self._forgotten)
        read = partial(parse_request.parse_socket_frame, value)
        return await self._context.receive(self.caller, read, self._id, known_here=knows)

    def _forget(self, response: str) -> None:
        if len(self._forgotten) < 10_000:
            self._forgotten.add(response)

    async def _stream(self, begun: PendingResponse) -> None:
        encoder = Encoder(begun.received)
        try:
            await self._tell_all(begun, encoder)
        except OSError:  # the client left
            raise
        except Exception as error:
            await self._write(broken_off(encoder, begun, trouble(begun, error)))
            self.dismiss(BROKEN)
        previous = begun.received.body["previous_response_id"]
        if encoder.final is not None and encoder.final["status"] == "failed" and previous:
            self._forget(previous)

    async def _tell_all(self, begun: PendingResponse, encoder: Encoder) -> None:
        async for batch in self._context.frames(begun, encoder):
            await self._context.runtime.socket_registry.send_gate.wait_until_open()
            if self._is_closed:
                return
            if not self._context.runtime.is_ready and encoder.final is None:
                await self._send_error(
                    Unavailable("this server is stopping; the run continues", code="server_stopping")
                )
                return
            if batch:
                await self._write(batch)

    async def _write(self, batch: Sequence[StreamFrame]) -> None:
        write = self._extensions.get("frame.write")
        try:
            async with asyncio.timeout(SLOW_AFTER):
                for _, data, _ in batch:
                    if write is None or not write(frames.encode_text_frame(data)):
                        await self._send({"type": "websocket.send", "text": data.decode()})
        except TimeoutError:
            self.dismiss(TOO_SLOW)

    async def _send_error(self, error: SwitchboardError) -> None:
        body = {"type": "error", "status": error.status, "error": error_body(error)}
        with suppress(OSError):
            await self._write([StreamFrame("error", msgspec.json.encode(body))])

    def dismiss(self, code: int) -> None:
        """Send nothing more and close, now."""
        if self._is_closed:
            return
        self._is_closed = True
        self._context.runtime.socket_registry.drops[code] += 1
        if hang_up := self._extensions.get("frame.hang_up"):
            hang_up(code)
        else:
            self._closing = asyncio.ensure_future(self._send({"type": "websocket.close", "code": code}))

    def send_heads(self) -> None:
        """Do nothing: a socket of responses has no heads to send; uvicorn's pings keep it open."""


def _value_of(text: str) -> dict[str, Any]:
    """Parse a frame. Raises like `parse_request.value_of`."""
    return parse_request.value_of(text.encode("utf-8", "surrogatepass"))


async def _refuse_upgrade(scope: route.Scope, send: route.Send, error: SwitchboardError) -> None:
    """Answer the upgrade with the error's own status if the server can, or else with 403."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": 1000})
        return

    async def as_http(message: dict[str, Any]) -> None:
        await send(message | {"type": f"websocket.{message['type']}"})

    await refuse(as_http, error)
