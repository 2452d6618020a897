"""SIGKILL of the server at named lines under load, judged by the publishers' own ledger, synced at each answer."""

import http.client
import itertools
import json
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.live import Server, on_postgresql, until
from tests.support.shares import amount_of, seed
from tests.support.tiers import rounds, variants

FAILPOINTS = ("before-commit", "after-commit", "before-notification")
DATABASES = ("sqlite", "postgresql")
PUBLISHERS = 4
numbers = itertools.count(1)


class Ledger:
    """What was acknowledged, on disk before the next message is sent."""

    def __init__(self, path: Path) -> None:
        self.path, self.lock = path, threading.Lock()
        self.file = path.open("a")

    def write(self, key: str, event_id: str, seq: int) -> None:
        with self.lock:
            self.file.write(json.dumps([key, event_id, seq]) + "\n")
            self.file.flush()
            os.fsync(self.file.fileno())

    def read(self) -> list[tuple[str, str, int]]:
        return [tuple(json.loads(line)) for line in self.path.read_text().splitlines()]


class Publisher(threading.Thread):
    """Sends one message after the other, the same again until it is acknowledged."""

    def __init__(self, server: Server, secret: str, ledger: Ledger, number: int) -> None:
        super().__init__(daemon=True)
        self.server, self.secret, self.ledger, self.number = server, secret, ledger, number
        self.done = threading.Event()
        self.trouble: list[object] = []

    def run(self) -> None:
        n = 0
        while not self.done.is_set():
            n += 1
            key, event_id = f"c{(n + self.number) % 3}", f"{self.number}-{n}"
            payload = {"type": "message", "id": event_id, "conversation_id": key, "sender": "agent:A", "content": "x"}
            while not self.done.is_set():
                try:
                    status, body = self.server.publish(self.secret, f"chat:{key}", payload, event_id)
                except (OSError, http.client.HTTPException):
                    self.done.wait(0.01)
                    continue
                if status == 201:
                    self.ledger.write(key, event_id, body["seq"])
                elif status != 503:
                    self.trouble.append((status, body))
                break


def crash(folder: Path, database: dict[str, str], failpoint: str, kills: int, seed: int) -> int:
    """Kill a server under load `kills` times; return how many messages were acknowledged."""
    dice = random.Random(seed)
    server = Server(folder, **database)
    server.start().kill()  # the tables
    secret = server.token()
    ledger = Ledger(folder.parent / f"{folder.name}.ledger")
    publishers = [Publisher(server, secret, ledger, i) for i in range(PUBLISHERS)]
    for kill in range(kills):
        server.environment["SWITCHBOARD_FAILPOINT"] = f"{failpoint}:{dice.randint(1, 40)}"
        server.launch()  # it may die before anybody sees it ready
        if kill == 0:
            [publisher.start() for publisher in publishers]
        until(lambda: server.process.poll() is not None, within=60, what=f"death at {failpoint}")
        assert server.process.returncode == -9, server.output()[-2000:]
    finish(publishers, ledger)
    del server.environment["SWITCHBOARD_FAILPOINT"]
    return judge(server, ledger)


def finish(publishers: list[Publisher], ledger: Ledger) -> None:
    """Let publishers end, none of them in trouble."""
    for publisher in publishers:
        publisher.done.set()
    for publisher in publishers:
        publisher.join()
        assert publisher.trouble == []
    ledger.file.close()


def judge(server: Server, ledger: Ledger) -> int:
    """Every acknowledged message is at its place, once; no seq is missing; the chain is whole."""
    acknowledged = ledger.read()
    rows = server.rows(
        "SELECT c.key, e.event_id, e.seq FROM conversations_event e"
        " JOIN conversations_conversation c ON c.id=e.conversation_id ORDER BY c.key, e.seq"
    )
    stored = {(key, event_id): seq for key, event_id, seq in rows}
    assert len(stored) == len(rows), "a message is stored twice"
    for key, event_id, seq in acknowledged:
        assert stored.get((key, event_id)) == seq, f"acknowledged {event_id} at {seq} is lost or moved"
    for key in {row[0] for row in rows}:
        seqs = [row[2] for row in rows if row[0] == key]
        assert seqs == list(range(1, len(seqs) + 1)), f"{key} has a hole"
    server.command("verify")
    return len(acknowledged)


@pytest.fixture(params=variants(DATABASES))
def database(request, cluster) -> Callable[[], dict[str, str]]:
    """Return what makes a new database: the environment of a server on it."""
    if request.param == "sqlite":
        return dict
    return lambda: on_postgresql(cluster.create(f"crash{next(numbers)}"))


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("failpoint", variants(FAILPOINTS))
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path, database, failpoint):
    kills = rounds(1, 6)

    assert crash(tmp_path / "data", database(), failpoint, kills, 0) > 4 * kills


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", variants(FAILPOINTS))
def test_nothing_acknowledged_is_lost_in_250_kills(tmp_path, database, failpoint, record_property):
    kills, first = amount_of(125), 2 * seed()
    with ThreadPoolExecutor(2) as pool:  # two servers side by side
        lanes = [pool.submit(crash, tmp_path / f"data{i}", database(), failpoint, kills, first + i) for i in range(2)]
    acknowledged = sum(lane.result() for lane in lanes)

    record_property("amount", f"{2 * kills} kills, {acknowledged:,} acknowledged, 0 lost, 0 doubled")
    assert acknowledged > 8 * kills
