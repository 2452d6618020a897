"""Clients that trickle or do not read: what makes no progress ends; what is awaited may take its time."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from dashboard.server import http_protocol
from tests.support.live import until
from tests.support.threaded_server import answer_lifespan, threaded_server

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
QUIET = 1.0  # seconds after which the server here gives up
LARGE = 16 << 20  # bytes of an answer, more than the kernel keeps for a reader


async def answer_after_the_body(scope, receive, send):
    """Read the body, wait as long as the path says, answer its size."""
    if scope["type"] == "lifespan":
        await answer_lifespan(receive, send)
        return
    size, more = 0, True
    while more:
        message = await receive()
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    if scope["path"] in ("/whole", "/parts"):
        await answer_much(send, LARGE if scope["path"] == "/whole" else 1 << 16)
        return
    await asyncio.sleep(float(scope["path"][1:] or 0))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(size).encode()})


async def answer_much(send, part):
    """Return as a door does, in one part, or as a page, in many."""
    headers = [(b"content-length", b"%d" % LARGE)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for at in range(0, LARGE, part):
        await send({"type": "http.response.body", "body": b"x" * part, "more_body": at + part < LARGE})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[uvicorn.Server]:
    """A server in a thread, with little patience."""
    monkeypatch.setattr(http_protocol, "PATIENCE", QUIET)
    monkeypatch.setattr(http_protocol, "POLL_EVERY_S", 0.1)
    with threaded_server(answer_after_the_body) as server:
        yield server


@pytest.fixture
def port(server: uvicorn.Server) -> int:
    """Its port."""
    return int(server.config.port)


def connect(port: int) -> socket.socket:
    """Open a connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=60)


def trickle(line: socket.socket, piece: bytes) -> bytes:
    """Send a piece ten times a second until the server hangs up; return what it said."""
    line.settimeout(0.1)
    answer = b""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            line.sendall(piece)
            if not (part := line.recv(4096)):
                return answer
            answer += part
        except TimeoutError:
            continue
        except ConnectionError:
            return answer
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

        answer = trickle(line, piece)

        assert QUIET * 0.9 <= time.monotonic() - began < QUIET * 4
        assert answer.startswith(b"HTTP/1.1 408") or answer == b""


@pytest.mark.thorough
def test_a_slow_body_that_comes_on_is_read(port):
    with connect(port) as line:
        line.sendall(HEAD)
        for _ in range(20):
            line.sendall(b"x" * 5000)
            threading.Event().wait(0.1)  # a slow line: the time is what is tested

        assert b"\r\n100000\r\n" in line.recv(4096)


@pytest.mark.thorough
def test_an_answer_may_take_its_time(port):
    with connect(port) as line:
        line.sendall(b"GET /2.5 HTTP/1.1\r\nHost: x\r\n\r\n")
        line.settimeout(10)
        assert line.recv(4096).startswith(b"HTTP/1.1 200")

        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")


ONE = b"POST / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 150 + b"\r\nContent-Length: 2\r\n\r\n{}"
TINY_CHUNKS = (
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
)


@pytest.mark.parametrize(("requests", "count"), [(ONE * 1000, 1000), (TINY_CHUNKS + ONE, 2)], ids=["many", "chunks"])
def test_requests_that_come_in_one_piece_are_each_answered(port, requests, count):
    with connect(port) as line:
        sending = threading.Thread(target=line.sendall, args=[requests])
        sending.start()
        answers = b""
        while answers.count(b"HTTP/1.1 ") < count and (part := line.recv(1 << 16)):
            answers += part
        sending.join()

    assert answers.count(b"HTTP/1.1 200 OK") == count


def test_an_endless_head_after_others_is_refused(port):
    with connect(port) as line:
        line.sendall(ONE * 2 + b"GET / HTTP/1.1\r\nX: ")

        assert b"HTTP/1.1 431" in trickle(line, b"a" * (16 << 10))


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_a_reader_that_does_not_read_is_hung_up_on(server, port, path):
    with connect(port) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert line.recv(12).startswith(b"HTTP/1.1")
        began = time.monotonic()
        assert server.server_state.connections

        until(lambda: not server.server_state.connections, within=QUIET * 6, what="the connection to be closed")

        assert time.monotonic() - began > QUIET * 0.9
        until(lambda: not server.server_state.tasks, what="the answer's task to end")


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_a_slow_reader_that_reads_on_gets_all_of_it(port, path):
    with connect(port) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        size = 0
        while size < LARGE:
            threading.Event().wait(0.1)  # a slow line: the time is what is tested
            some = line.recv(600_000, socket.MSG_WAITALL)
            assert some
            size += len(some)
