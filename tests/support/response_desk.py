"""The responses door in the test's own process, without a port: requests as ASGI messages, answered by a stand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any, NamedTuple

from conversations.access.accounts import tokens
from conversations.asgi.responses.routes import ResponsesRoutes
from conversations.asgi.responses.shared import ResponsesContext
from conversations.asgi.responses.websocket import ResponsesSocket
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.principals import SYSTEM
from conversations.realtime.server_runtime import ServerRuntime
from tests.support.stand_in import MODEL, standing_in

Body = dict[str, Any]
PATIENCE = 20.0  # seconds for an answer


class Answer(NamedTuple):
    """An answer: its status, its headers, and each write of its body."""

    status: int
    headers: dict[str, str]
    writes: list[bytes]

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(b"".join(self.writes))

    @property
    def events(self) -> list[Body]:
        """The events of a stream, each checked to be one write of two lines and a blank one."""
        frames = []
        for write in self.writes:
            if write in (b"data: [DONE]\n\n", b"") or write.startswith(b":"):
                continue
            event, data, *rest = write.decode().split("\n")
            assert rest == ["", ""], write
            body = json.loads(data.removeprefix("data: "))
            assert event == f"event: {body['type']}", write
            frames.append(body)
        return frames


class Desk:
    """The door, and somebody who may ask."""

    def __init__(self, role: str = "operator") -> None:
        self.runtime = ServerRuntime()
        self.runtime.state = "ok"
        self.runtime.writer.start()
        self.authenticator = TokenAuthenticator()
        self.context = ResponsesContext(self.runtime, self.authenticator)
        self.token = tokens.make_token(SYSTEM, f"asker-{role}", role)

    def ask(self, body: Any = None, path: str = "/v1/responses", **more: Any) -> Answer:
        """Make one request, `headers` and `method` by name, and wait for its answer. `body` is JSON, or bytes."""
        return self.run(lambda: self._ask(body, path, **more))

    def create(self, words: Any = "hello", **more: Any) -> Answer:
        """Ask for a response."""
        return self.ask({"model": MODEL, "input": words, **more})

    def get(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Read something below /v1, or do what takes no body."""
        return self.ask(b"", f"/v1/{path}", method=method, headers=headers or None)

    def stream(self, words: Any = "hello", **more: Any) -> list[Body]:
        """Ask for a stream; return its events."""
        answer = self.create(words, stream=True, **more)
        assert answer.status == 200, answer.json
        assert answer.writes[-1] == b"data: [DONE]\n\n"
        return answer.events

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run something in a loop of its own."""

        async def within() -> Any:
            try:
                async with asyncio.timeout(PATIENCE):
                    return await work()
            finally:
                await self.context.followers.stop()

        return asyncio.run(within())

    async def _ask(self, body: Any, path: str, **more: Any) -> Answer:
        async with self.asking(body, path, **more) as asking:
            return await asking.answer()

    @asynccontextmanager
    async def asking(
        self, body: Any, path: str = "/v1/responses", *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Asking]:
        """Hold one request open."""
        head = {"authorization": f"Bearer {self.token}"} if headers is None else headers
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        asking = Asking(raw, method, path, head)
        task = asyncio.create_task(ResponsesRoutes(self.context)(asking.scope, asking.receive, asking.send))
        asking.task = task
        try:
            yield asking
        finally:
            asking.leave()
            await task

    @asynccontextmanager
    async def socket(self, **headers: str) -> AsyncIterator[Wire]:
        """Hold a websocket open."""
        head = headers or {"authorization": f"Bearer {self.token}"}
        wire = Wire(head)
        task = asyncio.create_task(ResponsesSocket(self.context)(wire.scope, wire.receive, wire.send))
        try:
            yield wire
        finally:
            wire.leave()
            await task

    def close(self) -> None:
        """End its threads: nobody asks the database after the test."""
        self.runtime.writer.close()
        pools = [
            self.authenticator._lookups,
            self.authenticator._notes,
            self.context._askers,
            self.context.followers.readers,
        ]
        for pool in pools:
            pool.submit(_close)
            pool.shutdown(wait=True)


class Asking:
    """One request under way."""

    task: asyncio.Task[None]

    def __init__(self, body: bytes, method: str, path: str, headers: dict[str, str]) -> None:
        path, _, query = path.partition("?")
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.stopping = asyncio.Event()
        self.scope: Body = {"type": "http", "method": method, "path": path, "headers": encoded}
        self.scope |= {"query_string": query.encode()}
        self.scope |= {"client": ("127.0.0.1", 1), "extensions": {"http.stopping": self.stopping}}
        self._gone = asyncio.Event()
        self._body: bytes | None = body
        self.sent: list[Body] = []
        self._news = asyncio.Event()

    async def receive(self) -> Body:
        """Give the body, then wait until the client leaves."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Body) -> None:
        """Take what is sent."""
        self.sent.append(message)
        self._news.set()

    def leave(self) -> None:
        """Hang up."""
        self._gone.set()

    async def writes(self, count: int) -> list[bytes]:
        """Wait for so many writes of the body."""
        while len(writes := self._writes) < count:
            self._news.clear()
            await self._news.wait()
        return writes

    @property
    def _writes(self) -> list[bytes]:
        return [message.get("body", b"") for message in self.sent if message["type"] == "http.response.body"]

    async def answer(self) -> Answer:
        """Wait for the end."""
        await self.task
        start = self.sent[0]
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, self._writes)


class Wire:
    """One websocket under way."""

    def __init__(self, headers: dict[str, str]) -> None:
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.scope: Body = {"type": "websocket", "path": "/v1/responses", "headers": encoded, "query_string": b""}
        self.scope |= {"client": ("127.0.0.1", 1), "extensions": {"websocket.http.response": {}}}
        self._inbox: asyncio.Queue[Body] = asyncio.Queue()
        self._inbox.put_nowait({"type": "websocket.connect"})
        self._outbox: asyncio.Queue[Body] = asyncio.Queue()

    async def receive(self) -> Body:
        """Give what the client says."""
        return await self._inbox.get()

    async def send(self, message: Body) -> None:
        """Take what is sent."""
        self._outbox.put_nowait(message)

    def say(self, value: Any) -> None:
        """Send a frame: JSON, or a text as it is."""
        text = value if isinstance(value, str) else json.dumps(value)
        self._inbox.put_nowait({"type": "websocket.receive", "text": text})

    def create(self, words: Any = "hello", **more: Any) -> None:
        """Ask for a response."""
        self.say({"type": "response.create", "model": MODEL, "input": words, **more})

    def leave(self) -> None:
        """Hang up."""
        self._inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})

    async def next(self) -> Body:
        """Return the next ASGI message."""
        return await self._outbox.get()

    async def event(self) -> Body:
        """Return the next event."""
        message = await self.next()
        while message["type"] == "websocket.accept":
            message = await self.next()
        assert message["type"] == "websocket.send", message
        frame: Body = json.loads(message["text"])
        return frame

    async def turn(self) -> list[Body]:
        """Return the events of one response, or the one error."""
        events = [await self.event()]
        ends = ("response.completed", "response.failed", "response.incomplete", "error")
        while events[-1]["type"] not in ends:
            events.append(await self.event())
        return events


def _close() -> None:
    from django.db import connection

    connection.close()


@contextmanager
def desk_open(role: str = "operator") -> Iterator[Desk]:
    """A desk with a stand-in behind it."""
    with closing(Desk(role)) as desk, standing_in():
        yield desk
