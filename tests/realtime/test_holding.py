"""Law H with a database that hangs: no frame goes out later than a second after the last look at rights began."""

import asyncio
import threading
import time

import pytest
from django.db import OperationalError

from conversations.access import authentication
from conversations.access.authentication import Caller
from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.events import commit_listeners, log
from conversations.realtime import socket_registry
from conversations.realtime.hub import Hub
from conversations.realtime.send_gate import FRESH, SendGate
from conversations.realtime.socket_registry import SocketRegistry
from tests.support.protocol_client import Client, Line
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


class Socket:
    """As much of one as the registry uses."""

    def __init__(self):
        self.caller = Caller(principals.token_principal("t"), frozenset({"viewer"}))
        self.code = None

    def dismiss(self, code):
        self.code = code

    def send_heads(self):
        pass


def event(n):
    return unchecked("c", {"event": "log", "n": n}, principals.token_principal("t"))


async def wait_for(condition, within=60):
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110  # nobody tells
            await asyncio.sleep(0.005)


async def guarded(work, *, takes_ready):
    """Run `work` with a registry of one socket, and a client up to date with a conversation of one event."""
    looking, socket = SocketRegistry(), Socket()
    looking.admit(socket, most=1)
    running = Hub(epoch="e", send_gate=looking.send_gate)
    line = Line(running, Client(), "c", takes_ready=takes_ready)
    running.start()
    looking.start()
    try:
        line.connect()
        await asyncio.to_thread(with_connection, log.append, [event(0)])
        await wait_for(lambda: line.deliver() or line.client.last == 1)
        await wait_for(lambda: line.subscription.is_up_to_date)
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
    monkeypatch.setattr(
        authentication, "revoked", lambda _: {} if go_on.wait(60) else pytest.fail("nobody let it go on")
    )

    async def work(looking, line):
        go_on.clear()
        await wait_for(lambda: looking.send_gate.is_held)
        line.deliver()
        await asyncio.to_thread(with_connection, log.append, [event(1), event(2)])
        await wait_for(lambda: line.hub.feeds["c", "data"].head == 3)
        line.subscription.send_head()
        await asyncio.sleep(0.1)  # what was on its way would be here
        held = list(line.sent)
        go_on.set()
        await wait_for(lambda: line.deliver() or line.client.last == 3)
        assert held == []

    asyncio.run(guarded(work, takes_ready=takes_ready))


def nobody_can_tell(_):
    raise OperationalError("the database is away")


@pytest.mark.parametrize(
    ("answer", "code"),
    [(lambda callers: dict.fromkeys(callers, 4401), 4401), (nobody_can_tell, socket_registry.RECONNECT)],
    ids=["revoked", "not to be told"],
)
def test_a_look_that_is_not_clean_opens_for_nobody_it_sent_away(monkeypatch, answer, code):
    async def look():
        looking, socket = SocketRegistry(), Socket()
        looking.admit(socket, most=1)
        monkeypatch.setattr(authentication, "revoked", answer)
        looking.start()
        await wait_for(lambda: socket.code is not None)
        await looking.stop()
        return socket.code

    assert asyncio.run(look()) == code


def test_a_gate_is_held_from_its_time_on():
    send_gate = SendGate()
    is_held_before = send_gate.is_held

    send_gate.passed(time.monotonic() - FRESH - 0.01)

    assert not is_held_before
    assert send_gate.is_held


def test_looks_begin_so_often_that_a_quick_database_holds_nothing():
    assert socket_registry.POLL_EVERY_S <= FRESH / 1.5


def test_nobody_looks_while_nobody_is_there_and_at_once_when_somebody_comes():
    async def alone_and_then_with_a_socket():
        looking = SocketRegistry()
        looking.start()
        await wait_for(lambda: looking._looked_at)
        first = looking._looked_at
        await asyncio.sleep(2 * socket_registry.POLL_EVERY_S)  # nothing tells that nobody looked
        later, is_held = looking._looked_at, looking.send_gate.is_held
        looking.admit(Socket(), most=1)
        await asyncio.wait_for(looking.send_gate.wait_until_open(), 60)
        await looking.stop()
        return later - first, is_held

    assert asyncio.run(alone_and_then_with_a_socket()) == (0.0, True)


def test_one_principal_has_so_many_sockets_and_no_more():
    looking, sockets = SocketRegistry(), [Socket() for _ in range(3)]

    admitted = [looking.admit(socket, most=2) for socket in sockets]
    looking.forget(sockets[2])
    looking.forget(sockets[0])

    assert admitted == [True, True, False]
    assert looking.admit(sockets[2], most=2)
    assert looking.sockets == {sockets[1], sockets[2]}


def test_a_flood_of_words_that_rights_changed_has_the_watch_look_with_pauses(monkeypatch):
    looks = []
    monkeypatch.setattr(authentication, "revoked", lambda callers: looks.append(time.monotonic()) or {})
    looking = SocketRegistry()

    async def flood():
        looking.admit(Socket(), most=1)
        looking.start()
        began = time.monotonic()
        while time.monotonic() - began < 0.6:
            commit_listeners.notify_revoked()
            await asyncio.sleep(0)
        await looking.stop()

    asyncio.run(flood())

    assert 2 <= len(looks) <= 8
