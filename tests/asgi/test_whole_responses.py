"""A response that the server writes at once, past `send`: it belongs to its own request, and leaves the connection as
any other response does."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from conversations.asgi.route import Route
from conversations.core.errors import Invalid
from dashboard.server.request_ids import with_request_id
from tests.support.live import until
from tests.support.threaded_server import answer_lifespan, threaded_server

IDLE_S = 0.6


class Echo(Route):
    """Returns the path; `/wrong` is refused, `/slow` waits until `may_end`."""

    methods = ("GET", "HEAD")

    def __init__(self) -> None:
        self.counted: list[int] = []
        self.scopes: list[dict] = []
        self.may_end = threading.Event()

    def count(self, status):
        self.counted.append(status)

    async def handle(self, scope, receive):
        self.scopes.append(scope)
        if scope["path"] == "/wrong":
            raise Invalid("must be right", field="path")
        if scope["path"] == "/slow":
            assert await asyncio.to_thread(self.may_end.wait, 60)
        return 201, scope["path"].encode()


class App:
    """A server's app with this one route; what passes `send` is kept."""

    def __init__(self) -> None:
        self.route = Echo()
        self.sent: list[str] = []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await answer_lifespan(receive, send)
            return

        async def noting(message):
            self.sent.append(message["type"])
            await send(message)

        await with_request_id(self.route, scope, receive, noting)


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def server(app: App) -> Iterator[uvicorn.Server]:
    with threaded_server(app) as server:
        server.config.timeout_keep_alive = IDLE_S
        yield server


@pytest.fixture
def line(server: uvicorn.Server) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", server.config.port), timeout=60) as line:
        yield line


def ask(line: socket.socket, path: str, method: str = "GET", *more: str, version: str = "1.1") -> None:
    head = "".join(f"{field}\r\n" for field in ("Host: x", *more))
    line.sendall(f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode())


def answer_of(reader, *, has_body: bool = True) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """Read one response: its status line, its headers, its body."""
    first, headers = reader.readline(), {}
    while (field := reader.readline()) != b"\r\n":
        name, _, value = field.strip().partition(b": ")
        assert name not in headers
        headers[name] = value
    return first, headers, reader.read(int(headers[b"content-length"])) if has_body else b""


def test_it_has_the_headers_that_send_would_write(app, line):
    with line.makefile("rb") as reader:
        ask(line, "/a", "GET", "X-Request-ID: mine")
        whole = answer_of(reader)
        app.route.scopes[0]["extensions"].pop("http.write_response")  # of this connection
        ask(line, "/a", "GET", "X-Request-ID: mine")
        sent = answer_of(reader)

    assert whole[0] == sent[0] == b"HTTP/1.1 201 Created\r\n"
    assert whole[1].keys() == sent[1].keys() >= {b"date", b"cache-control", b"content-security-policy"}
    assert {**whole[1], b"date": b""} == {**sent[1], b"date": b""}
    assert (whole[1][b"x-request-id"], whole[2], sent[2]) == (b"mine", b"/a", b"/a")
    assert app.sent == ["http.response.start", "http.response.body"], "the first did not pass `send`"
    assert app.route.counted == [201, 201]


def test_a_refusal_between_two_of_them_leaves_the_connection_as_it_is(app, line):
    with line.makefile("rb") as reader:
        answers = []
        for path in ("/a", "/wrong", "/b"):
            ask(line, path)
            answers.append(answer_of(reader))

    assert [first[9:12] for first, _, _ in answers] == [b"201", b"400", b"201"]
    assert (answers[0][2], answers[2][2]) == (b"/a", b"/b")
    assert app.route.counted == [201, 400, 201]


def test_requests_that_come_before_the_first_is_answered_get_their_own_answers_in_order(app, line):
    with line.makefile("rb") as reader:
        ask(line, "/slow")
        ask(line, "/b")
        ask(line, "/c")
        until(lambda: app.route.scopes, what="the first to begin")
        app.route.may_end.set()

        assert [answer_of(reader)[2] for _ in range(3)] == [b"/slow", b"/b", b"/c"]


def test_head_gets_no_body(app, line):
    with line.makefile("rb") as reader:
        ask(line, "/a", "HEAD")
        assert answer_of(reader, has_body=False)[1][b"content-length"] == b"2"
        ask(line, "/b")
        assert answer_of(reader)[2] == b"/b"


@pytest.mark.parametrize(("fields", "version"), [(("Connection: close",), "1.1"), ((), "1.0")], ids=["close", "1.0"])
def test_a_connection_that_is_to_end_ends_with_its_answer(app, line, fields, version):
    with line.makefile("rb") as reader:
        ask(line, "/a", "GET", *fields, version=version)
        _, headers, body = answer_of(reader)

        assert (headers[b"connection"], body, reader.read()) == (b"close", b"/a", b"")


def test_a_client_that_left_is_written_nothing(app, server):
    with socket.create_connection(("127.0.0.1", server.config.port), timeout=60) as gone:
        ask(gone, "/slow")
        until(lambda: app.route.scopes, what="the request to begin")
    until(lambda: not server.server_state.connections, what="the server to notice")
    app.route.may_end.set()

    until(lambda: app.route.counted == [201], what="the answer")
    assert app.sent == ["http.response.start", "http.response.body"]


def test_an_idle_connection_is_closed_in_time_and_one_in_use_is_not(app, line):
    with line.makefile("rb") as reader:
        began = time.monotonic()
        while time.monotonic() < began + 2.5 * IDLE_S:
            ask(line, "/a")
            assert answer_of(reader)[2] == b"/a"
            threading.Event().wait(IDLE_S / 6)  # less than the server's patience: the time is what is tested
        idle_since = time.monotonic()

        assert reader.read() == b""
        assert time.monotonic() - idle_since < 10 * IDLE_S


def test_a_request_that_takes_longer_than_an_idle_connection_may_last_is_answered(app, line):
    with line.makefile("rb") as reader:
        ask(line, "/a")
        answer_of(reader)
        ask(line, "/slow")
        threading.Event().wait(2 * IDLE_S)  # the timer of the first answer is over: the time is what is tested
        app.route.may_end.set()

        assert answer_of(reader)[2] == b"/slow"
