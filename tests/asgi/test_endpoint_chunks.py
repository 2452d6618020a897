"""Pieces of a body that are written together: each stays a chunk, and who does not read is waited for."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.live import until
from tests.support.threaded_server import answer_lifespan, threaded_server

PIECES = [b"event: a\ndata: %d\n\n" % n for n in range(300)]
PART = b"x" * 10_000
MANY = 3_000  # of those: more than the kernel keeps for a reader


class App:
    """Writes pieces as the doors do; what the server says of each write is kept."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self.others: list[int] = []
        self.is_done = threading.Event()
        self.is_under_way, self.is_late = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return
        write = scope["extensions"]["http.write_chunks"]
        if scope["path"] == "/whole":
            self.others.append(write(scope, PIECES))
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            self.others.append(write(scope, PIECES))
            await send({"type": "http.response.body", "body": b"ok"})
            self.others.append(write(scope, PIECES))
            return
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"over"})
            await self.is_under_way.wait()
            self.others.append(write(scope, PIECES))
            self.is_late.set()
            return
        bodies = [PART] * MANY if scope["path"] == "/much" else PIECES
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/pipelined":
            await asyncio.sleep(0.3)
        if scope["path"] == "/next":
            self.is_under_way.set()
            await self.is_late.wait()
        written = write({**scope}, bodies)  # routes copy the scope
        self.written.append(written)
        for body in bodies[written:]:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        self.is_done.set()


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def port(app: App) -> Iterator[int]:
    """The port of a server in a thread."""
    with threaded_server(app) as server:
        yield server.config.port


def ask(line: socket.socket, path: str, method: str = "GET") -> None:
    line.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())


def head_of(reader) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += reader.read(1)
    return head


def chunks_of(reader) -> list[bytes]:
    """Read one answer; return its chunks."""
    assert b"transfer-encoding: chunked" in head_of(reader)
    chunks = []
    while size := int(reader.readline(), 16):
        chunks.append(reader.read(size))
        assert reader.read(2) == b"\r\n"
    assert reader.read(2) == b"\r\n"
    return chunks


def test_each_piece_is_a_chunk(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        for _ in range(2):  # a connection is used again
            ask(line, "/")
            assert chunks_of(reader) == PIECES

    assert app.written == [len(PIECES)] * 2


def test_who_does_not_read_is_waited_for_and_gets_everything(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        ask(line, "/much")
        until(lambda: app.written)
        assert app.written[0] < MANY
        assert not app.is_done.is_set()
        assert chunks_of(reader) == [PART] * MANY

    until(app.is_done.is_set)


def test_nothing_is_written_before_an_answer_has_started_nor_into_one_of_a_known_length_nor_after_it(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        ask(line, "/whole")
        head_of(reader)
        assert reader.read(2) == b"ok"
        ask(line, "/")
        assert chunks_of(reader) == PIECES

    assert app.others == [0, 0, 0]


def test_an_answer_to_head_has_no_body(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        ask(line, "/", "HEAD")
        head_of(reader)
        ask(line, "/whole")
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"


def test_pieces_of_an_answer_never_come_into_the_next_one_of_its_connection(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        ask(line, "/pipelined")
        ask(line, "/")
        assert [chunks_of(reader), chunks_of(reader)] == [PIECES, PIECES]

    assert app.written == [0, len(PIECES)]


def test_pieces_that_come_after_their_answer_are_not_written_into_the_next_one(app, port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line, line.makefile("rb") as reader:
        ask(line, "/late")
        assert chunks_of(reader) == [b"over"]
        ask(line, "/next")
        assert chunks_of(reader) == PIECES

    assert app.others == [0]
