"""How responses are written: the head together with the first part of a body of known length."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
import uvicorn

from dashboard.server import http_protocol
from dashboard.server.uvicorn_config import config
from tests.support.live import free_port, until

LENGTH = (b"content-length", b"5")
RESPONSES = {
    "/known": [(200, [LENGTH]), (b"hello", False)],
    "/two-parts": [(200, [LENGTH]), (b"he", True), (b"llo", False)],
    "/empty": [(200, [(b"content-length", b"0")]), (b"", False)],
    "/chunked": [(200, []), (b"hello", False)],
    "/not-modified": [(304, [LENGTH]), (b"", False)],
    "/broken": [(200, [LENGTH]), RuntimeError("between head and body")],
    "/large": [(200, [(b"content-length", b"%d" % (1 << 20))]), (b"x" * (1 << 20), False)],
}


async def respond(scope, receive, send):
    """Send the messages of the path."""
    if scope["type"] == "lifespan":
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    (status, headers), *parts = RESPONSES[scope["path"]]
    await receive()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    for part in parts:
        if isinstance(part, Exception):
            raise part
        await send({"type": "http.response.body", "body": part[0], "more_body": part[1]})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server in a thread."""
    free = free_port()
    server = uvicorn.Server(config(respond, "127.0.0.1", free))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started)
    yield free
    server.should_exit = True
    thread.join(60)


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Everything that responses hand to the connection's transport."""
    recorded: list[bytes] = []
    init = http_protocol.ResponseWriter.__init__

    class Recording:
        def __init__(self, transport):
            self._transport = transport

        def write(self, data):
            recorded.append(bytes(data))
            self._transport.write(data)

        def __getattr__(self, name):
            return getattr(self._transport, name)

    monkeypatch.setattr(
        http_protocol.ResponseWriter, "__init__", lambda self, transport: init(self, Recording(transport))
    )
    return recorded


def get(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()


@pytest.mark.parametrize(
    ("path", "number"), [("/known", 1), ("/two-parts", 2), ("/empty", 1), ("/not-modified", 1), ("/chunked", 2)]
)
def test_a_head_of_known_length_is_written_with_the_first_part(port, writes, path, number):
    status, body = get(port, path)
    assert (status, body) == (RESPONSES[path][0][0], b"" if path in ("/empty", "/not-modified") else b"hello")
    assert len(writes) == number


def test_a_large_part_is_not_copied(port, writes):
    assert len(get(port, "/large")[1]) == 1 << 20
    assert [len(data) > http_protocol.SMALL for data in writes] == [False, True]


def test_head_requests_get_their_head(port):
    assert get(port, "/known", "HEAD") == (200, b"")


def test_a_response_that_breaks_off_sends_its_head_before_the_end(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"GET /broken HTTP/1.1\r\nhost: x\r\n\r\n")
        received = b""
        while data := client.recv(4096):
            received += data
    assert received.startswith(b"HTTP/1.1 200 ")
    assert received.endswith(b"\r\n\r\n")


def test_pipelined_requests_are_answered_in_order(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"GET /known HTTP/1.1\r\nhost: x\r\n\r\nGET /two-parts HTTP/1.1\r\nhost: x\r\n\r\n")
        received = b""
        while received.count(b"hello") < 2:
            received += client.recv(4096)
    assert received.count(b"HTTP/1.1 200 ") == 2


def test_a_client_is_told_to_go_on_before_its_body(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        client.sendall(b"POST /known HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ok")
        assert client.recv(4096).endswith(b"hello")
