"""`follow` at the server that SWITCHBOARD_URL names: behind TLS, under a path, and with a token that may not report."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from conversations.core.errors import NotAllowed, NotFound, SwitchboardError
from conversations.import_export.server_client import REPORT, ServerClient

PAYLOAD = {"event": "log", "conversation_id": "c", "text": "x"}


@contextmanager
def answering(status: int) -> Iterator[tuple[str, list[str]]]:
    """Serve this status; yield the address and the requested paths."""
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name of the standard library
            paths.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps({"error": {"code": "x", "message": "no"}}).encode())

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
