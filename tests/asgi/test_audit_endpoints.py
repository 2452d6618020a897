"""Refusals at the doors and at the socket are counted for the audit log."""

import asyncio
import json

import pytest
from asgiref.testing import ApplicationCommunicator

from conversations.access.accounts import tokens
from conversations.asgi.socket_consumer import EventsConsumer
from conversations.core.errors import NotAllowed, NotSignedIn
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry
from conversations.realtime.socket_registry import SocketRegistry
from tests.support.authenticator import carrying

pytestmark = pytest.mark.django_db(transaction=True)


async def first_answer(scope):
    """Ask for a socket; return what comes first."""
    socket = ApplicationCommunicator(EventsConsumer.as_asgi(runtime=None, authenticator=None), scope)
    await socket.send_input({"type": "websocket.connect"})
    return await socket.receive_output(5)


def refused():
    return [
        (e.verb, e.target, json.loads(e.correlation)["address"]) for e in AuditEntry.objects.filter(outcome="refused")
    ]


def test_an_unknown_token_at_a_door_is_counted(authenticator):
    for _ in range(3):
        with pytest.raises(NotSignedIn):
            asyncio.run(authenticator.caller(carrying("sb_made-up"), "publish"))

    assert refused() == [("publish", "door", "10.0.0.1")]


def test_a_token_without_the_right_is_counted_by_its_name(authenticator):
    words = tokens.make_token(SYSTEM, "ci", "viewer")

    with pytest.raises(NotAllowed):
        asyncio.run(authenticator.caller(carrying(words), "publish"))

    assert refused() == [("publish", "token:ci", "10.0.0.1")]


@pytest.mark.parametrize("origin", [b"http://127.0.0.1:9", b"https://127.0.0.1:8000", b"null", b"http://evil.example"])
def test_a_socket_from_a_foreign_origin_is_refused_and_counted(origin):
    headers = [(b"host", b"127.0.0.1:8000"), (b"origin", origin)]
    scope = {"type": "websocket", "path": "/ws/", "scheme": "ws", "headers": headers, "client": ("10.0.0.1", 1)}

    assert asyncio.run(first_answer(scope))["type"] == "websocket.close"
    assert refused() == [("open_socket", "socket", "10.0.0.1")]


class Engine:
    """As much of one as a socket asks for."""

    def __init__(self):
        self.socket_registry = SocketRegistry()


def test_a_socket_that_ended_by_an_error_is_forgotten(authenticator):
    engine, words = Engine(), tokens.make_token(SYSTEM, "ci", "viewer")
    scope = {**carrying(words), "type": "websocket", "path": "/ws/"}

    async def leave_while_heard():
        received = iter([{"type": "websocket.connect"}])

        async def receive():
            message = next(received, None)
            if message is None:
                raise OSError("the client left")
            return message

        async def send(message):
            pass

        await EventsConsumer.as_asgi(runtime=engine, authenticator=authenticator)(scope, receive, send)

    with pytest.raises(OSError, match="left"):
        asyncio.run(leave_while_heard())

    assert not engine.socket_registry.sockets
