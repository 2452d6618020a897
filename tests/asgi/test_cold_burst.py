"""From the moment its port answers, 64 connections send a server the requests that it is asked most, all at once."""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import pytest
from websockets.asyncio.client import connect

from tests.support.cold_starts import Stage, cold_server, ndjson, stage
from tests.support.live import Server
from tests.support.shares import amount_of
from tests.support.tiers import rounds

CONNECTIONS = 64
WITHIN = 60.0  # seconds for all answers, on a busy machine
Sent = Callable[["Burst"], Coroutine[Any, Any, str]]
numbers = itertools.count(1)


class Reply(NamedTuple):
    """An HTTP answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes


class Burst(NamedTuple):
    """Where to send it, and with which rights."""

    server: Server
    stage: Stage

    async def http(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Reply:
        """Make one request on a connection of its own."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nConnection: close\r\n"
        head += f"Authorization: Bearer {self.stage.token}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(head.encode() + b"\r\n" + body)
        whole = await reader.read()
        writer.close()
        first, _, rest = whole.partition(b"\r\n\r\n")
        status, *lines = first.decode().split("\r\n")
        return Reply(int(status.split()[1]), dict(line.lower().split(": ", 1) for line in lines), rest)

    async def post(self, path: str, body: object) -> Reply:
        """Post JSON."""
        return await self.http("POST", path, json.dumps(body).encode())

    def socket(self, path: str) -> connect:
        """Open a websocket."""
        headers = {"Authorization": f"Bearer {self.stage.token}"}
        url = f"ws://127.0.0.1:{self.server.port}{path}"
        return connect(url, additional_headers=headers, compression=None, open_timeout=WITHIN)


def judged(reply: Reply, *expected: int) -> str:
    """Return what is wrong with an answer, empty when nothing is: a refusal has to say when to come again."""
    if reply.status in expected or (reply.status in (429, 503) and "retry-after" in reply.headers):
        return ""
    return f"{reply.status} {reply.body[:300]!r}"


def message() -> dict[str, Any]:
    key = f"cold{next(numbers) % 5}"
    return {"topic": f"chat:{key}", "payload": {"type": "message", "conversation_id": key, "content": "cold"}}


async def publish(burst: Burst) -> str:
    return judged(await burst.post("/api/v1/publish", message()), 201)


async def publish_batch(burst: Burst) -> str:
    return judged(await burst.post("/api/v1/publish", {"messages": [message() for _ in range(20)]}), 200)


def question(**more: object) -> dict[str, object]:
    shapes = {"text": {"format": {"type": "text"}}, "metadata": {"cold": "yes"}, "reasoning": {"effort": "low"}}
    tools = [{"type": "function", "name": "rain", "parameters": {"type": "object", "properties": {}}}]
    item = {"role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    return {"model": "Dialogue", "input": [item], "tools": tools, **shapes, **more}


async def ask_as_json(burst: Burst) -> str:
    reply = await burst.post("/v1/responses", question())
    return judged(reply, 200) or ("" if b'"completed"' in reply.body or reply.status != 200 else repr(reply.body))


async def ask_as_stream(burst: Burst) -> str:
    reply = await burst.post("/v1/responses", question(stream=True))
    is_whole = b"event: response.completed" in reply.body and b"data: [DONE]" in reply.body
    return judged(reply, 200) or ("" if is_whole or reply.status != 200 else repr(reply.body[-300:]))


async def ask_on_socket(burst: Burst) -> str:
    async with burst.socket("/v1/responses") as socket:
        await socket.send(json.dumps({"type": "response.create", **question()}))
        async for text in socket:
            event = json.loads(text)
            if event["type"] == "response.completed":
                return ""
            if event["type"] in ("error", "response.failed"):
                return "" if event.get("status") in (429, 503) else text
    return "the socket was closed"


async def subscribe(burst: Burst) -> str:
    async with burst.socket("/ws/") as socket:
        await socket.send(json.dumps({"op": "subscribe", "topic": "stream:lamp", "after": 0, "render": "html"}))
        async for text in socket:
            if (frame := json.loads(text))["t"] in ("caught_up", "error"):
                return "" if frame["t"] == "caught_up" else text
    return "the socket was closed"


async def read_page(burst: Burst) -> str:
    return judged(await burst.http("GET", "/conversations/lamp/"), 200)


async def list_calls(burst: Burst) -> str:
    return judged(await burst.http("GET", "/api/v1/tool-calls"), 200)


async def decide(burst: Burst) -> str:
    path = f"/api/v1/approvals/{burst.stage.approval}/decision"
    return judged(await burst.post(path, {"decision": "approve"}), 200, 409)


async def bring_in(burst: Burst) -> str:
    key = f"imported{next(numbers)}"
    payload = {"type": "message", "conversation_id": key, "sender": "agent:Old", "content": "long ago"}
    body = ndjson({"conversation": key}, {"payload": payload}, {"end": 1})
    return judged(await burst.http("POST", "/api/v1/import", body, "application/x-ndjson"), 200)


HOTTEST: tuple[Sent, ...] = (
    *(publish, publish_batch, ask_as_json, ask_as_stream, ask_on_socket),
    *(subscribe, read_page, list_calls, decide, bring_in),
)


async def send_all(burst: Burst) -> list[str]:
    """Send everything at once; return what went wrong, each with its request."""
    kinds = list(itertools.islice(itertools.cycle(HOTTEST), CONNECTIONS))
    async with asyncio.timeout(WITHIN):
        answers = await asyncio.gather(*(kind(burst) for kind in kinds), return_exceptions=True)
    return [f"{kind.__name__}: {answer!r}" for kind, answer in zip(kinds, answers, strict=True) if answer]


def burst_into(served: Stage, *, is_newcomer: bool) -> None:
    with cold_server(served, is_newcomer=is_newcomer) as server:
        assert asyncio.run(send_all(Burst(server, served))) == []


@pytest.mark.slow
@pytest.mark.crash
def test_a_server_answers_a_burst_in_its_first_second() -> None:
    served = stage()

    for _ in range(rounds(1, 2)):
        burst_into(served, is_newcomer=False)


@pytest.mark.crash
@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(3600)
def test_fifty_servers_answer_a_burst_in_their_first_second() -> None:
    served = stage()

    for _ in range(amount_of(50)):
        burst_into(served, is_newcomer=True)
