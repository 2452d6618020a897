"""Law H with a database that hangs: no frame goes out later than a second after the last look at rights began."""

import asyncio
import json
import threading
import time

import pytest

from conversations import envelopes, log, principals, sessions, watch
from conversations.holding import FRESH, Hold
from conversations.hub import Hub
from conversations.sessions import Visitor
from conversations.threads import lent
from conversations.watch import Watch
from tests.protocol_client import Client, Line

pytestmark = pytest.mark.django_db(transaction=True)


class Socket:
    """As much of one as the watch asks for."""

    def __init__(self):
        self.visitor = Visitor(principals.of_token("t"), frozenset({"viewer"}))
        self.code = None

    def dismiss(self, code):
        self.code = code

    def tell_heads(self):
        pass


def event(n):
    body = json.dumps({"event": "log", "conversation_id": "c", "n": n})
    return log.of_payload("stream:c", None, body, envelopes.read(body.encode()), principals.of_token("t"))


async def wait_for(condition, within=5):
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)


async def guarded(work, *, takes_ready):
    """Run `work` with a watch over one socket, and a client level with a conversation of one event."""
    looking, socket = Watch(), Socket()
    looking.admit(socket, most=1)
    running = Hub(epoch="e", hold=looking.hold)
    line = Line(running, Client(), "c", takes_ready=takes_ready)
    running.start()
    looking.start()
    try:
        line.connect()
        await asyncio.to_thread(lent, log.append, [event(0)])
        await wait_for(lambda: line.deliver() or line.client.last == 1)
        await wait_for(lambda: line.subscription.is_live)
        await work(looking, line)
    finally:
        line.cut()
        await looking.stop()
        await running.stop()
        running.readers.shutdown()
    assert socket.code is None


@pytest.mark.parametrize("takes_ready", [True, False], ids=["ready frames", "ordinary sends"])
def test_frames_are_held_while_a_look_is_overdue_and_go_on_behind_it(monkeypatch, takes_ready):
    go_on = threading.Event()
    go_on.set()
    monkeypatch.setattr(sessions, "revoked", lambda _: {} if go_on.wait(20) else pytest.fail("nobody let it go on"))

    async def work(looking, line):
        go_on.clear()
        await wait_for(lambda: looking.hold.is_held)
        line.deliver()
        await asyncio.to_thread(lent, log.append, [event(1), event(2)])
        await wait_for(lambda: line.hub.feeds["c", "data"].head == 3)
        line.subscription.head()
        await asyncio.sleep(0.1)  # what was on its way would be here
        held = list(line.sent)
        go_on.set()
        await wait_for(lambda: line.deliver() or line.client.last == 3)
        assert held == []

    asyncio.run(guarded(work, takes_ready=takes_ready))


def test_a_look_that_is_not_clean_opens_for_nobody_it_sent_away(monkeypatch):
    async def look():
        looking, socket = Watch(), Socket()
        looking.admit(socket, most=1)
        monkeypatch.setattr(sessions, "revoked", lambda visitors: dict.fromkeys(visitors, 4401))
        looking.start()
        await wait_for(lambda: socket.code is not None)
        await looking.stop()
        return socket.code

    assert asyncio.run(look()) == 4401


def test_a_gate_is_held_from_its_time_on():
    hold = Hold()
    is_held_before = hold.is_held

    hold.passed(time.monotonic() - FRESH - 0.01)

    assert not is_held_before
    assert hold.is_held


def test_looks_begin_so_often_that_a_quick_database_holds_nothing():
    assert watch.LOOK_EVERY <= FRESH / 1.5


def test_one_principal_has_so_many_sockets_and_no_more():
    looking, sockets = Watch(), [Socket() for _ in range(3)]

    admitted = [looking.admit(socket, most=2) for socket in sockets]
    looking.forget(sockets[2])
    looking.forget(sockets[0])

    assert admitted == [True, True, False]
    assert looking.admit(sockets[2], most=2)
    assert looking.sockets == {sockets[1], sockets[2]}
