"""A message to an agent goes to its two topics in one request: whoever repeats it after an error says it once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import switchboard
from switchboard import HttpBus, Refused, Unreachable, send_message
from tests.support.answering import Answer, Request, answering


class Faltering:
    """A server that stores what it is sent, as often as it may; then it is away. `refused`: a topic that it refuses."""

    def __init__(self) -> None:
        self.stored: list[dict[str, Any]] = []
        self.requests_left, self.refused = 1, ""

    def answer(self, request: Request) -> Answer:
        """Store a request's messages."""
        if self.requests_left <= 0:
            return Answer(503, b'{"error": {"code": "unavailable", "message": "away"}}')
        self.requests_left -= 1
        body: dict[str, Any] = json.loads(request.body)
        items = []
        for message in body.get("messages", [body]):
            if message["topic"] == self.refused:
                items.append({"error": {"code": "not_allowed", "message": "not yours"}})
            else:
                self.stored.append(message)
                items.append({"id": message["id"], "seq": 1})
        if "messages" in body:
            return Answer(200, json.dumps({"items": items}).encode())
        return Answer(201, json.dumps(items[0]).encode())


@pytest.fixture
def server() -> Iterator[Faltering]:
    """That server, with a bus to it set."""
    server = Faltering()
    with answering(server.answer) as address, HttpBus(address, "sb_x") as bus:
        switchboard.set_bus_for_testing(bus)
        yield server
        switchboard.set_bus_for_testing(None)


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
