"""`follow` at the server that SWITCHBOARD_URL names: behind TLS, under a path, with a token that may not report, and
behind a proxy that answers in its place."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conversations.core import data_dir
from conversations.core.errors import NotAllowed, NotFound, SwitchboardError, Unavailable
from conversations.import_export import server_client
from conversations.import_export.server_client import REPORT, ServerClient

REFUSAL = json.dumps({"error": {"code": "x", "message": "no"}}).encode()
PAYLOAD = {"event": "log", "conversation_id": "c", "text": "x"}


@contextmanager
def answering(status: int, body: bytes = REFUSAL) -> Iterator[tuple[str, list[str]]]:
    """Serve this status; yield the address and the requested paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name of the standard library
            paths.append(self.path)
            if length := self.headers["Content-Length"]:
                self.rfile.read(int(length))
            else:  # chunked
                while self.rfile.readline() != b"0\r\n":
                    pass
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", paths
        server.shutdown()


def test_an_address_of_a_server_behind_tls_is_taken():
    client = ServerClient("https://switchboard.example/team", "t", REPORT)

    assert isinstance(client._connection, http.client.HTTPSConnection)


def test_a_server_under_a_path_is_asked_there():
    with answering(200) as (address, paths):
        ServerClient(f"{address}/team/", "t", REPORT).publish("stream:c", PAYLOAD, "1")

    assert paths == [f"/team{REPORT}"]


@pytest.mark.parametrize(("status", "error"), [(403, NotAllowed), (404, NotFound)])
def test_a_refusal_that_stays_is_not_taken_for_an_absent_server(status: int, error: type[SwitchboardError]):
    with answering(status) as (address, _), pytest.raises(error):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b"[]", b"", b"[" * 100_000], ids=["page", "list", "none", "deep"]
)
@pytest.mark.parametrize("status", [200, 201])
def test_a_success_that_is_not_switchboards_stores_nothing(status: int, body: bytes):
    with (
        answering(status, body) as (address, _),
        pytest.raises(Unavailable, match=f"responded with {status}, but not as"),
    ):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"{}"])
def test_an_import_that_is_answered_with_a_page_has_not_happened(body: bytes):
    with answering(200, body) as (address, _):
        upload = ServerClient(address, "t").intake()
        upload.receive([b"{}"])
        with pytest.raises(Unavailable, match="responded with 200, but not as"):
            upload.finish()


@pytest.mark.parametrize(
    "body", [b'{"error":"Bad gateway"}', b'{"error":[1]}', b'{"error":{"message":7}}', b'"no"', b"[" * 100_000],
    ids=["text", "list", "number", "no object", "deep"],
)  # fmt: skip
@pytest.mark.parametrize(("status", "error"), [(502, Unavailable), (403, NotAllowed)])
def test_an_error_of_a_proxy_is_an_error_whatever_its_form(status: int, error: type[SwitchboardError], body: bytes):
    with answering(status, body) as (address, _), pytest.raises(error):
        ServerClient(address, "t", REPORT).publish("stream:c", PAYLOAD, "1")


def test_a_program_that_took_the_servers_port_is_no_server(tmp_path, monkeypatch):
    monkeypatch.setattr(server_client, "KNOCKS", 1)
    with answering(200, b"{}") as (address, _):
        data_dir.write_door(tmp_path, address, "once")
        with pytest.raises(Unavailable, match="cannot be reached"), ServerClient.open(tmp_path, "x"):
            pass
