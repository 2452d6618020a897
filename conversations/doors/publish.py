"""`POST /api/v1/publish`: messages onto the bus, answered after their commit (design 3.6). A raw ASGI route."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from conversations.doors import batch, http, messages
from conversations.doors.bearers import Bearers
from conversations.engine import Engine
from conversations.envelopes import MAX_BYTES
from conversations.errors import Invalid, TooLarge
from conversations.log.events import NewEvent
from conversations.sessions import Visitor
from conversations.threads import ASKING

MAX_BATCH = 8 << 20  # bytes of one request
MANY = 64 << 10  # bytes that take the event loop longer than it has
OVERHEAD = 4096  # bytes around a payload
NDJSON = b"application/x-ndjson"
T = TypeVar("T")


class Publish(msgspec.Struct):
    """The body: one message, or several."""

    topic: str | None = None
    payload: msgspec.Raw = messages.NOTHING
    id: str | None = None
    messages: list[msgspec.Raw] | None = None


_decoder = msgspec.json.Decoder(Publish)


class PublishDoor(http.Route):
    """The route, bound to one engine."""

    methods = ("POST",)

    def __init__(self, engine: Engine, bearers: Bearers) -> None:
        self._engine, self._bearers = engine, bearers
        self._readers = ThreadPoolExecutor(ASKING["publish"], thread_name_prefix="publish")

    async def handle(self, scope: http.Scope, receive: http.Receive) -> tuple[int, bytes]:
        """Answer 201 `{id, conversation_id, seq}`, or 200 `{"items": […]}` for several."""
        visitor = await self._bearers.visitor(scope, "publish")
        body = await http.body(scope, receive, MAX_BATCH)
        if http.header(scope, b"content-type").startswith(NDJSON):
            return await self._several(await self._cut(batch.lines_of, body), visitor)
        try:
            asked = _decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if found := await self._cut(batch.cut, body):
                return await self._several(found, visitor)
            raise Invalid(f'{messages.EXPECTED} or {{"messages": […]}} as JSON: {error}') from None
        if asked.messages is not None:
            return await self._several(batch.check_many(asked.messages), visitor)
        if len(body) > MAX_BYTES + OVERHEAD:
            raise TooLarge(f"a payload has at most {MAX_BYTES:,} bytes", field="payload")
        return await self._one(asked, visitor)

    async def _one(self, asked: Publish, visitor: Visitor) -> tuple[int, bytes]:
        if asked.topic is None or asked.payload is messages.NOTHING:
            raise Invalid(messages.EXPECTED, field="topic" if asked.topic is None else "payload")
        event = messages.event_of(asked.topic, asked.payload, asked.id, visitor)
        (stored,) = await self._engine.store([event])
        if stored.clashes:
            raise batch.reused()
        return 201, messages.answer_of(event, stored.seq)

    async def _several(self, found: batch.Found, visitor: Visitor) -> tuple[int, bytes]:
        items, events = await self._read(found, visitor)
        return 200, batch.answer(items, await self._engine.store(events) if events else [])

    async def _cut(self, work: Callable[[bytes], T], body: bytes) -> T:
        """Take a large body apart in the thread, too."""
        if len(body) < MANY:
            return work(body)
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, body)

    async def _read(self, found: batch.Found, visitor: Visitor) -> tuple[list[batch.Read], list[NewEvent]]:
        """Read a large batch in a thread: sockets go on meanwhile."""
        if sum(map(len, found)) < MANY:
            return batch.read(found, visitor)
        return await asyncio.get_running_loop().run_in_executor(self._readers, batch.read, found, visitor)
