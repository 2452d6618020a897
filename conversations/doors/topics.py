"""`GET /api/v1/topics/{topic}/messages`: what is on a topic after a place, waiting for it if asked to (design 3.2)."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, TypeVarTuple, Unpack

from conversations import envelopes, rights, topics
from conversations.doors import http, waiting
from conversations.doors.bearers import Bearers
from conversations.doors.waiting import Waiting
from conversations.errors import Invalid, NotFound
from conversations.threads import DatabaseThreads

PREFIX, SUFFIX = "/api/v1/topics/", "/messages"
MOST, MOST_MS = 500, 30_000
LOOK_EVERY = 1.0  # seconds, while waiting: heals a lost doorbell, and sees the server stop

Message = tuple[str, str]  # id, body
T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Asked(NamedTuple):
    """What a request asks for."""

    topic: str
    last_id: str | None
    limit: int
    block_ms: int


class TopicDoor(http.Route):
    """The route. Reads go to a few threads; who waits holds none."""

    def __init__(self, bearers: Bearers) -> None:
        self._bearers = bearers
        self._waiting = Waiting()
        self._readers = DatabaseThreads("topics")

    async def handle(self, scope: http.Scope, receive: http.Receive) -> tuple[int, bytes]:
        """Answer 200 `{"items": [{id, topic, payload}], "cursor"}`, ascending; the cursor is the last one's id."""
        visitor = await self._bearers.visitor(scope, "view")
        asked = _asked(scope)
        if visitor.agent and not await self._do(rights.may_follow, visitor.agent, asked.topic):
            raise await self._bearers.refuse(scope, "view", visitor, "this topic")
        topics.check_readable(asked.topic)
        gone = asyncio.ensure_future(waiting.left(receive))
        try:
            found = await self._read(asked, gone, scope)
        finally:
            gone.cancel()
        return 200, _answer(asked.topic, found)

    async def _read(self, asked: Asked, gone: asyncio.Future[None], scope: http.Scope) -> list[Message]:
        deadline = time.monotonic() + asked.block_ms / 1000
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        with self._waiting.on(asked.topic) as news:
            place = await self._do(_place, asked)
            while True:
                news.clear()
                found = await self._do(topics.after, asked.topic, place, asked.limit)
                left = deadline - time.monotonic()
                if found or left <= 0 or gone.done() or (stopping is not None and stopping.is_set()):
                    return found
                await waiting.news_or(gone, news, min(left, LOOK_EVERY))

    async def _do(self, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, work, *args)


def _place(asked: Asked) -> int:
    if asked.last_id is not None:
        return topics.place_of(asked.topic, asked.last_id)
    return topics.place_before_newest(asked.topic, 0 if asked.block_ms else asked.limit)


def _asked(scope: http.Scope) -> Asked:
    """Read the address. Raises Invalid, and NotFound for one that is no topic's."""
    path = scope["path"]
    if not path.endswith(SUFFIX) or len(path) <= len(PREFIX) + len(SUFFIX):
        raise NotFound("expected /api/v1/topics/{topic}/messages")
    topic = path[len(PREFIX) : -len(SUFFIX)]
    envelopes.check_topic(topic)
    fields = http.query(scope)
    if unknown := sorted(fields.keys() - {"last_id", "limit", "block_ms"}):
        raise Invalid("expected last_id, limit or block_ms", field=unknown[0][:40])
    return Asked(
        topic,
        fields.get("last_id"),
        http.whole_number(fields.get("limit", "100"), "limit", 1, MOST),
        http.whole_number(fields.get("block_ms", "0"), "block_ms", 0, MOST_MS),
    )


def _answer(topic: str, found: list[Message]) -> bytes:
    """Write the bodies as they are stored, undecoded."""
    name = json.dumps(topic)
    items = ",".join(f'{{"id":{json.dumps(id_)},"topic":{name},"payload":{body}}}' for id_, body in found)
    cursor = json.dumps(found[-1][0]) if found else "null"
    return f'{{"items":[{items}],"cursor":{cursor}}}'.encode()
