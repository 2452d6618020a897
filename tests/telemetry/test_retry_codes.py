"""What an exporter is told to send again: 429 and 503, in both encodings, with the time to wait."""

import asyncio
import json

import pytest
from google.rpc.status_pb2 import Status

from conversations.asgi import telemetry
from conversations.core.errors import Busy, Unavailable
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
    """A check of tokens that lets everybody in."""

    async def caller(self, scope, right):
        return None


@pytest.mark.parametrize("length", [telemetry.MAX_BODY, None])  # None: in chunks of which nobody knows the sum
def test_bodies_that_are_still_sent_count_among_those_that_are_held(length):
    asyncio.run(fill_up(length))


async def fill_up(length):
    endpoint = telemetry.TelemetryEndpoint(None, Everybody())
    reading, statuses, never = asyncio.Queue(), [], asyncio.Event()

    async def receive():
        reading.put_nowait(length)
        await never.wait()

    async def send(message):
        statuses.append(message.get("status"))

    def begin():
        return asyncio.create_task(endpoint(request(length), receive, send))

    slow = [begin() for _ in range(telemetry.MAX_HELD // telemetry.MAX_BODY)]
    for _ in slow:
        await asyncio.wait_for(reading.get(), 10)

    await asyncio.wait_for(begin(), 10)

    assert (statuses[0], reading.empty()) == (429, True)
    slow[0].cancel()  # its client goes away
    await asyncio.wait([slow[0]])
    slow.append(begin())
    await asyncio.wait_for(reading.get(), 10)
    for task in slow:
        task.cancel()
