"""The server's memory has a bound, whatever is followed and however large the events are: its own RSS is measured."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from websockets.asyncio import client
from websockets.exceptions import ConnectionClosed

from tests.support.doors import Caller, message
from tests.support.live import Server, on_postgresql, until
from tests.support.peaks import forget, memory
from tests.support.services import PostgresServer, running

TOPICS = 200  # that one socket follows
SMALL, LARGE = 4_000, 1_000_000  # characters of an event's text
BATCH = 500  # messages of one request
UNREAD = 16  # connections that ask for a large page and never read it


class Load(NamedTuple):
    """How much is done, and the most MiB that the server may have resident at any moment meanwhile."""

    conversations: int
    rounds: int  # of one small event for each conversation
    large: int  # events, some of them tokens of a turn without an end
    most_mib: float


class Crowd(threading.Thread):
    """Readers of many conversations by a few sockets, in one loop; they keep only how many events came."""

    def __init__(self, caller: Caller, keys: list[str]) -> None:
        super().__init__(daemon=True)
        self._caller, self._keys = caller, keys
        self._loop = asyncio.new_event_loop()
        self.caught_up = self.count = 0
        self.codes: list[int] = []

    def run(self) -> None:
        """Read until `close`."""
        some = [self._keys[at : at + TOPICS] for at in range(0, len(self._keys), TOPICS)]
        readers = [self._loop.create_task(self._read(keys)) for keys in some]
        self._loop.run_forever()
        for reader in readers:
            reader.cancel()
        self._loop.run_until_complete(asyncio.gather(*readers, return_exceptions=True))
        self._loop.close()

    async def _read(self, keys: list[str]) -> None:
        headers = {"Authorization": f"Bearer {self._caller.token}"}
        url = f"ws://127.0.0.1:{self._caller.server.port}/ws/"
        async with client.connect(url, additional_headers=headers, compression=None, max_size=None) as ws:
            for key in keys:
                await ws.send(json.dumps({"op": "subscribe", "topic": f"stream:{key}", "after": 0}))
            try:
                async for text in ws:
                    self.caught_up += text.startswith('{"t":"caught_up"')
                    self.count += text.count('"seq":') if text.startswith('{"t":"events"') else 0
            except ConnectionClosed as closed:
                self.codes.append(closed.rcvd.code if closed.rcvd else 1006)

    def close(self) -> None:
        """Stop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(60)


def fill(caller: Caller, keys: list[str], rounds: int) -> None:
    """Publish one small event to each conversation, so many times."""
    for n in range(rounds):
        for at in range(0, len(keys), BATCH):
            some = [small(key, n) for key in keys[at : at + BATCH]]
            answer = caller.batch(*some)
            assert answer.status == 200, answer.body
            assert not any("error" in item for item in answer.body["items"])


def small(key: str, n: int) -> dict[str, object]:
    payload = {"event": "log", "conversation_id": key, "message": f"{n} " + "x" * SMALL}
    return message(f"stream:{key}", payload)


def publish_large(caller: Caller, count: int) -> None:
    """Publish large events: two messages, then one token of a turn that never ends, and so on."""
    for n in range(count):
        text = f"{n} " + "y" * LARGE
        payload = {"event": "token", "agent": "A", "text": text} if n % 3 == 2 else {"event": "log", "message": text}
        assert caller.publish("stream:large", payload | {"conversation_id": "large"}).status == 201


def ask_and_leave_unread(caller: Caller, path: str) -> list[socket.socket]:
    """Ask for a page on many connections."""
    lines = [socket.create_connection(("127.0.0.1", caller.server.port), timeout=60) for _ in range(UNREAD)]
    for line in lines:
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{caller.server.port}\r\nAuthorization: Bearer {caller.token}"
        line.sendall(f"{head}\r\n\r\n".encode())
    for line in lines:
        assert line.recv(12) == b"HTTP/1.1 200"
    return lines


def read_pages(caller: Caller) -> None:
    """Open the page, go back through it to its beginning, read the API and a topic."""
    assert caller.get("/conversations/large/").status == 200
    before, pages = 1 << 40, 0
    while before > 1 and pages < 40:
        page = caller.get(f"/conversations/large/entries/?before={before}").body
        assert page["first"] < before
        before, pages = page["first"], pages + 1
    for path in ("/api/v1/conversations/large/events?limit=500", "/api/v1/topics/stream%3Alarge/messages?limit=500"):
        assert caller.get(path).body["items"]


def measure(server: Server, load: Load, record: pytest.FixtureRequest) -> None:
    """Do it, and hold the server to its bound."""
    caller = Caller(server, server.start().token())
    assert server.process is not None
    pid = server.process.pid
    keys = [f"c{n}" for n in range(load.conversations)]
    caller.publish("stream:large", {"event": "log", "conversation_id": "large"})
    read_pages(caller)  # whatever is loaded once is loaded
    before = memory("VmRSS", pid)
    forget(pid)
    crowd = Crowd(caller, [*keys, "large"])
    crowd.start()
    lines: list[socket.socket] = []
    try:
        until(lambda: crowd.caught_up == len(keys) + 1, within=60, what="all to follow")
        fill(caller, keys, load.rounds)
        publish_large(caller, load.large)
        read_pages(caller)
        lines = ask_and_leave_unread(caller, "/conversations/large/")
        wanted = load.rounds * len(keys) + load.large + 1
        until(lambda: crowd.count == wanted, within=60, what=f"{wanted} events, {crowd.count} came, {crowd.codes}")
        peak = memory("VmHWM", pid)
    finally:
        for line in lines:
            with suppress(OSError):
                line.close()
        crowd.close()
    stored = (load.rounds * len(keys) * SMALL + load.large * LARGE) / (1 << 20)
    figures = f"{before:.0f} MiB before, {peak:.0f} at most, while {stored:.0f} MiB were stored and read"
    record.node.user_properties.append(("resident memory", figures))
    assert peak < load.most_mib, figures


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server on the database of the parameter."""
    if request.param == "sqlite":
        made = Server(None, "--no-demo", SWITCHBOARD_TEAMS="")
        yield made
        made.kill()
        return
    with running(PostgresServer()) as cluster:
        made = Server(None, "--no-demo", SWITCHBOARD_TEAMS="", **on_postgresql(cluster.create("memory")))
        yield made
        made.kill()


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
def test_what_is_followed_and_large_needs_little_memory(server, request):
    measure(server, Load(conversations=100, rounds=60, large=20, most_mib=400), request)


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("server", ["sqlite", "postgresql"], indirect=True)
def test_two_thousand_followed_conversations_and_large_events_need_less_than_400_mb(server, request):
    measure(server, Load(conversations=2000, rounds=25, large=300, most_mib=400e6 / (1 << 20)), request)


@pytest.mark.thorough
@pytest.mark.parametrize("server", ["sqlite"], indirect=True)
def test_a_server_that_stops_leaves_no_log_beside_its_database(server):
    caller = Caller(server, server.start().token())
    fill(caller, [f"c{n}" for n in range(100)], 3)
    log = server.data_dir / "switchboard.sqlite3-wal"
    assert log.stat().st_size > 0

    server.terminate()

    assert not log.exists() or log.stat().st_size == 0
