"""A message to an agent goes to its two topics in one request: whoever repeats it after an error says it once."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import switchboard
from switchboard import HttpBus, Refused, Unreachable, send_message


class Faltering(ThreadingHTTPServer):
    """A server that stores what it is sent, as often as it may; then it is away. `refused`: a topic that it refuses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.stored: list[dict[str, Any]] = []
        self.requests_left, self.refused = 1, ""

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Store a request's messages; return status and answer."""
        if self.requests_left <= 0:
            return 503, {"error": {"code": "unavailable", "message": "away"}}
        self.requests_left -= 1
        items = []
        for message in body.get("messages", [body]):
            if message["topic"] == self.refused:
                items.append({"error": {"code": "not_allowed", "message": "not yours"}})
            else:
                self.stored.append(message)
                items.append({"id": message["id"], "seq": 1})
        return (200, {"items": items}) if "messages" in body else (201, items[0])


class Handler(BaseHTTPRequestHandler):
    """One request of it."""

    server: Faltering

    def do_POST(self) -> None:
        """Answer a publish."""
        status, answer = self.server.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Faltering]:
    """That server, with a bus to it set."""
    with Faltering() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with HttpBus(f"http://127.0.0.1:{server.server_port}", "sb_x") as bus:
            switchboard.set_bus_for_testing(bus)
            yield server
            switchboard.set_bus_for_testing(None)
        server.shutdown()


def test_a_message_that_is_sent_again_after_an_error_is_stored_once(server: Faltering) -> None:
    server.requests_left = 0
    with pytest.raises(Unreachable):
        send_message("agent:Desk", "hello", conversation_id="c")
    server.requests_left = 1

    send_message("agent:Desk", "hello", conversation_id="c")

    assert [message["topic"] for message in server.stored] == ["chat:c", "chat:Desk"]
    assert len({message["payload"]["id"] for message in server.stored}) == 1


def test_what_one_topic_refuses_is_raised(server: Faltering) -> None:
    server.refused = "chat:Desk"

    with pytest.raises(Refused, match="not yours"):
        send_message("agent:Desk", "hello", conversation_id="c")
