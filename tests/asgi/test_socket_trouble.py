"""What a socket does while the database is away, or its client reads nothing: it closes with a code that says so."""

import asyncio
import json
import threading

import pytest
from asgiref.testing import ApplicationCommunicator
from django.db import OperationalError

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.access.audit import refusal_counter
from conversations.access.authentication import NOT_ALLOWED
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.realtime.socket_writer import SocketWriter, TooSlow
from tests.asgi.test_socket_bounds import closed, consumer_of, follow, opened, with_engine

pytestmark = pytest.mark.django_db(transaction=True)


def away(*_, **__):
    raise OperationalError("too many clients already")


def test_a_socket_that_loses_its_right_while_it_begins_to_follow_follows_nothing(monkeypatch):
    secret = tokens.make_token(SYSTEM, "viewer", "viewer")

    async def work(engine):
        socket, loop = await opened(engine, secret), asyncio.get_running_loop()
        (consumer,) = engine.socket_registry.sockets
        is_dismissed = threading.Event()

        def dismiss():
            consumer.dismiss(NOT_ALLOWED)
            is_dismissed.set()

        monkeypatch.setattr(log, "head", lambda _: (loop.call_soon_threadsafe(dismiss), is_dismissed.wait(60), 0)[2])
        await socket.send_input(subscribe("stream:c"))
        answer = await socket.receive_output(5)
        is_silent = await socket.receive_nothing(0.1)
        followed = dict(engine.hub.feeds), dict(engine.socket_registry.topics)
        await closed(socket)
        return answer, is_silent, followed

    answer, is_silent, followed = asyncio.run(with_engine(work))

    assert answer == {"type": "websocket.close", "code": NOT_ALLOWED}
    assert is_silent
    assert followed == ({}, {})


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


@pytest.mark.parametrize("what", ["caller_from_token", "record_refusal"])
def test_a_socket_that_cannot_be_checked_right_now_is_refused_quietly(monkeypatch, what):
    monkeypatch.setattr(authentication if what == "caller_from_token" else refusal_counter, what, away)

    async def work(engine):
        scope = {
            "type": "websocket",
            "path": "/ws/",
            "headers": [(b"authorization", b"Bearer x")],
            "client": ("::1", 1),
        }
        socket = ApplicationCommunicator(consumer_of(engine), scope)
        await socket.send_input({"type": "websocket.connect"})
        answers = [await socket.receive_output(5)]
        if answers[0]["type"] == "websocket.accept":
            answers.append(await socket.receive_output(5))
        await closed(socket)
        return [(answer["type"], answer.get("code")) for answer in answers]

    answers = asyncio.run(with_engine(work))

    # before it is accepted, a close is HTTP 403: a program could not tell it from a refusal for good
    assert answers == [("websocket.accept", None), ("websocket.close", 1012 if what == "caller_from_token" else 4401)]


def test_a_client_that_does_not_read_the_answer_is_too_slow(monkeypatch):
    secret = tokens.make_token(SYSTEM, "viewer", "viewer")

    async def too_slow(*_):
        raise TooSlow

    async def work(engine):
        socket = await opened(engine, secret)
        monkeypatch.setattr(SocketWriter, "text", too_slow)
        await socket.send_input(subscribe("audit"))
        answer = await socket.receive_output(5)
        await closed(socket)
        return answer

    assert asyncio.run(with_engine(work)) == {"type": "websocket.close", "code": 4408}


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
