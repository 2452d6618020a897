"""Clients that trickle: a head or a body that does not come on ends, whatever comes on or is awaited stays."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from dashboard import http_protocol
from dashboard.server import config
from tests.live import free_port, until

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
QUIET = 1.0  # seconds after which the server here gives up


async def answer_after_the_body(scope, receive, send):
    """Read the body, wait as long as the path says, answer its size."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    await asyncio.sleep(float(scope["path"][1:] or 0))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server in a thread, with little patience."""
    monkeypatch.setattr(http_protocol, "PATIENCE", QUIET)
    monkeypatch.setattr(http_protocol, "LOOK_EVERY", 0.1)
    port = free_port()
    server = uvicorn.Server(config(answer_after_the_body, "127.0.0.1", port))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield port
    server.should_exit = True
    thread.join(10)


def connect(port: int) -> socket.socket:
    """Open a connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def trickle(line: socket.socket, piece: bytes) -> bytes:
    """Send a piece ten times a second until the server hangs up; answer what it said."""
    line.settimeout(0.1)
    said = b""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            line.sendall(piece)
            if not (part := line.recv(4096)):
                return said
            said += part
        except TimeoutError:
            continue
        except ConnectionError:
            return said
    raise AssertionError("the server never hung up")


@pytest.mark.parametrize(
    ("start", "piece"),
    [(b"", b""), (b"GET / HTTP/1.1\r\nX: ", b"a"), (b"GET / HTTP/1.1\r\n", b"X: y\r\n"), (HEAD, b"x"), (HEAD, b"")],
    ids=["silence", "a long header", "many headers", "a slow body", "no body"],
)
def test_what_does_not_come_on_is_ended(port, start, piece):
    with connect(port) as line:
        line.sendall(start)
        began = time.monotonic()

        said = trickle(line, piece)

        assert QUIET * 0.9 <= time.monotonic() - began < QUIET * 4
        assert said.startswith(b"HTTP/1.1 408") or said == b""


def test_a_slow_body_that_comes_on_is_read(port):
    with connect(port) as line:
        line.sendall(HEAD)
        for _ in range(20):
            line.sendall(b"x" * 5000)
            threading.Event().wait(0.1)  # a slow line: the time is what is tested

        assert b"\r\n100000\r\n" in line.recv(4096)


def test_an_answer_may_take_its_time(port):
    with connect(port) as line:
        line.sendall(b"GET /2.5 HTTP/1.1\r\nHost: x\r\n\r\n")
        line.settimeout(10)
        assert line.recv(4096).startswith(b"HTTP/1.1 200")

        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
