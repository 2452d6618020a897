"""`GET /api/v1/topics/{topic}/messages`: the messages on a topic after a position, optionally waiting for new ones
(§3.2)."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from django.conf import settings

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi import long_poll, route
from conversations.asgi.long_poll import LongPoll
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Busy, Invalid, NotFound
from conversations.core.principals import Principal
from conversations.core.url_converters import whole_number
from conversations.events import payload
from conversations.realtime.socket_registry import SocketRegistry
from conversations.transport import topic_reads
from switchboard.http_bus import MAX_BLOCK_MS, MAX_READ

PREFIX, SUFFIX = "/api/v1/topics/", "/messages"
POLL_EVERY_S = 1.0  # while waiting: heals a lost notification, and sees the server stop

Message = tuple[str, str]  # id, body


class TopicRequest(NamedTuple):
    """The parameters of a request."""

    topic: str
    last_id: str | None
    limit: int
    block_ms: int


class TopicEndpoint(route.Route):
    """The route. Reads run in a small thread pool; a waiting client holds no thread."""

    def __init__(self, authenticator: TokenAuthenticator, socket_registry: SocketRegistry) -> None:
        self._authenticator, self._socket_registry = authenticator, socket_registry
        self._waiting = LongPoll()
        self._polls: Counter[Principal] = Counter()
        self._readers = DatabaseThreads("topics")

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 `{"items": [{id, topic, payload}], "cursor"}`, ascending; the cursor is the last one's id."""
        caller = await self._authenticator.caller(scope, "view")
        request = _read_request(scope)
        reach = await self._readers.run(permissions.reach_of, caller.agent, request.topic) if caller.agent else "all"
        if reach is None:
            raise await self._authenticator.refuse(scope, "view", caller, "this topic")
        topic_reads.check_readable(request.topic)
        with self._counted(caller.principal, request):
            gone = asyncio.ensure_future(long_poll.wait_for_disconnect(receive))
            try:
                messages = await self._guarded(caller, request, reach, gone, scope)
            finally:
                gone.cancel()
        return 200, _answer(request.topic, messages)

    @contextmanager
    def _counted(self, principal: Principal, request: TopicRequest) -> Iterator[None]:
        """Count the waiting clients. Raises Busy above `polls_per_principal`."""
        most = settings.CONFIG.polls_per_principal
        if not request.block_ms:
            yield
            return
        if self._polls[principal] >= most:
            message = f"{principal} already has {most:,} waiting requests: use a WebSocket, or wait in fewer requests"
            raise Busy(message, code="too_many", field="block_ms")
        self._polls[principal] += 1
        try:
            yield
        finally:
            self._polls[principal] -= 1
            if not self._polls[principal]:
                del self._polls[principal]

    async def _guarded(
        self,
        caller: Caller,
        request: TopicRequest,
        reach: permissions.Reach,
        gone: asyncio.Future[None],
        scope: route.Scope,
    ) -> list[Message]:
        """Read; a waiting client whose permission is revoked gets that error and nothing else (law H)."""
        if not request.block_ms:
            return await self._read(request, reach, gone, scope)
        with self._socket_registry.reading(caller) as reader:
            messages = await reader.unless_dismissed(self._read(request, reach, gone, scope))
            await reader.unless_dismissed(self._socket_registry.send_gate.wait_until_open())
            return messages

    async def _read(
        self, request: TopicRequest, reach: permissions.Reach, gone: asyncio.Future[None], scope: route.Scope
    ) -> list[Message]:
        deadline = time.monotonic() + request.block_ms / 1000
        stopping = (scope.get("extensions") or {}).get("http.stopping")
        with self._waiting.on(request.topic) as news:
            position = await self._readers.run(_place, request, reach)
            while True:
                news.clear()
                messages = await self._readers.run(topic_reads.after, request.topic, position, request.limit, reach)
                left = deadline - time.monotonic()
                if messages or left <= 0 or gone.done() or (stopping is not None and stopping.is_set()):
                    return messages
                await long_poll.wait_for_change(gone, news, min(left, POLL_EVERY_S))


def _place(request: TopicRequest, reach: permissions.Reach) -> int:
    if request.last_id is not None:
        return topic_reads.place_of(request.topic, request.last_id)
    return topic_reads.place_before_newest(request.topic, 0 if request.block_ms else request.limit, reach)


def _read_request(scope: route.Scope) -> TopicRequest:
    """Parse the URL. Raises Invalid, and NotFound if it names no topic."""
    path = scope["path"]
    if not path.endswith(SUFFIX) or len(path) <= len(PREFIX) + len(SUFFIX):
        raise NotFound("the path must be /api/v1/topics/{topic}/messages")
    topic = path[len(PREFIX) : -len(SUFFIX)]
    payload.check_topic(topic)
    fields = route.query(scope)
    if unknown := sorted(fields.keys() - {"last_id", "limit", "block_ms"}):
        raise Invalid("must be last_id, limit or block_ms", field=unknown[0][:40])
    return TopicRequest(
        topic,
        fields.get("last_id"),
        whole_number(fields.get("limit", "100"), "limit", 1, MAX_READ),
        whole_number(fields.get("block_ms", "0"), "block_ms", 0, MAX_BLOCK_MS),
    )


def _answer(topic: str, messages: list[Message]) -> bytes:
    """Write the bodies as they are stored, without decoding them."""
    name = json.dumps(topic)
    items = ",".join(f'{{"id":{json.dumps(id_)},"topic":{name},"payload":{body}}}' for id_, body in messages)
    cursor = json.dumps(messages[-1][0]) if messages else "null"
    return f'{{"items":[{items}],"cursor":{cursor}}}'.encode()
