"""A subscription that is cancelled ends, also in the moment in which a frame has just gone out."""

import asyncio

import pytest

from conversations.realtime.socket_writer import SocketWriter


@pytest.mark.parametrize("steps", range(4))
def test_a_cancellation_in_the_moment_a_frame_went_out_is_not_lost(steps: int) -> None:
    async def cancelled() -> bool:
        sent = asyncio.get_running_loop().create_future()

        async def send(message: object) -> None:
            await sent

        async def run() -> None:
            await SocketWriter(send, None).message({"type": "websocket.send", "text": "x"})
            await asyncio.Event().wait()

        task = asyncio.create_task(run())
        for _ in range(3):
            await asyncio.sleep(0)  # until it waits for the frame to go out
        sent.set_result(None)
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        _, still_there = await asyncio.wait({task}, timeout=1)
        for subscription in still_there:
            subscription.cancel()
        return not still_there and task.cancelled()

    assert asyncio.run(cancelled())
