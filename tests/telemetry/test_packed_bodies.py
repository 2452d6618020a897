"""Exports that are packed: what they hold until their events are stored is counted as it is without compression."""

import asyncio
import gzip
from types import SimpleNamespace

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import telemetry
from conversations.core.principals import token_principal
from tests.support.otlp import PROTOBUF, traces
from tests.telemetry.test_genai import weather

pytestmark = pytest.mark.django_db(transaction=True)
HEADERS = [(b"content-type", PROTOBUF.encode()), (b"content-encoding", b"gzip")]
SCOPE = {"type": "http", "method": "POST", "path": "/v1/traces", "headers": HEADERS}
PADDING = b"\x7a\x80\x80\x80\x04" + bytes(8 << 20)  # a field of 8 MiB that no version has


class SlowWriter:
    """The runtime and the check of tokens of an endpoint whose events are never stored."""

    def __init__(self):
        self.hub, self.writer, self.storing = SimpleNamespace(epoch="e"), self, asyncio.Queue()

    async def store(self, events):
        self.storing.put_nowait(events)
        await asyncio.Event().wait()

    async def caller(self, scope, right):
        return Caller(token_principal("exporter"), frozenset())


async def send_until_refused(body):
    slow, statuses = SlowWriter(), asyncio.Queue()
    endpoint = telemetry.TelemetryEndpoint(slow, slow)

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        if "status" in message:
            statuses.put_nowait(message["status"])

    held = []
    async with asyncio.timeout(60):
        while len(held) <= telemetry.MAX_HELD // len(PADDING):
            held.append(asyncio.create_task(endpoint(SCOPE, receive, send)))
            ends = [asyncio.create_task(each.get()) for each in (slow.storing, statuses)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            [end.cancel() for end in ends]
            if ends[1].done():
                break
    [task.cancel() for task in held]
    return len(held), ends[1].result() if ends[1].done() else None


def test_events_that_wait_to_be_stored_count_with_their_size_unpacked():
    body = gzip.compress(traces(*weather("packed", trace=24)) + PADDING)
    assert len(body) < 64 << 10

    at_once = telemetry.MAX_HELD_BY_ONE // len(PADDING)
    assert asyncio.run(send_until_refused(body)) == (at_once + 1, 429)
