"""The parts that the routes of `/v1/responses` share: authentication, error format, an unfinished response and its
events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar, TypeVarTuple, Unpack

import msgspec
from django.conf import settings

from conversations.access.authentication import NOT_ALLOWED, SIGNED_OUT, Caller
from conversations.asgi import route
from conversations.asgi.responses import resource
from conversations.asgi.responses.follow_events import Follower, Followers
from conversations.asgi.responses.progress import ResponseProgress, patience_of
from conversations.asgi.responses.stream_encoder import Encoder, StreamFrame
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.bounded_groups import bounded_groups
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, MethodNotAllowed, NotSignedIn, SwitchboardError, Unavailable
from conversations.events.log.records import Stored
from conversations.events.response_ids import Json, ResponseRequest
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_registry import GuardedSocket
from conversations.runs.responses import create
from conversations.runs.responses.create import NewResponse, Received

logger = logging.getLogger(__name__)

VERB = "respond"
POLL_EVERY_S = 1.0  # while nothing happens: sees the server stop and the client leave
SILENCE = 15.0  # seconds after which something is said, so that nobody in between hangs up
PORTION = 8 << 10  # bytes of events that are encoded and sent at a time: joined tokens become many times their size
SLOW_AFTER = 20.0  # seconds a reader may leave what is sent to it
READ_PATIENCE, READ_AGAIN = 10.0, 0.25  # seconds for which a failed read is tried again, and between attempts
MAX_READERS = 10_000  # requests and sockets of one process at a time
_TYPES = {404: "not_found", 429: "too_many_requests"}
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class PendingResponse(NamedTuple):
    """A requested response, and the reader of its events."""

    received: Received
    follower: Follower
    progress: ResponseProgress


class ResponsesCaller:
    """A reader whose permissions are checked while it reads (law H)."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.dismissal: SwitchboardError | None = None  # why nothing more is sent to it
        self.follower: Follower | None = None

    def dismiss(self, code: int) -> None:
        """Send it nothing more of the conversation."""
        self.dismissal = dismissal(code)
        if self.follower is not None:
            self.follower.wake()

    def send_heads(self) -> None:
        """Do nothing: a response has no heads to send."""


class ResponsesContext:
    """The shared state of all routes of a server."""

    def __init__(self, runtime: ServerRuntime, authenticator: TokenAuthenticator) -> None:
        self.runtime, self._authenticator = runtime, authenticator
        self.followers = Followers(settings.CONFIG.followers_mib << 20)
        runtime.budgets["followers"] = self.followers.budget
        self._askers = DatabaseThreads("asking")

    async def admit(self, scope: route.Scope, methods: Sequence[str] = ("POST",), verb: str = VERB) -> Caller:
        """Return the caller, by the bearer token alone. Raises MethodNotAllowed, NotSignedIn, NotAllowed (also for
        agents' tokens), Unavailable."""
        if scope.get("method", methods[0]) not in methods:
            raise MethodNotAllowed(methods)
        caller = await self._authenticator.caller(scope, verb)
        if caller.agent:
            raise await self._authenticator.refuse(scope, verb, caller)
        if not self.runtime.is_ready:
            raise Unavailable(f"this server is {self.runtime.state}")
        return caller

    async def do(self, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Run database work in a thread."""
        self.followers.listen()
        return await self._askers.run(work, *args)

    def enter(self, reader: GuardedSocket) -> None:
        """Start checking a reader's permissions; call `leave` at the end. Raises Busy if it has too many open."""
        most, who = settings.CONFIG.responses_per_principal, reader.caller.principal
        if len(self.runtime.socket_registry.responses) >= MAX_READERS:
            raise Busy(f"the server already serves {MAX_READERS:,} clients: try again later", code="too_many")
        if not self.runtime.socket_registry.admit(reader, most=most, is_response=True):
            raise Busy(f"{who} already has {most:,} open requests and sockets: close one first", code="too_many")

    def leave(self, reader: GuardedSocket) -> None:
        """Remove a reader that disconnected. The run continues."""
        self.runtime.socket_registry.forget(reader)

    @contextmanager
    def reading(self, caller: Caller) -> Iterator[ResponsesCaller]:
        """Check a client's permissions while it reads. Raises Busy if it has too many open."""
        reader = ResponsesCaller(caller)
        self.enter(reader)
        try:
            yield reader
        finally:
            self.leave(reader)

    async def receive(
        self, caller: Caller, read: Callable[[], ResponseRequest], socket: str = "", *, known_here: bool = True
    ) -> Received:
        """Read the request and store it: together with others, if it begins a conversation. The reader of its events
        must be made at once (`follow`), without waiting for anything."""
        response = await self.do(_begin, caller, read, socket, known_here)
        if isinstance(response, Received):
            return response
        try:
            return await self._store(response)
        except NotSignedIn:  # its token was revoked meanwhile: the action refuses it, and records that
            return await self.do(lambda: _receive(caller, read(), socket, known_here))

    async def _store(self, response: NewResponse) -> Received:
        follower = self.followers.expect(response.target.key)
        try:
            return response.received(await self.runtime.writer.store(response.events))
        except BaseException:
            self.followers.leave(follower)
            raise

    def follow(self, received: Received, scope: route.Scope, patience: float | None = None) -> PendingResponse:
        """Follow the response for the client of `scope`, which waits for `patience` seconds, or as its request says;
        call `followers.leave` at the end.

        Runs in the loop, so that a client that is cancelled while a thread stores its request leaves nothing behind.
        """
        progress = ResponseProgress(received, patience_of(scope) if patience is None else patience)
        return PendingResponse(received, self.followers.follow(received.conversation, received.seq), progress)

    async def events(self, begun: PendingResponse) -> AsyncIterator[list[Stored]]:
        """Yield the events of the conversation; an empty list in every second without events, and when the reader has
        waited long enough.

        A failed read is retried for 10 seconds. Raises Unavailable after that.
        """
        failing_since = 0.0
        while True:
            page: list[Stored] = []
            try:
                page = await self.followers.next(begun.follower, min(POLL_EVERY_S, max(0.0, begun.progress.left_s)))
                failing_since = 0.0
            except Exception as error:  # whatever the database says: the run goes on, so its reader is told
                failing_since = failing_since or time.monotonic()
                if time.monotonic() - failing_since >= READ_PATIENCE:
                    raise _unreadable(begun, error) from error
                await asyncio.sleep(READ_AGAIN)
            begun.progress.on_events(page)
            yield page

    async def frames(
        self, begun: PendingResponse, encoder: Encoder, starting_after: int = -1
    ) -> AsyncIterator[list[StreamFrame]]:
        """Yield the events of the stream up to the last; those up to the number `starting_after` are left out. A stream
        in which nothing happens for as long as its client waits ends as incomplete. Raises Unavailable like
        `events`."""
        new_frames = encoder.begin()
        new = [frame for frame in new_frames if frame.number > starting_after]
        yield new
        encoder.mark_sent(new)
        async for page in self.events(begun):
            for events in bounded_groups(page, _size, most_bytes=PORTION) if page else ([],):
                new_frames = await in_thread_if_large(events, _encode_events, encoder, events)
                new = [frame for frame in new_frames if frame.number > starting_after]
                if encoder.final is not None:  # counted before it is sent: its reader may ask for no more after it
                    self.runtime.responses[str(encoder.final["status"])] += 1
                yield new
                encoder.mark_sent(new)
                if encoder.final is not None:
                    return
            if begun.progress.is_late:
                yield encoder.break_off(begun.progress.cut_short())
                return

    @contextmanager
    def counting_refusals(self) -> Iterator[None]:
        """Count errors raised inside by their status."""
        try:
            yield
        except SwitchboardError as error:
            self.runtime.responses[str(error.status)] += 1
            raise


def _begin(
    caller: Caller, read: Callable[[], ResponseRequest], socket: str, known_here: bool
) -> NewResponse | Received:
    """Read a request; store it unless the writer may do that. Without the input, which nobody reads again: to free it
    takes its time."""
    request = read()
    response = create.begin(caller.principal, request, socket=socket)
    if response is None:
        return _receive(caller, request, socket, known_here)
    return response._replace(body=response.body | {"input": []})


def _receive(caller: Caller, request: ResponseRequest, socket: str, known_here: bool) -> Received:
    received = create.receive(caller.principal, request, socket=socket, known_here=known_here)
    return received._replace(body=received.body | {"input": []})


async def in_thread_if_large(events: Sequence[Stored], work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Process these events; in a thread if they are large."""
    if sum(len(event.body) for event in events) < route.LARGE:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(None, work, *args)


def _size(event: Stored) -> int:
    return len(event.body)


def _encode_events(encoder: Encoder, events: Sequence[Stored]) -> list[StreamFrame]:
    return [frame for event in events for frame in encoder.encode(event)]


def dismissal(code: int) -> SwitchboardError:
    """Return why a reader was dismissed, by the close code of a socket."""
    if code in (SIGNED_OUT, NOT_ALLOWED):
        return NotSignedIn("this token has been revoked; the run continues", code="token_revoked")
    return Unavailable("this server can no longer stream the response; the run continues", code="told_no_more")


def broken_off(
    encoder: Encoder, begun: PendingResponse, error: SwitchboardError, *, at_once: bool = False
) -> list[StreamFrame]:
    """Return the end of a stream whose response is not complete: the error, then a failed response."""
    return encoder.break_off(failed(begun, error), error=error_body(error), at_once=at_once)


def failed(begun: PendingResponse, error: SwitchboardError) -> Json:
    """Return the failed response for an error that ends a stream."""
    return resource.resource(begun.received, "failed", error={"code": error.code, "message": error.message})


def trouble(begun: PendingResponse, error: Exception) -> SwitchboardError:
    """Return the error that a reader gets for what stopped its stream; an internal error is logged."""
    if isinstance(error, SwitchboardError):
        return error
    logger.error("streaming of response %s stopped", begun.received.response, exc_info=error)
    return SwitchboardError("internal server error; the run continues", code="server_error")


def _unreadable(begun: PendingResponse, error: Exception) -> Unavailable:
    logger.error("streaming of response %s stopped: its events cannot be read", begun.received.response, exc_info=error)
    return Unavailable("the record cannot be read right now; the run continues", code="record_unreadable")


def error_body(error: SwitchboardError) -> Json:
    """Return an error in the API's format."""
    kind = "server_error" if error.status >= 500 else _TYPES.get(error.status, "invalid_request")
    return {"type": kind, "code": error.code, "message": error.message, "param": error.field or None}


async def refuse(send: route.Send, error: SwitchboardError) -> None:
    """Send `{"error": {type, code, message, param}}` with its status."""
    await route.answer(send, error.status, msgspec.json.encode({"error": error_body(error)}), *route.headers_of(error))
