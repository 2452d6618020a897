"""The hub: whoever follows a feed gets all of it, whatever becomes of the drawing."""

import asyncio
import json
import threading

import pytest

from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.events import log, payload
from conversations.realtime import feed as feed_module
from conversations.realtime import hub
from conversations.realtime.hub import Hub
from conversations.realtime.live_renderer import LiveRenderer
from conversations.realtime.send_gate import SendGate
from tests.support.protocol_client import Client, Line

pytestmark = pytest.mark.django_db(transaction=True)


def event(n):
    body = json.dumps({"event": "log", "conversation_id": "c", "n": n})
    return log.from_bus("stream:c", None, body, payload.parse(body.encode()), principals.token_principal("t"))


async def reaches(line, seq):
    """Wait until the client has seen this seq, without asking for anything again."""
    async with asyncio.timeout(60):
        while line.client.last < seq:
            line.deliver()
            await asyncio.sleep(0.005)


async def is_level(line):
    """Wait until the hub itself hands frames to the line."""
    async with asyncio.timeout(60):
        while not line.subscription.is_live:  # noqa: ASYNC110  # the subscription tells nobody
            await asyncio.sleep(0.005)


async def following(work):
    """Run `work` with a hub and a client who is level with a conversation of one event."""
    running = Hub(epoch="e")
    running.start()
    line = Line(running, Client(), "c", "html", takes_ready=True)
    try:
        line.connect()
        await asyncio.to_thread(with_connection, log.append, [event(0)])
        await reaches(line, 1)
        await is_level(line)
        await work(running, line)
    finally:
        line.cut()
        await running.stop()
        running.readers.shutdown()


def test_the_end_of_a_burst_too_large_to_draw_reaches_who_is_level(monkeypatch):
    monkeypatch.setattr(hub, "MAX_DRAWING", 0)
    gate, draw = threading.Event(), LiveRenderer.draw
    monkeypatch.setattr(LiveRenderer, "draw", lambda *given: gate.wait(60) and draw(*given))

    async def work(running, line):
        feed = running.feeds["c", "html"]
        await asyncio.to_thread(with_connection, log.append, [event(1)])
        await asyncio.to_thread(with_connection, log.append, [event(2)])
        async with asyncio.timeout(60):
            while feed.head < 3:  # noqa: ASYNC110  # the feed tells nobody
                await asyncio.sleep(0.005)
        gate.set()
        await reaches(line, 3)

    gate.set()
    asyncio.run(following(lambda running, line: gate.clear() or work(running, line)))


def test_a_drawing_that_failed_is_read_again(monkeypatch):
    failures, draw = [OSError("no such template")], LiveRenderer.draw

    def fail_once(artist, events):
        if events and events[0].seq == 2 and failures:
            raise failures.pop()
        return draw(artist, events)

    monkeypatch.setattr(LiveRenderer, "draw", fail_once)

    async def work(running, line):
        await asyncio.to_thread(with_connection, log.append, [event(1)])
        await reaches(line, 2)

    asyncio.run(following(work))


def test_who_fell_behind_the_ring_does_not_wait_for_the_artist():
    feed = feed_module.Feed("c", "html", SendGate())
    feed.drawing = 1

    assert feed.is_coming_after(4)
    feed.push(hub.frames.events("stream:c", "e", [(9, "{}")]))
    assert feed.is_coming_after(9)
    assert not feed.is_coming_after(4)
