"""A background loop outlives an error."""

import asyncio

from conversations.lasting import repeat


def test_one_bad_round_costs_itself_alone(caplog):
    rounds = []

    async def one():
        rounds.append(len(rounds))
        if len(rounds) == 2:
            raise RuntimeError("once")
        if len(rounds) == 4:
            raise asyncio.CancelledError

    async def main():
        await asyncio.gather(repeat(one, what="the test"), return_exceptions=True)

    asyncio.run(main())

    assert rounds == [0, 1, 2, 3]
    assert "the test failed once" in caplog.text
