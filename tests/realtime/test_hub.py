"""The hub: whoever follows a feed gets all of it, whatever becomes of the rendering."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.events import commit_listeners, log
from conversations.realtime import feed as feed_module
from conversations.realtime import hub
from conversations.realtime.hub import Hub
from conversations.realtime.live_renderer import LiveRenderer
from conversations.realtime.send_gate import SendGate
from tests.support.protocol_client import Client, Line
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def event(n):
    return unchecked("c", {"event": "log", "n": n}, principals.token_principal("t"))


async def reaches(line, seq):
    """Wait until the client has seen this seq, without asking for anything again."""
    async with asyncio.timeout(60):
        while line.client.last < seq:
            line.deliver()
            await asyncio.sleep(0.005)


async def is_level(line):
    """Wait until the hub itself hands frames to the line."""
    async with asyncio.timeout(60):
        while not line.subscription.is_up_to_date:  # noqa: ASYNC110  # the subscription tells nobody
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
    monkeypatch.setattr(hub, "MAX_RENDERING", 0)
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
    feed.rendering = 1

    assert feed.is_coming_after(4)
    feed.push(hub.frames.events("stream:c", "e", [(9, "{}")]))
    assert feed.is_coming_after(9)
    assert not feed.is_coming_after(4)


@pytest.mark.parametrize("announced", ["the next event", "the head, by another process"])
def test_what_was_not_announced_is_read_once_for_all(announced, monkeypatch):
    """Event 2 is committed without a word; what comes then shows that it is missing."""
    is_lost, reads = [False], []
    monkeypatch.setattr(hub, "should_drop", lambda _: is_lost[0])
    monkeypatch.setattr(hub, "HEAL_EVERY", 3600)

    async def work(running, first):
        lines = [first, *(Line(running, Client(), "c", "html", takes_ready=True) for _ in range(2))]
        for line in lines[1:]:
            line.connect()
            await reaches(line, 1)
            await is_level(line)
        read = running.read_frames
        monkeypatch.setattr(running, "read_frames", lambda feed, after: reads.append(after) or read(feed, after))

        is_lost[0] = True
        await asyncio.to_thread(with_connection, log.append, [event(1)])
        is_lost[0] = announced != "the next event"
        await asyncio.to_thread(with_connection, log.append, [event(2)])
        if is_lost[0]:
            is_lost[0] = False
            commit_listeners.notify_remote({"c": 3}, is_audited=False, is_revoked=False)

        for line in lines:
            await reaches(line, 3)
        for line in lines[1:]:
            line.cut()

    asyncio.run(following(work))

    assert reads == [], "a subscriber read for itself"


def test_the_loop_is_not_woken_for_what_nobody_follows():
    woken = []

    async def work(running, line):
        call = running._loop.call_soon_threadsafe
        running._loop = SimpleNamespace(call_soon_threadsafe=lambda *work: (woken.append(work), call(*work)))
        stored = await asyncio.to_thread(with_connection, log.append, [event(1), other(1)])
        await asyncio.to_thread(with_connection, log.append, [other(2)])
        assert [work for work in woken if work[0] == running._dispatch] == [(running._dispatch, stored[:1])]

    def other(n):
        return event(n)._replace(conversation="other")

    asyncio.run(following(work))
