"""What a remote agent may send that is no part of an answer's body."""

import asyncio

import pytest

from agents_app.agui import http_stream
from tests.agents_app.agui.conftest import NEAR

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
PIECE = b"a" * (64 << 10)
MOST = 32 << 20  # bytes that the server is willing to send

ENDLESS = {
    "a header": (OK + b"X-Long: ", PIECE),
    "headers": (OK, b"X-Short: 1\r\n" * 1000),
    "announcements": (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000),
    "a trailer": (OK + CHUNKED + b"1\r\nx\r\n0\r\nX-Long: ", PIECE),
    "a trailer of a refusal": (b"HTTP/1.1 500 No\r\n" + CHUNKED + b"1\r\nx\r\n0\r\nX-Long: ", PIECE),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_an_answer_is_given_up_for_endless(what):
    begins, goes_on = ENDLESS[what]
    sent = 0

    async def answer(reader, writer):
        nonlocal sent
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(begins)
            while sent < MOST:
                writer.write(goes_on)
                sent += len(goes_on)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    async def ask():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            answered = http_stream.post(url, {}, b"{}", allowed=NEAR, connect_s=20, silence_s=20)
            return [piece async for piece in answered]

    with pytest.raises(http_stream.RemoteFailed, match="too long"):
        asyncio.run(ask())
    assert sent < MOST


def test_a_long_answer_is_read_to_its_end():
    body = b"data: x\n\n" * 100_000

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()

    async def ask():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            answered = http_stream.post(url, {}, b"{}", allowed=NEAR, connect_s=20, silence_s=20)
            return b"".join([piece async for piece in answered])

    assert asyncio.run(ask()) == body


def test_an_answer_that_changes_the_protocol_is_refused():
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        writer.close()

    async def ask():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            answered = http_stream.post(url, {}, b"{}", allowed=NEAR, connect_s=20, silence_s=20)
            return [piece async for piece in answered]

    with pytest.raises(http_stream.RemoteFailed, match="the answer is not HTTP"):
        asyncio.run(ask())
