"""What answers a request to a collector: an acceptance, a web page in its place, or an answer that does not end."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException

import pytest

from conversations.telemetry_export.collector import Collector
from tests.support.alerting import receiving
from tests.support.collecting import Collector as StandIn

ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n"


@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "TEXT/HTML"])
def test_a_web_page_is_no_acceptance(kind: str):
    with receiving(StandIn()) as stand_in:
        stand_in.headers, stand_in.body = {"Content-Type": kind}, b"<html>Sign in</html>"
        with pytest.raises(HTTPException, match="HTTP 200 with a web page"):
            Collector(stand_in.endpoint, {}, 20).send(b"spans")


@pytest.mark.parametrize("headers", [{}, {"Content-Type": "application/x-protobuf"}])
def test_an_empty_answer_is_an_acceptance(headers: dict[str, str]):
    with receiving(StandIn()) as stand_in:
        stand_in.headers = headers
        assert Collector(stand_in.endpoint, {}, 20).send(b"spans").is_taken


@contextmanager
def trickling(head: bytes, rest: bytes, *, pause_s: float) -> Iterator[tuple[str, list[int]]]:
    """Serve one request with an answer whose rest comes byte by byte; yield the address, and the bytes of the rest that
    were sent."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(head)
                for byte in rest:
                    connection.sendall(bytes([byte]))
                    sent.append(byte)
                    time.sleep(pause_s)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", sent
        thread.join(60)


SLOW = {
    "head": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x" * 2000 + b"\r\n\r\n"),
    "body": (ACCEPTED, b"x" * 2000),
    "body of a connection that closes": (ACCEPTED[:-2] + b"Connection: close\r\n\r\n", b"x" * 2000),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_an_answer_that_comes_too_slowly_is_cut_off(answer: tuple[bytes, bytes]):
    with trickling(*answer, pause_s=0.02) as (address, sent), pytest.raises(TimeoutError):
        Collector(address, {}, timeout_s=0.5).send(b"spans")

    assert len(sent) < len(answer[1])
