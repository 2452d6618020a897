"""A background loop outlives an error, and ends when it is told to."""

import asyncio
import logging

import pytest

from conversations.core import background_loop
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.errors import Unavailable


def test_one_bad_round_costs_itself_alone(caplog):
    rounds = []

    async def next_round():
        rounds.append(len(rounds))
        if len(rounds) == 2:
            raise RuntimeError("once")
        if len(rounds) == 4:
            raise asyncio.CancelledError

    async def main():
        await asyncio.gather(run_forever(next_round, what="the test"), return_exceptions=True)

    asyncio.run(main())

    assert rounds == [0, 1, 2, 3]
    assert "the test failed once" in caplog.text


def test_a_round_that_always_fails_at_once_does_not_spin():
    rounds = []

    async def next_round():
        rounds.append(len(rounds))
        await asyncio.sleep(0)
        raise RuntimeError("the disk is full")

    async def main():
        await asyncio.wait([loop := asyncio.create_task(run_forever(next_round, what="the test"))], timeout=0.5)
        loop.cancel()

    asyncio.run(main())

    assert 1 < len(rounds) <= 4


@pytest.mark.parametrize(
    ("error", "tracebacks"), [(Unavailable("the disk is full"), 0), (RuntimeError("the disk is full"), 1)]
)
def test_what_fails_for_long_is_logged_once_a_minute_and_when_it_works_again(error, tracebacks, monkeypatch, caplog):
    minutes = iter(n / 3 for n in range(1_000))
    monkeypatch.setattr(background_loop, "monotonic", lambda: 60.0 * next(minutes))
    monkeypatch.setattr(background_loop, "PAUSE", 0.0)
    rounds = []

    async def next_round():
        rounds.append(len(rounds))
        if len(rounds) > 10:
            raise asyncio.CancelledError
        if len(rounds) < 10:
            raise error

    async def main():
        await asyncio.gather(run_forever(next_round, what="the test"), return_exceptions=True)

    with caplog.at_level(logging.INFO, logger=background_loop.__name__):
        asyncio.run(main())

    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the test failed once",
        "the test failed 3 times more",
        "the test failed 3 times more",
        "the test works again after 9 failures",
    ]
    assert caplog.text.count("Traceback") == tracebacks
    assert caplog.text.count("the disk is full") == 3


def test_tasks_are_over_once_they_are_cancelled_whatever_they_raise_at_their_end():
    ends = []

    async def fail_with(error):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ends.append(error)
            raise error

    async def main():
        tasks = [asyncio.create_task(fail_with(error)) for error in (RuntimeError("closed"), asyncio.CancelledError())]
        await asyncio.sleep(0)
        await cancel_all([None, *tasks])
        return [task.done() for task in tasks]

    assert asyncio.run(main()) == [True, True]
    assert len(ends) == 2
