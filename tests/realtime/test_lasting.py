"""A background loop outlives an error, and ends when it is told to."""

import asyncio

from conversations.core.background_loop import cancel_all, run_forever


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
