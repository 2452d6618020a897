"""What the routes of `/v1/responses` share: who may come in, how a refusal is worded, a response under way and the
events that tell it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, TypeVar, TypeVarTuple, Unpack

import msgspec

from conversations.actions import responses
from conversations.actions.responses import Received
from conversations.doors import http
from conversations.doors.bearers import Bearers
from conversations.doors.responses.encoding import Encoder, Frame
from conversations.doors.responses.following import Follower, Followers
from conversations.engine import Engine
from conversations.errors import MethodNotAllowed, SwitchboardError, Unavailable
from conversations.log.events import Stored
from conversations.responses import Asked, Json
from conversations.sessions import Visitor
from conversations.threads import DatabaseThreads

VERB = "respond"
LOOK_EVERY = 1.0  # seconds, while nothing happens: sees the server stop and the client leave
SILENCE = 15.0  # seconds after which something is said, so that nobody in between hangs up
SLOW_AFTER = 20.0  # seconds a reader may leave what is sent to it
_TYPES = {404: "not_found", 429: "too_many_requests"}
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class UnderWay(NamedTuple):
    """A response that was asked for, and the reader of what comes of it."""

    asked: Asked
    received: Received
    follower: Follower


class Guest:
    """A reader whose rights are looked at while it reads (law H)."""

    def __init__(self, visitor: Visitor, follower: Follower) -> None:
        self.visitor = visitor
        self.is_dismissed = False
        self._follower = follower

    def dismiss(self, code: int) -> None:
        """Send it nothing more."""
        self.is_dismissed = True
        self._follower.wake()

    def tell_heads(self) -> None:
        """A response has no head to tell."""


class House:
    """One for all routes of a server."""

    def __init__(self, engine: Engine, bearers: Bearers) -> None:
        self.engine, self._bearers = engine, bearers
        self.followers = Followers()
        self._askers = DatabaseThreads("asking")

    async def admit(self, scope: http.Scope, method: str = "POST") -> Visitor:
        """Answer who asks, by the bearer alone. Raises NotSignedIn, NotAllowed (an agent's token too), Unavailable."""
        if scope.get("method", method) != method:
            raise MethodNotAllowed([method])
        visitor = await self._bearers.visitor(scope, VERB)
        if visitor.agent:
            raise await self._bearers.refuse(scope, VERB, visitor)
        if not self.engine.is_ready:
            raise Unavailable(f"this server is {self.engine.state}")
        return visitor

    async def do(self, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        """Do what asks the database in a thread."""
        self.followers.listen()
        return await asyncio.get_running_loop().run_in_executor(self._askers, work, *args)

    def begin(self, visitor: Visitor, asked: Asked, socket: str = "", known_here: bool = True) -> UnderWay:
        """Store what is asked and follow what comes of it. Sync, in a thread."""
        received = responses.receive(visitor.principal, asked, socket=socket, known_here=known_here)
        return UnderWay(asked, received, self.followers.follow(received.conversation, received.seq))

    def enter(self, visitor: Visitor, begun: UnderWay) -> Guest:
        """Have this reader's rights looked at; `leave` at the end."""
        guest = Guest(visitor, begun.follower)
        self.engine.watch.sockets.add(guest)
        return guest

    def leave(self, guest: Guest, begun: UnderWay) -> None:
        """Read no more. The run goes on."""
        self.engine.watch.sockets.discard(guest)
        self.followers.leave(begun.follower)

    async def events(self, begun: UnderWay) -> AsyncIterator[list[Stored]]:
        """Answer what happens in the conversation; nothing every second in which nothing does."""
        while True:
            yield await self.followers.next(begun.follower, LOOK_EVERY)

    async def frames(self, begun: UnderWay, encoder: Encoder) -> AsyncIterator[list[Frame]]:
        """Answer the events of the stream, to the last."""
        yield encoder.begin()
        async for events in self.events(begun):
            yield [frame for event in events for frame in encoder.take(event)]
            if encoder.final is not None:
                self.engine.responses[str(encoder.final["status"])] += 1
                return

    def count_refusal(self, error: SwitchboardError) -> None:
        """Count it by its status."""
        self.engine.responses[str(error.status)] += 1


def told(error: SwitchboardError) -> Json:
    """Word an error as the specification does."""
    kind = "server_error" if error.status >= 500 else _TYPES.get(error.status, "invalid_request")
    return {"type": kind, "code": error.code, "message": error.message, "param": error.field or None}


async def refuse(send: http.Send, error: SwitchboardError) -> None:
    """Send `{"error": {type, code, message, param}}` with its status."""
    await http.answer(send, error.status, msgspec.json.encode({"error": told(error)}), *http.headers_of(error))
