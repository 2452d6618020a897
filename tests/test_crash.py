"""SIGKILL of the server at named lines under load, judged by the publishers' own ledger, synced at each answer."""

import http.client
import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.live import Server, until

FAILPOINTS = ("before-commit", "after-commit", "before-doorbell")
PUBLISHERS = 4


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


def crash(folder: Path, failpoint: str, kills: int, seed: int) -> tuple[int, int]:
    """Kill a server under load `kills` times; answer how many messages were acknowledged and stored."""
    dice = random.Random(seed)
    server = Server(folder)
    folder.mkdir()
    server.start()
    secret = server.token()
    server.terminate()
    ledger = Ledger(folder.parent / f"{folder.name}.ledger")
    publishers = [Publisher(server, secret, ledger, i) for i in range(PUBLISHERS)]
    for kill in range(kills):
        server.environment = {"SWITCHBOARD_FAILPOINT": f"{failpoint}:{dice.randint(1, 40)}"}
        server.launch()  # it may die before anybody sees it ready
        if kill == 0:
            [publisher.start() for publisher in publishers]
        until(lambda: server.process.poll() is not None, within=60, what=f"death at {failpoint}")
        assert server.process.returncode == -9
    for publisher in publishers:
        publisher.done.set()
        publisher.join()
        assert publisher.trouble == []
    ledger.file.close()
    server.environment = {}
    return judge(server, ledger)


def judge(server: Server, ledger: Ledger) -> tuple[int, int]:
    """Every acknowledged message is at its place, once; no seq is missing; the chain is whole."""
    acknowledged = ledger.read()
    with server.database() as database:
        rows = database.execute(
            "SELECT c.key, e.event_id, e.seq FROM conversations_event e"
            " JOIN conversations_conversation c ON c.id=e.conversation_id ORDER BY c.key, e.seq"
        ).fetchall()
    stored = {(key, event_id): seq for key, event_id, seq in rows}
    assert len(stored) == len(rows), "a message is stored twice"
    for key, event_id, seq in acknowledged:
        assert stored.get((key, event_id)) == seq, f"acknowledged {event_id} at {seq} is lost or moved"
    for key in {row[0] for row in rows}:
        seqs = [row[2] for row in rows if row[0] == key]
        assert seqs == list(range(1, len(seqs) + 1)), f"{key} has a hole"
    server.command("verify")
    return len(acknowledged), len(rows)


def crash_in_lanes(folder: Path, failpoint: str, kills: int, lanes: int = 2) -> int:
    with ThreadPoolExecutor(lanes) as pool:
        futures = [pool.submit(crash, folder / f"{failpoint}-{i}", failpoint, kills // lanes, i) for i in range(lanes)]
        return sum(future.result()[0] for future in futures)


@pytest.mark.crash
@pytest.mark.timeout(200)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(tmp_path, failpoint):
    assert crash_in_lanes(tmp_path, failpoint, 18) > 100


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_nothing_acknowledged_is_lost_in_seventy_kills(tmp_path, failpoint):
    assert crash_in_lanes(tmp_path, failpoint, 70) > 400
