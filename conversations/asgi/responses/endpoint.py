"""`POST /v1/responses`: return a response as JSON once it is complete, or as a stream of events while it is generated.

The run belongs to the worker and continues when the client disconnects. While nothing happens, a keep-alive is sent
every 15 seconds (a comment in the stream, white space before the JSON).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from conversations.asgi import long_poll, route
from conversations.asgi.responses import parse_request, resource
from conversations.asgi.responses.shared import (
    POLL_EVERY_S,
    SILENCE,
    SLOW_AFTER,
    PendingResponse,
    ResponsesCaller,
    ResponsesContext,
    broken_off,
    error_body,
    failed,
    in_thread_if_large,
    trouble,
)
from conversations.asgi.responses.stream_encoder import Encoder, StreamFrame
from conversations.core.errors import SwitchboardError, Unavailable
from conversations.events.log.records import Stored
from conversations.events.payload import MAX_BYTES
from conversations.events.response_ids import Json
from conversations.realtime.send_gate import SendGate
from conversations.runs.responses.create import Received

STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # a proxy passes each event on at once
    *route.FIXED[1:],
)
NO_RETRY = (b"x-should-retry", b"false")  # obeyed by the official clients
DONE = b"data: [DONE]\n\n"
STILL_HERE = b": keep-alive\n\n"


class ResponsesEndpoint:
    """The route."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        with self._context.counting_refusals():
            caller = await self._context.admit(scope)
            body = await route.body(scope, receive, MAX_BYTES)
            with self._context.reading(caller) as reader:
                received = await self._context.receive(caller, partial(parse_request.read, body))
                starting_after = -1 if received.body["stream"] else None
                await self.tell(reader, received, scope, receive, send, starting_after=starting_after)

    async def tell(
        self,
        reader: ResponsesCaller,
        received: Received,
        scope: route.Scope,
        receive: route.Receive,
        send: route.Send,
        *,
        starting_after: int | None,
    ) -> None:
        """Send a response to a reader: its events after the given number, or with None as complete JSON."""
        with following(self._context, reader, received, scope, receive, send) as wire:
            await (self._whole(wire) if starting_after is None else self._stream(wire, starting_after))

    async def _stream(self, wire: Wire, starting_after: int) -> None:
        """Send every event as one chunk, then `[DONE]`."""
        encoder = Encoder(wire.begun.received, starting_after)
        await wire.start(STREAM_HEADERS)
        try:
            async for frames in self._context.frames(wire.begun, encoder, starting_after):
                await self._send_events(wire, encoder, frames)
                if wire.is_over or encoder.final is not None:
                    break
        except OSError:  # the client left
            raise
        except Exception as error:
            await wire.events(broken_off(encoder, wire.begun, trouble(wire.begun, error)))
        await wire.end(DONE if encoder.final is not None else b"")

    async def _send_events(self, wire: Wire, encoder: Encoder, frames: list[StreamFrame]) -> None:
        """Send new events, and the end if the server stops or the permission is revoked: then nothing else."""
        await wire.wait_until_allowed()
        if wire.reader.dismissal is not None:
            await wire.events(broken_off(encoder, wire.begun, wire.reader.dismissal, at_once=True))
        elif wire.is_stopping and encoder.final is None:
            encoder.mark_sent(frames)
            await wire.events([*frames, *broken_off(encoder, wire.begun, stopping())])
        elif not wire.is_over:
            await (wire.events(frames) if frames else wire.send_keepalive(STILL_HERE))

    async def _whole(self, wire: Wire) -> None:
        """Send the response once it is complete; or as it is, if the client does not wait or has waited long enough."""
        received = wire.begun.received
        if received.body["params"].get("background") is True:
            await wire.json(200, wire.begun.progress.so_far())
            return
        try:
            await self._when_over(wire, received)
        except OSError:  # the client left
            raise
        except Exception as error:
            await wire.unfinished(trouble(wire.begun, error))

    async def _when_over(self, wire: Wire, received: Received) -> None:
        async for events in self._context.events(wire.begun):
            await wire.wait_until_allowed()
            final = await in_thread_if_large(events, _ending, received, events)
            if wire.reader.dismissal is not None:
                await wire.refuse(wire.reader.dismissal)
            elif final is not None:
                self._context.runtime.responses[final.status] += 1
                await wire.whole(200, final.body)
            elif wire.is_stopping:
                await wire.unfinished(stopping())
            elif wire.begun.progress.is_late:
                await wire.json(200, wire.begun.progress.so_far())
            elif not wire.is_over:
                await wire.send_keepalive(b"\n", route.FIXED)
                continue
            return


class Wire:
    """The transport of one response: limited in time, and closed to clients that left or lost the permission."""

    def __init__(
        self,
        scope: route.Scope,
        send: route.Send,
        begun: PendingResponse,
        reader: ResponsesCaller,
        gone: asyncio.Future[None],
        send_gate: SendGate,
    ) -> None:
        self.begun, self.reader = begun, reader
        self._asgi_send, self._disconnected, self._send_gate = send, gone, send_gate
        self._scope = scope
        self._extensions = scope.get("extensions") or {}
        self._has_started = self._is_dropped = False
        self._said_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Return whether there is no client left to send to."""
        return self._disconnected.done() or self._is_dropped

    @property
    def is_stopping(self) -> bool:
        """Return whether the server is stopping."""
        stopping = self._extensions.get("http.stopping")
        return stopping is not None and stopping.is_set()

    async def wait_until_allowed(self) -> None:
        """Wait while it is unknown who may still read (law H)."""
        while self._send_gate.is_held and not (self.is_over or self.is_stopping):
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_EVERY_S):
                    await self._send_gate.wait_until_open()

    async def start(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Start a response of unknown length."""
        self._has_started = True
        all_headers = [*headers, self._conversation]
        await self._send({"type": "http.response.start", "status": 200, "headers": all_headers})

    @property
    def _conversation(self) -> tuple[bytes, bytes]:
        return b"x-conversation-id", quote(self.begun.received.conversation, safe="").encode()

    async def events(self, frames: Sequence[StreamFrame]) -> None:
        """Send events, each as a chunk of its own: some clients' parsers lose an event that comes in two."""
        await self.pieces([b"event: %b\ndata: %b\n\n" % (kind.encode(), data) for kind, data, _ in frames])

    async def pieces(self, bodies: Sequence[bytes]) -> None:
        """Send pieces of the body, each as a chunk of its own."""
        self._said_at = time.monotonic()
        write = self._extensions.get("http.write_chunks")
        written = write(self._scope, bodies) if write is not None and not self._is_dropped else 0
        rest = bodies[written:]
        if rest:
            await self._send(*({"type": "http.response.body", "body": body, "more_body": True} for body in rest))

    async def send_keepalive(self, word: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Send a keep-alive if nothing was sent for a while."""
        if time.monotonic() - self._said_at < SILENCE:
            return
        self._said_at = time.monotonic()
        if not self._has_started:
            await self.start(headers)
        await self._send({"type": "http.response.body", "body": word, "more_body": True})

    async def end(self, last: bytes) -> None:
        """Send the end of the body."""
        await self._send({"type": "http.response.body", "body": last, "more_body": False})

    async def json(self, status: int, value: Json) -> None:
        """Send a complete response, or the rest of one that was started."""
        await self.whole(status, msgspec.json.encode(value))

    async def whole(self, status: int, body: bytes) -> None:
        """Send the value, which is already encoded as JSON."""
        if self._has_started:
            await self.end(body)
        else:
            await route.answer(self._send, status, body, self._conversation)

    async def unfinished(self, why: SwitchboardError) -> None:
        """Send the response as it is, since its run continues: after an error, clients send their request again."""
        await self.json(200, self.begun.progress.so_far(why.code))

    async def refuse(self, error: SwitchboardError) -> None:
        """Send an error after which no client sends its request again; if the response was started, as a failed
        response."""
        if self._has_started:
            await self.end(msgspec.json.encode(failed(self.begun, error)))
            return
        headers = [each for each in route.headers_of(error) if each != route.RETRY_AFTER]
        payload = msgspec.json.encode({"error": error_body(error)})
        await route.answer(self._send, error.status, payload, *headers, self._conversation, NO_RETRY)

    async def _send(self, *messages: dict[str, Any]) -> None:
        """Send messages, each in one write, within the time that a client has to read; disconnect one that does not
        read."""
        if self._is_dropped:
            return
        try:
            async with asyncio.timeout(SLOW_AFTER):
                for message in messages:
                    await self._asgi_send(message)
        except TimeoutError:
            self._is_dropped = True
            if hang_up := self._extensions.get("http.hang_up"):
                hang_up()
                await asyncio.wait([self._disconnected], timeout=SLOW_AFTER)


@contextmanager
def following(
    context: ResponsesContext,
    reader: ResponsesCaller,
    received: Received,
    scope: route.Scope,
    receive: route.Receive,
    send: route.Send,
    patience: float | None = None,
) -> Iterator[Wire]:
    """Follow a response for one client, for `patience` seconds or as its request says; notice when the client
    disconnects."""
    begun = context.follow(received, scope, patience)
    reader.follower = begun.follower
    gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
    gone.add_done_callback(lambda _: begun.follower.wake())
    try:
        yield Wire(scope, send, begun, reader, gone, context.runtime.socket_registry.send_gate)
    finally:
        gone.cancel()
        context.followers.leave(begun.follower)


class Final(NamedTuple):
    """A completed response: its status, and its JSON."""

    status: str
    body: bytes


def _ending(received: Received, events: Sequence[Stored]) -> Final | None:
    """Return the response that one of these events completes."""
    final = next(filter(None, (resource.ending(received, event) for event in events)), None)
    return None if final is None else Final(str(final["status"]), msgspec.json.encode(final))


def stopping() -> Unavailable:
    """Return the error for a stream that ends before its run because this server stops."""
    return Unavailable("this server is stopping; the run continues", code="server_stopping")
