"""All rings of a process have one bound in bytes: who is dropped costs a read, and loses nothing."""

import asyncio
import tracemalloc

import pytest

from conversations.core.byte_budget import ByteBudget
from conversations.core.db_threads import with_connection
from conversations.events import log
from conversations.realtime import frames
from conversations.realtime.feed import Feed
from conversations.realtime.hub import Hub
from conversations.realtime.send_gate import SendGate
from tests.realtime.test_hub import event, is_level, reaches
from tests.support.protocol_client import Client, Line

TEXT = "x" * 4000


def push(feed: Feed, seq: int) -> None:
    feed.push(frames.events(feed.topic, "e", [(seq, f'"{seq} {TEXT}"')]))


def held_bytes(feeds: list[Feed]) -> int:
    return sum(len(frame.encoded) for feed in feeds for frame in feed.ring)


def test_many_rings_stay_within_one_budget_and_keep_each_frame_once():
    budget = ByteBudget(4 << 20)
    tracemalloc.start()
    try:
        feeds = [Feed(f"c{n}", "data", SendGate(), budget) for n in range(40)]
        for seq in range(1, 101):
            for feed in feeds:
                push(feed, seq)
        needed, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 2 << 20 < held_bytes(feeds) <= budget.size <= budget.limit
    assert needed < budget.limit * 1.2  # 16 MB were pushed


def test_the_ring_that_nobody_used_for_longest_goes_first():
    budget = ByteBudget(3 * 4400)
    first, second, third, fourth = feeds = [Feed(f"c{n}", "data", SendGate(), budget) for n in range(4)]
    for feed in (first, second, third):
        push(feed, 1)
    assert first.after(0) is not None  # a reader takes from it

    push(fourth, 1)

    assert [bool(feed.ring) for feed in feeds] == [True, False, True, True]
    assert second.after(0) is None  # its readers go to the database
    assert budget.dropped == 1


def test_a_conversation_that_nobody_follows_any_more_gives_its_bytes_back():
    running = Hub(epoch="e")
    line = type("Nobody", (), {"is_up_to_date": False, "last": 0, "wake": lambda _: None})()
    feed = running.follow("c", "data", line)
    push(feed, 1)
    assert running.rings.size > 4000

    running.leave(feed, line)

    assert running.rings.size == 0


@pytest.mark.django_db(transaction=True)
def test_who_follows_gets_everything_though_no_ring_may_be_kept():
    async def work() -> None:
        running = Hub(epoch="e", ring_bytes=1)
        running.start()
        lines = [Line(running, Client(), "c", mode, takes_ready=True) for mode in ("data", "html", "lanes")]
        for line in lines:
            line.connect()
            await is_level(line)
        for n in range(5):
            await asyncio.to_thread(with_connection, log.append, [event(n)])
        for line in lines:
            await reaches(line, 5)
            line.cut()
        assert running.rings.dropped > 0
        await running.stop()
        running.readers.shutdown()

    asyncio.run(work())
