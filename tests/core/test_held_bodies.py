"""Bodies that are begun and not ended take no more memory than all of them may, for pages and raw routes alike."""

import asyncio
import io

import pytest

from conversations.asgi import route
from conversations.core.errors import Busy
from conversations.core.held_bodies import FREE, held_bodies
from conversations.realtime.socket_registry import SocketRegistry
from dashboard.server.django_handler import PageHandler

LIMIT = 8 << 20
PART = b"x" * (3 << 20)


async def read_page(receive, sender="192.0.2.1"):
    """Read a body as the handler of pages does."""
    body = await PageHandler(SocketRegistry()).read_body(receive, sender)
    assert isinstance(body, io.BytesIO)
    return len(body.getvalue())


async def read_raw(receive, sender="192.0.2.1"):
    """Read a body as the raw routes do."""
    return len(await route.body({"headers": [], "client": (sender, 50_000)}, receive, 8 << 20))


class SlowClient:
    """A client that sends a part of a body, and the rest only when it is told to."""

    def __init__(self, read, part, *sender):
        self.parts = [part]
        self.has_sent, self.may_end = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(read(self.receive, *sender))

    async def receive(self):
        """Return the part at first, then the end."""
        if self.parts:
            return {"type": "http.request", "body": self.parts.pop(), "more_body": True}
        self.has_sent.set()
        await self.may_end.wait()
        return {"type": "http.request", "body": b"y", "more_body": False}

    async def end(self):
        """Send the rest; return how much was read."""
        self.may_end.set()
        return await asyncio.wait_for(self.task, 20)


@pytest.mark.parametrize("read", [read_page, read_raw])
def test_bodies_that_do_not_end_are_held_up_to_a_limit_and_small_ones_are_read(read, monkeypatch):
    monkeypatch.setattr(held_bodies, "limit", LIMIT)
    asyncio.run(_fill_up(read))


async def _fill_up(read):
    slow = [SlowClient(read, PART) for _ in range(2)]
    for client in slow:
        await asyncio.wait_for(client.has_sent.wait(), 20)
    with pytest.raises(Busy):
        await asyncio.wait_for(SlowClient(read, PART).task, 20)
    assert await SlowClient(read, b"x" * (FREE - 1)).end() == FREE

    slow[0].task.cancel()  # its client goes away
    await asyncio.wait([slow[0].task])
    last = SlowClient(read, PART)
    assert [await client.end() for client in (slow[1], last)] == [len(PART) + 1] * 2
    assert held_bodies.size == 0


@pytest.mark.parametrize("read", [read_page, read_raw])
def test_bodies_of_one_address_leave_room_for_others(read, monkeypatch):
    monkeypatch.setattr(held_bodies, "limit", LIMIT)
    monkeypatch.setattr(held_bodies, "limit_of_one", LIMIT // 2)
    asyncio.run(_read_beside(read))


async def _read_beside(read):
    slow = SlowClient(read, PART)
    await asyncio.wait_for(slow.has_sent.wait(), 20)
    with pytest.raises(Busy):
        await asyncio.wait_for(SlowClient(read, PART).task, 20)

    assert await SlowClient(read, PART, "192.0.2.2").end() == len(PART) + 1
    assert await slow.end() == len(PART) + 1


@pytest.mark.parametrize("read", [read_page, read_raw])
def test_addresses_of_one_network_share_its_room(read, monkeypatch):
    monkeypatch.setattr(held_bodies, "limit", LIMIT)
    monkeypatch.setattr(held_bodies, "limit_of_one", LIMIT // 2)
    asyncio.run(_read_within_a_network(read))


async def _read_within_a_network(read):
    slow = SlowClient(read, PART, "2001:db8::1")
    await asyncio.wait_for(slow.has_sent.wait(), 20)

    with pytest.raises(Busy):
        await asyncio.wait_for(SlowClient(read, PART, "2001:db8::2").task, 20)
    assert await slow.end() == len(PART) + 1
