"""What is cached for half a second is read once for all runs of an event loop that need it."""

import asyncio
import threading
from contextlib import suppress
from functools import wraps

from conversations.core.ttl_cache import TtlCache
from tests.support.live import until


def in_a_loop(test):
    """Run an async test in an event loop of its own."""

    @wraps(test)
    def run():
        asyncio.run(test())

    return run


class Reader:
    """A cache whose reads take until they are let go, one after another; each returns its number."""

    def __init__(self):
        self.reads, self.may_end = 0, threading.Semaphore(0)
        self.cache = TtlCache(self._read, 0)

    def _read(self):
        self.reads += 1
        number = self.reads
        assert self.may_end.acquire(timeout=10)
        return number

    def ask(self):
        return asyncio.create_task(self.cache.answer_in(asyncio.to_thread))

    async def has_read(self, times):
        await asyncio.to_thread(until, lambda: self.reads == times)


@in_a_loop
async def test_who_waits_together_reads_once():
    reader = Reader()

    waiting = [reader.ask() for _ in range(20)]
    await reader.has_read(1)
    reader.may_end.release()

    assert await asyncio.gather(*waiting) == [1] * 20
    assert await reader.cache.answer_in(asyncio.to_thread) == 1
    assert reader.reads == 1


@in_a_loop
async def test_who_asks_after_a_change_reads_again():
    reader = Reader()
    early = reader.ask()
    await reader.has_read(1)

    reader.cache.forget()
    late = reader.ask()
    await reader.has_read(2)
    reader.may_end.release(2)

    assert {await early, await late} == {1, 2}
    assert await late == 2


@in_a_loop
async def test_a_cancelled_waiter_leaves_the_others_waiting():
    reader = Reader()
    first, second = reader.ask(), reader.ask()
    await reader.has_read(1)

    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    reader.may_end.release()

    assert first.cancelled()
    assert await second == 1
