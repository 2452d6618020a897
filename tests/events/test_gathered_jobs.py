"""What an event loop brings in turns that follow each other is stored together; nothing waits for a loop that brings no
more or one job at a time, or that is busy or gone."""

import asyncio
import threading
from concurrent.futures import Future

import pytest

from conversations.events.log import writer_threads as module
from conversations.events.log.stored_totals import TOTALS
from conversations.models import Event
from tests.events.test_log import message_event
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)
FOREVER = 600.0  # seconds


def stored_elsewhere(writer) -> Future:
    """Store an event from the loop of another thread."""
    outcome: Future = Future()
    threading.Thread(target=lambda: outcome.set_result(asyncio.run(writer.store([message_event("b")])))).start()
    return outcome


async def publish_in_turns(writer) -> list:
    """Store 20 events, each in another turn of the loop."""
    waiting = []
    for _ in range(20):
        waiting.append(asyncio.create_task(writer.store([message_event("a")])))
        await asyncio.sleep(0)
        threading.Event().wait(0.002)  # in which the writer's thread could begin: the time is what is tested
    return await asyncio.gather(*waiting)


def test_what_comes_in_turns_that_follow_each_other_is_one_transaction(writer, monkeypatch):
    monkeypatch.setattr(module, "GATHER", FOREVER)

    before = TOTALS.commits
    answers = asyncio.run(publish_in_turns(writer))

    assert TOTALS.commits - before == 1
    assert sorted(stored.seq for (stored,) in answers) == list(range(1, 21))


def test_a_job_that_comes_alone_does_not_wait_for_the_next_turn(writer):
    async def publish_one_by_one():
        await writer.store([message_event("a")])
        task = asyncio.create_task(writer.store([message_event("a")]))
        await asyncio.sleep(0)
        until(lambda: Event.objects.count() == 2, what="the second event")  # blocks this loop
        return await task

    assert [stored.seq for stored in asyncio.run(publish_one_by_one())] == [2]


def test_what_follows_a_job_that_came_alone_is_gathered_again(writer, monkeypatch):
    monkeypatch.setattr(module, "GATHER", FOREVER)

    async def publish_alone_and_in_crowds():
        await writer.store([message_event("a")])
        await publish_in_turns(writer)
        before = TOTALS.commits
        await publish_in_turns(writer)
        return TOTALS.commits - before

    assert asyncio.run(publish_alone_and_in_crowds()) == 1


def test_a_loop_that_brings_more_in_each_turn_holds_nothing_up(writer):
    async def publish_without_end():
        first = asyncio.create_task(writer.store([message_event("a")]))
        others = []
        while not first.done():
            others.append(asyncio.create_task(writer.store([message_event("a")])))
            await asyncio.sleep(0)
        return len(others), await asyncio.gather(first, *others)

    count, answers = asyncio.run(publish_without_end())

    assert len(answers) == count + 1


def test_another_loop_does_not_wait_for_one_that_is_busy(writer):
    async def gather_and_be_busy():
        mine = asyncio.create_task(writer.store([message_event("a")]))
        await asyncio.sleep(0)
        assert [stored.seq for stored in stored_elsewhere(writer).result(60)] == [1]  # blocks this loop
        return await mine

    assert [stored.seq for stored in asyncio.run(gather_and_be_busy())] == [1]


def test_what_a_loop_leaves_behind_when_it_ends_is_stored(writer):
    async def leave():
        task = asyncio.create_task(writer.store([message_event("a")]))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())

    until(lambda: Event.objects.count() == 1, what="the event of the task that was cancelled")


def test_what_is_gathered_when_the_writer_closes_is_stored(writer, monkeypatch):
    monkeypatch.setattr(module, "GATHER", FOREVER)

    async def close_while_gathering():
        task = asyncio.create_task(writer.store([message_event("a")]))
        await asyncio.sleep(0)
        writer.close()
        return await task

    assert [stored.seq for stored in asyncio.run(close_while_gathering())] == [1]


def test_a_loop_that_was_closed_without_its_tasks_leaves_the_next_one_to_gather(writer, monkeypatch):
    monkeypatch.setattr(module, "GATHER", FOREVER)
    loop = asyncio.new_event_loop()

    async def begin():
        begun.append(asyncio.ensure_future(writer.store([message_event("a")])))
        await asyncio.sleep(0)

    begun: list[asyncio.Future] = []
    loop.run_until_complete(begin())
    loop.close()
    before = TOTALS.commits
    answers = asyncio.run(publish_in_turns(writer))

    assert TOTALS.commits - before == 1
    assert sorted(stored.seq for (stored,) in answers) == list(range(2, 22))
