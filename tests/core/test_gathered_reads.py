"""Reads of many tasks go to a database thread together, and each task gets its own answer."""

import asyncio
import threading
from contextlib import contextmanager

import pytest

from conversations.core.db_threads import DatabaseThreads
from conversations.core.gathered_reads import TOGETHER, GatheredReads

pytestmark = pytest.mark.django_db(transaction=True)


class CountedThreads(DatabaseThreads):
    """Threads that count the trips to them."""

    trips = 0

    def submit(self, *work):
        self.trips += 1
        return super().submit(*work)


@contextmanager
def threads():
    made = CountedThreads("runs")
    try:
        yield made
    finally:
        made.shutdown()


def test_reads_of_one_turn_travel_together():
    async def read(reads):
        return await asyncio.gather(*(reads.run(divmod, n, 7) for n in range(TOGETHER)))

    with threads() as counted:
        answers = asyncio.run(read(GatheredReads(counted)))

    assert answers == [divmod(n, 7) for n in range(TOGETHER)]
    assert counted.trips < TOGETHER / 2


def test_more_than_a_trip_takes_are_all_answered():
    async def read(reads):
        return await asyncio.gather(*(reads.run(int, n) for n in range(10 * TOGETHER)))

    with threads() as counted:
        answers = asyncio.run(read(GatheredReads(counted)))

    assert answers == list(range(10 * TOGETHER))


def test_an_error_is_only_of_the_task_that_asked():
    async def read(reads):
        return await asyncio.gather(
            reads.run(int, "7"), reads.run(int, "x"), reads.run(int, "8"), return_exceptions=True
        )

    with threads() as counted:
        first, second, third = asyncio.run(read(GatheredReads(counted)))

    assert (first, third) == (7, 8)
    assert isinstance(second, ValueError)


def test_a_task_that_is_cancelled_leaves_the_others_their_answers():
    may_read = threading.Event()

    async def read(reads):
        waiting = [asyncio.create_task(reads.run(may_read.wait, 10)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        may_read.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    with threads() as counted:
        first, second, third = asyncio.run(read(GatheredReads(counted)))

    assert (first, third) == (True, True)
    assert isinstance(second, asyncio.CancelledError)


def test_after_the_threads_have_ended_a_read_fails():
    with threads() as ended:
        reads = GatheredReads(ended)

    with pytest.raises(RuntimeError):
        asyncio.run(reads.run(int))
