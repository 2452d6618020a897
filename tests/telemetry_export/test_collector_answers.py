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

ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"


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
def trickling(answer: bytes, *, pause_s: float) -> Iterator[str]:
    """Serve one request with an answer that comes byte by byte; yield the address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with server.accept()[0] as connection, suppress(OSError):
                connection.recv(1 << 16)
                for byte in answer:
                    connection.sendall(bytes([byte]))
                    time.sleep(pause_s)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(60)


@pytest.mark.parametrize(
    "answer", [ACCEPTED[:-2] + b"X-Slow: " + b"x" * 150 + b"\r\n\r\n" + b"x" * 200, ACCEPTED + b"x" * 200]
)
def test_an_answer_that_comes_too_slowly_is_none(answer: bytes):
    with trickling(answer, pause_s=0.02) as address, pytest.raises(TimeoutError):
        Collector(address, {}, timeout_s=0.5).send(b"spans")
