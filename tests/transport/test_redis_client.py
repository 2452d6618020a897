"""The recorder's client of Redis: a server that fell silent is left, one that is slow is waited for."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import redis

from conversations.transport.recorder import redis_client
from tests.support.services import RedisServer, running

PARTS = 6
ANSWER = bytes(range(256)) * 4096  # 1 MiB, no text


@pytest.fixture(autouse=True)
def patience(monkeypatch) -> float:
    """Half a second without a byte."""
    monkeypatch.setattr(redis_client, "PATIENCE", 0.5)
    return 0.5


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One Redis for the module."""
    with running(RedisServer()) as started:
        yield started


@asynccontextmanager
async def slow_line(server: RedisServer, pause: float) -> AsyncIterator[str]:
    """Pass bytes on to a server and its answers back, each large one in parts with a pause before each."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pause: float) -> None:
        while data := await reader.read(2 * len(ANSWER)):
            size = -(-len(data) // PARTS) if len(data) > PARTS * 1024 else len(data)
            for at in range(0, len(data), size):
                await asyncio.sleep(pause if size < len(data) else 0)
                writer.write(data[at : at + size])
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_connection("127.0.0.1", server.port, limit=2 * len(ANSWER))
        try:
            await asyncio.gather(carry(reader, forth, 0), carry(back, writer, pause))
        finally:
            forth.close(), writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as line:
        yield f"redis://127.0.0.1:{line.sockets[0].getsockname()[1]}/0"


def test_a_server_that_fell_silent_is_left_and_tried_again(server):
    async def ask() -> bytes:
        client = redis_client.connect(server.url)
        await client.set("key", b"\xff")
        server.hang()
        try:
            with pytest.raises(redis.TimeoutError, match="no answer"):
                await client.get("key")
        finally:
            server.go_on()
        answer = await client.get("key")
        await client.aclose()
        return answer

    assert asyncio.run(ask()) == b"\xff"


def test_an_answer_that_keeps_coming_may_take_longer_than_the_patience(server, patience):
    async def ask() -> tuple[bytes, float]:
        async with slow_line(server, patience / 2) as url:
            client = redis_client.connect(url)
            await client.set("large", ANSWER)
            began = time.monotonic()
            answer = await client.get("large")
            took = time.monotonic() - began
            await client.aclose()
            return answer, took

    answer, took = asyncio.run(ask())

    assert answer == ANSWER
    assert took > 2 * patience


def test_a_server_that_hangs_up_in_an_answer_is_an_error():
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"+OK\r\n+OK\r\n*2\r\n$3\r\nab")
        writer.close()

    async def ask() -> None:
        async with await asyncio.start_server(half, "127.0.0.1", 0) as broken:
            client = redis_client.connect(f"redis://127.0.0.1:{broken.sockets[0].getsockname()[1]}/0")
            with pytest.raises(redis.ConnectionError):
                await client.execute_command("XREAD", "STREAMS", "chat:c", "0")
            await client.aclose()

    asyncio.run(ask())
