"""What a socket does while the database is away, or its client reads nothing: it closes with a code that says so."""

import asyncio
import json

import pytest
from django.db import OperationalError

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.events import log
from tests.asgi.test_socket_bounds import closed, follow, opened, with_engine

pytestmark = pytest.mark.django_db(transaction=True)


def away(*_):
    raise OperationalError("too many clients already")


def test_a_topic_that_cannot_be_followed_right_now_has_the_client_reconnect(monkeypatch):
    secret = tokens.make_token(SYSTEM, "viewer", "viewer")

    async def work(engine):
        socket = await opened(engine, secret)
        first = await follow(socket, "stream:c")
        with monkeypatch.context() as patch:
            patch.setattr(log, "head", away)
            await socket.send_input(subscribe("stream:c", after=0))
            answer = await socket.receive_output(5)
        await closed(socket)
        return first["t"], answer

    first, answer = asyncio.run(with_engine(work))

    assert (first, answer) == ("caught_up", {"type": "websocket.close", "code": 1012})


def test_a_refused_topic_is_named_and_others_are_not():
    secret = tokens.make_token(SYSTEM, "viewer", "viewer")

    async def work(engine):
        socket = await opened(engine, secret)
        refused, invalid = await follow(socket, "audit"), await follow(socket, "nowhere")
        await closed(socket)
        return refused, invalid

    refused, invalid = asyncio.run(with_engine(work))

    assert (refused["t"], refused["code"], refused["topic"]) == ("error", "not_allowed", "audit")
    assert (invalid["t"], invalid["code"]) == ("error", "unknown_topic")
    assert "topic" not in invalid


def subscribe(topic, **fields):
    return {"type": "websocket.receive", "text": json.dumps({"op": "subscribe", "topic": topic} | fields)}
