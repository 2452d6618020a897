"""What the recorder's tests share: a nursery, one Redis, a place for each test, and a producer with its own ledger."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from tests.support.nursery import Nursery, Place
from tests.support.services import PostgresServer, RedisServer, running


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """One for all tests."""
    nursery = Nursery()
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def postgres_nursery() -> Iterator[Nursery]:
    """One on a PostgreSQL server of its own, which need not survive a crash of its own."""
    quick = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")
    with running(PostgresServer(*(word for option in quick for word in ("-c", option)))) as server:
        assert isinstance(server, PostgresServer)
        nursery = Nursery(server)
        yield nursery
        nursery.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def either(request: pytest.FixtureRequest, redis_server: RedisServer) -> Iterator[tuple[Nursery, Place]]:
    """A nursery and a place in it, on each database."""
    nursery = request.getfixturevalue("nursery" if request.param == "sqlite" else "postgres_nursery")
    place = nursery.place(redis_server.url)
    yield nursery, place
    nursery.clear(place)


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for a module; each test finds it empty."""
    with running(RedisServer()) as server:
        assert isinstance(server, RedisServer)
        yield server


@pytest.fixture
def bus(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """A client of the empty Redis, as another program has one."""
    client = redis_server.client()
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def place(nursery: Nursery, redis_server: RedisServer) -> Iterator[Place]:
    """Empty tables, and that Redis; what was started there ends with the test."""
    place = nursery.place(redis_server.url)
    yield place
    nursery.clear(place)


def envelope(conversation: str, number: object, **fields: Any) -> dict[str, Any]:
    """Return a message as magent2 writes it."""
    return {
        "id": f"m-{number}",
        "conversation_id": conversation,
        "sender": "agent:A",
        "recipient": f"chat:{conversation}",
        "type": "message",
        "content": f"word {number}",
        "metadata": {},
        "created_at": "2026-11-22T00:00:00Z",
    } | fields


def add(bus: Any, topic: str, payload: Any, bus_id: object = None) -> str:
    """XADD as magent2 does; return the entry's id."""
    text = payload if isinstance(payload, str | bytes) else json.dumps(payload, separators=(",", ":"))
    fields = {"payload": text} | ({} if bus_id is None else {"id": str(bus_id)})
    return bus.xadd(topic, fields)


class Producer(threading.Thread):
    """Adds messages and tokens to several streams until it is told to stop; `ledger` holds what Redis acknowledged."""

    def __init__(self, server: RedisServer, streams: int = 4, pause: float = 0.004) -> None:
        super().__init__(daemon=True)
        self.bus, self.streams, self.pause = server.client(), streams, pause
        self.ledger: list[tuple[str, str]] = []  # conversation, event id
        self.done = threading.Event()

    def run(self) -> None:
        """Add until `stop`."""
        number = 0
        while not self.done.is_set():
            pipeline, sent = self.bus.pipeline(transaction=False), []
            for _ in range(5):
                number += 1
                key = f"c{number % self.streams}"
                if number % 2:
                    add(pipeline, f"chat:{key}", envelope(key, number), f"b-{number}")
                    sent.append((key, f"m-{number}"))
                else:
                    add(pipeline, f"stream:{key}", {"event": "token", "text": "t", "index": number}, f"b-{number}")
                    sent.append((key, f"b-{number}"))
            pipeline.execute()
            self.ledger += sent
            time.sleep(self.pause)

    def stop(self) -> None:
        """End, and close the connection."""
        self.done.set()
        self.join()
        self.bus.close()


def judge(nursery: Nursery, place: Place, ledger: list[tuple[str, str]]) -> None:
    """Everything acknowledged is there, once; no seq is missing; nothing else is there; the chains are whole."""
    rows = place.rows(
        "SELECT c.key,e.event_id,e.seq,e.kind FROM conversations_event e"
        " JOIN conversations_conversation c ON c.id=e.conversation_id ORDER BY c.key,e.seq"
    )
    stored = sorted((key, event_id) for key, event_id, _, _ in rows)
    missing, more = set(ledger) - set(stored), set(stored) - set(ledger)
    assert not missing, f"{len(missing)} of {len(ledger)} are lost: {sorted(missing)[:5]}"
    assert not more, f"{len(more)} are there that nobody sent: {sorted(more)[:5]}"
    assert len(stored) == len(set(stored)), "a message is stored twice"
    for key in {row[0] for row in rows}:
        seqs = [seq for conversation, _, seq, _ in rows if conversation == key]
        assert seqs == list(range(1, len(seqs) + 1)), f"{key} has a hole"
    nursery.run(place, "verify")


def stored(place: Place) -> int:
    """Count the events."""
    return int(place.value("SELECT COUNT(*) FROM conversations_event"))
