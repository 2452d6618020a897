"""How much one principal may hold open: so many sockets, so many topics over all of them, so many reads that wait."""

import asyncio
import json

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.db import connection
from django.test import override_settings

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.asgi import socket_consumer
from conversations.asgi.socket_consumer import EventsConsumer
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.asgi.topics import TopicEndpoint
from conversations.core.db_threads import DatabaseThreads
from conversations.core.principals import SYSTEM
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_registry import SocketRegistry
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


def bounded(**bounds):
    return override_settings(CONFIG=settings.CONFIG.model_copy(update=bounds))


class Engine(ServerRuntime):
    """One with what looks tokens up."""

    def __init__(self):
        super().__init__()
        self.authenticator = TokenAuthenticator()


def consumer_of(engine):
    return EventsConsumer.as_asgi(runtime=engine, authenticator=engine.authenticator)


async def opened(engine, words):
    headers = [(b"authorization", f"Bearer {words}".encode())]
    scope = {"type": "websocket", "path": "/ws/", "headers": headers, "client": ("10.0.0.1", 1)}
    socket = ApplicationCommunicator(consumer_of(engine), scope)
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(5))["type"] == "websocket.accept"
    return socket


async def closed(socket):
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(60)


async def follow(socket, topic, op="subscribe"):
    """Ask for a topic; return the first frame that says how it went."""
    await socket.send_input({"type": "websocket.receive", "text": json.dumps({"op": op, "topic": topic})})
    return json.loads((await socket.receive_output(5))["text"]) if op == "subscribe" else None


async def with_engine(work):
    engine = Engine()
    asyncio.get_running_loop().set_default_executor(DatabaseThreads("errand"))  # as when it starts
    engine.hub.start()
    try:
        return await work(engine)
    finally:
        await engine.hub.stop()
        engine.hub.readers.shutdown()
        for pool in (engine.authenticator._lookups, engine.authenticator._notes):
            pool.submit(lambda: connection.close()).result()  # the thread's own
            pool.shutdown()


def test_sockets_opened_at_once_with_one_token_look_it_up_once(monkeypatch):
    secret, looked_up, real = tokens.make_token(SYSTEM, "fleet", "viewer"), [], authentication.caller_from_token

    def look_up(bearer):
        looked_up.append(bearer)
        return real(bearer)

    monkeypatch.setattr(authentication, "caller_from_token", look_up)

    async def work(engine):
        sockets = await asyncio.gather(*[opened(engine, secret) for _ in range(20)])
        admitted = len(engine.socket_registry.sockets)
        for socket in sockets:
            await closed(socket)
        return admitted

    assert asyncio.run(with_engine(work)) == 20
    assert len(looked_up) == 1


@bounded(sockets_per_principal=2)
def test_one_socket_too_many_of_a_principal_is_closed_4429_and_others_are_let_in():
    greedy, other = tokens.make_token(SYSTEM, "greedy", "viewer"), tokens.make_token(SYSTEM, "other", "viewer")

    async def work(engine):
        first, second = await opened(engine, greedy), await opened(engine, greedy)
        third, fourth = await opened(engine, greedy), await opened(engine, other)
        refused = await third.receive_output(5)
        await closed(first)
        fifth = await opened(engine, greedy)
        is_open = await fifth.receive_nothing(0.1)
        for socket in (second, fourth, fifth):
            await closed(socket)
        return refused, is_open, engine.socket_registry

    refused, is_open, watch = asyncio.run(with_engine(work))

    assert (refused["type"], refused["code"]) == ("websocket.close", 4429)
    assert is_open
    assert watch.drops[4429] == 1
    assert not watch.sockets
    assert not watch._open


@bounded(topics_per_principal=2)
def test_one_topic_too_many_over_all_sockets_is_an_error_frame():
    words = tokens.make_token(SYSTEM, "greedy", "viewer")

    async def work(engine):
        first, second = await opened(engine, words), await opened(engine, words)
        answers = [await follow(first, "stream:a"), await follow(second, "stream:b"), await follow(second, "stream:c")]
        again = await follow(first, "stream:a")
        await follow(first, "stream:a", op="unsubscribe")
        answers.append(await follow(second, "stream:c"))
        for socket in (first, second):
            await closed(socket)
        return answers, again, engine.socket_registry

    answers, again, watch = asyncio.run(with_engine(work))

    assert [answer["t"] for answer in answers] == ["caught_up", "caught_up", "error", "caught_up"]
    assert answers[2]["code"] == "too_many"
    assert answers[2]["message"].startswith("token:greedy already follows 2 topics")
    assert again["t"] == "caught_up"
    assert not watch.topics


def test_one_topic_too_many_of_a_socket_is_an_error_frame(monkeypatch):
    monkeypatch.setattr(socket_consumer, "MAX_TOPICS", 2)
    words = tokens.make_token(SYSTEM, "greedy", "viewer")

    async def work(engine):
        socket = await opened(engine, words)
        answers = [await follow(socket, f"stream:{name}") for name in "abca"]
        await closed(socket)
        return answers

    answers = asyncio.run(with_engine(work))

    assert [answer["t"] for answer in answers] == ["caught_up", "caught_up", "error", "caught_up"]
    assert answers[2]["message"] == "a socket can follow at most 2 topics"


async def read_topic(door, words, block_ms):
    headers = [(b"authorization", f"Bearer {words}".encode())]
    query = f"block_ms={block_ms}".encode()
    scope = {"type": "http", "method": "GET", "path": "/api/v1/topics/stream:none/messages", "query_string": query}
    reading = ApplicationCommunicator(door, scope | {"headers": headers, "client": ("10.0.0.1", 1)})
    await reading.send_input({"type": "http.request"})
    return reading


async def answered(reading):
    start = await reading.receive_output(5)
    body = json.loads((await reading.receive_output(5))["body"])
    return start["status"], dict(start["headers"]), body


@bounded(polls_per_principal=2)
def test_one_waiting_read_too_many_of_a_principal_is_429_and_others_are_let_in():
    greedy, other = tokens.make_token(SYSTEM, "greedy", "viewer"), tokens.make_token(SYSTEM, "other", "viewer")

    async def work():
        door = TopicEndpoint(TokenAuthenticator(), SocketRegistry())
        waiting = [await read_topic(door, greedy, 30_000) for _ in range(2)]
        await asyncio.to_thread(until, lambda: sum(door._polls.values()) == 2)
        refused = await answered(await read_topic(door, greedy, 30_000))
        at_once = await answered(await read_topic(door, greedy, 0))
        elsewhere = await answered(await read_topic(door, other, 50))
        for reading in waiting:
            await reading.send_input({"type": "http.disconnect"})
            await answered(reading)
        return refused, at_once[0], elsewhere[0], await answered(await read_topic(door, greedy, 50)), door

    (status, headers, body), at_once, elsewhere, again, door = asyncio.run(work())

    assert (status, body["error"]["code"], body["error"]["field"]) == (429, "too_many", "block_ms")
    assert headers[b"retry-after"] == b"1"
    assert (at_once, elsewhere, again[0]) == (200, 200, 200)
    assert not door._polls
