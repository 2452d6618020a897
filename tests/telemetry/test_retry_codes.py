"""What an exporter is told to send again: 429 and 503, in both encodings, with the time to wait."""

import asyncio
import itertools
import json

import pytest
from google.rpc.status_pb2 import Status

from conversations.access.authentication import Caller
from conversations.asgi import telemetry
from conversations.core.errors import Busy, Unavailable
from conversations.core.principals import token_principal
from tests.support.otlp import JSON, PROTOBUF


class Overloaded:
    """A server runtime whose writer takes nothing, and a check of tokens that lets everybody in."""

    def __init__(self, error):
        self._error = error

    async def caller(self, scope, right):
        raise self._error


async def answered(error, content_type):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    endpoint = telemetry.TelemetryEndpoint(None, Overloaded(error))
    headers = [(b"content-type", content_type.encode())]
    await endpoint({"type": "http", "method": "POST", "path": "/v1/traces", "headers": headers}, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(("error", "status", "code"), [(Busy("wait"), 429, 8), (Unavailable("away"), 503, 14)], ids=str)
def test_what_cannot_be_taken_now_is_sent_again_later(content_type, error, status, code):
    answer = asyncio.run(answered(error, content_type))

    assert (answer[0], answer[1][b"content-type"]) == (status, content_type.encode())
    assert int(answer[1][b"retry-after"]) > 0
    status_message = Status.FromString(answer[2]) if content_type == PROTOBUF else Status(**json.loads(answer[2]))
    assert (status_message.code, status_message.message) == (code, error.message)


def request(length, *headers):
    fixed = [(b"content-type", PROTOBUF.encode()), *headers]
    if length is not None:
        fixed.append((b"content-length", b"%d" % length))
    return {"type": "http", "method": "POST", "path": "/v1/traces", "headers": fixed}


class Everybody:
    """A check of tokens that lets everybody in, as the senders named, in turn."""

    def __init__(self, *names):
        self._callers = [Caller(token_principal(name), frozenset()) for name in names]
        self._count = itertools.count()

    async def caller(self, scope, right):
        return self._callers[next(self._count) % len(self._callers)]


class SlowExports:
    """Exports whose bodies are begun and not ended, from these senders in turn."""

    def __init__(self, length, *senders):
        self._length, self._endpoint = length, telemetry.TelemetryEndpoint(None, Everybody(*senders))
        self.reading, self.statuses, self._never = asyncio.Queue(), [], asyncio.Event()

    async def receive(self):
        self.reading.put_nowait(self._length)
        await self._never.wait()

    async def send(self, message):
        self.statuses.append(message.get("status"))

    def begin(self):
        return asyncio.create_task(self._endpoint(request(self._length), self.receive, self.send))

    async def fill(self, count):
        slow = [self.begin() for _ in range(count)]
        for _ in slow:
            await asyncio.wait_for(self.reading.get(), 10)
        return slow


@pytest.mark.parametrize("length", [telemetry.MAX_BODY, None])  # None: in chunks of which nobody knows the sum
def test_bodies_that_are_still_sent_count_among_those_that_are_held(length):
    asyncio.run(fill_up(SlowExports(length, "a", "b"), telemetry.MAX_HELD))


def test_one_sender_holds_half_of_it_at_most():
    asyncio.run(fill_up(SlowExports(None, "a"), telemetry.MAX_HELD_BY_ONE))


async def fill_up(exports, limit):
    slow = await exports.fill(limit // telemetry.MAX_BODY)

    await asyncio.wait_for(exports.begin(), 10)

    assert (exports.statuses[0], exports.reading.empty()) == (429, True)
    for task in slow[:2]:
        task.cancel()  # their clients go away
    await asyncio.wait(slow[:2])
    slow += await exports.fill(1)
    for task in slow:
        task.cancel()


def test_a_slow_sender_keeps_out_no_other():
    asyncio.run(half_full())


async def half_full():
    full = telemetry.MAX_HELD_BY_ONE // telemetry.MAX_BODY
    exports = SlowExports(None, *["slow"] * full, "other")
    for task in await exports.fill(full + 1):
        task.cancel()

    assert exports.statuses == []
