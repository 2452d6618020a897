"""The deployment of several processes, for real: PostgreSQL, Redis, web nodes, a recorder with a standby.

And clients that go on whatever is killed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import redis
from websockets.asyncio import client
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import connect

from tests.support.forking import Forked
from tests.support.live import Server, until
from tests.support.services import PostgresServer, RedisServer

Process = subprocess.Popen[bytes] | Forked
START = 60.0  # seconds the parts of a deployment may take, on a machine that does other things, too


class Deployment:
    """`start` brings it all up in the order of the README; `close` ends exactly that."""

    def __init__(self) -> None:
        self.redis = RedisServer("--appendonly", "yes", "--appendfsync", "always")
        self.postgres = PostgresServer()
        self.home = Path(tempfile.mkdtemp(prefix="switchboard-deployment-"))
        self.recorders: list[Process] = []
        self.workers: list[Process] = []
        self.token = ""

    def start(self) -> Deployment:
        """Web nodes first: they wait for the tables."""
        self.redis.start()
        self.postgres.start()
        self.environment = {
            "SWITCHBOARD_DATABASE_URL": self.postgres.create("switchboard"),
            "SWITCHBOARD_REDIS_URL": self.redis.url,
            "SWITCHBOARD_SECRET_KEY": "one secret for all processes of a deployment",
        }
        self.a, self.b = (Server(self.home, "--web-only", **self.environment) for _ in range(2))
        self.a.launch()
        self.b.launch()
        until(self._is_waiting, within=START, what="a web node that waits for migrations")
        self.a.command("migrate", "--verbosity", "0")
        self.record()
        self.record()
        self.token = self.make_token("robot", "admin")
        self.are_ready(self.a, self.b)
        until(lambda: len(self.alive("recorder")) == 2, within=START, what="two recorders")
        return self

    def _is_waiting(self) -> bool:
        with suppress(OSError):
            status, body = self.a.request("GET", "/readyz")
            return status == 503 and "waiting for migrations" in body["parts"]["migrations"]
        return False

    def are_ready(self, *nodes: Server) -> None:
        """Wait for web nodes, layer included."""
        for node in nodes:
            until(lambda node=node: _is_well(node), within=START, what=f"{node.url} to be ready")

    def make_token(self, name: str, role: str) -> str:
        """Make a bearer token without starting a process."""
        secret = f"sb_{secrets.token_urlsafe(32)}"
        digest = hashlib.sha256(secret.encode()).hexdigest()
        with psycopg.connect(self.environment["SWITCHBOARD_DATABASE_URL"]) as connection:
            connection.execute(
                "INSERT INTO conversations_token (name,role,agent,digest,created_by,created_at)"
                " VALUES (%s,%s,'',%s,'system',now())",
                [name, role, digest],
            )
        return secret

    def record(self) -> Process:
        """Start one more recorder."""
        log = self.home / "record.log"
        process = self.a.spawn(["record"], log, log)
        self.recorders.append(process)
        return process

    def work(self) -> Process:
        """Start one more worker: agents in a process of their own."""
        log = self.home / "work.log"
        process = self.a.spawn(["runagents"], log, log)
        self.workers.append(process)
        return process

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        with psycopg.connect(self.environment["SWITCHBOARD_DATABASE_URL"]) as connection:
            return connection.execute(sql.encode()).fetchall()

    def alive(self, kind: str) -> list[dict[str, Any]]:
        """Return the facts of the processes of a kind that tell of themselves."""
        with psycopg.connect(self.environment["SWITCHBOARD_DATABASE_URL"]) as connection:
            rows = connection.execute("SELECT name,facts FROM conversations_node WHERE kind=%s", [kind]).fetchall()
        return [json.loads(facts) | {"name": name} for name, facts in rows]

    def kill_active_recorder(self) -> None:
        """End the one that records, at once, and start another: the standby takes over."""
        active = until(
            lambda: [node for node in self.alive("recorder") if node["active"]], within=30, what="an active recorder"
        )
        pids = {int(node["name"].split(":")[1]) for node in active}
        for process in self.recorders:
            if process.pid in pids and process.poll() is None:
                process.kill()
                process.wait()
        self.record()

    def close(self) -> None:
        """End everything that was started here."""
        for process in (*self.recorders, *self.workers):
            if process.poll() is None:
                process.kill()
                process.wait()
        for node in (self.a, self.b):
            node.kill()
        self.redis.close()
        self.postgres.close()
        shutil.rmtree(self.home, ignore_errors=True)
        self.a.log.unlink(missing_ok=True)


def _is_well(node: Server) -> bool:
    with suppress(OSError):
        status, body = node.request("GET", "/readyz")
        return status == 200 and not body["degraded"]
    return False


class Agent(threading.Thread):
    """Says one numbered thing after the other, each until it is acknowledged; `said` is what was."""

    def __init__(self, say: Callable[[int], None], pause: float = 0.02) -> None:
        super().__init__(daemon=True)
        self._say, self._pause = say, pause
        self._done = threading.Event()
        self.count = 0

    def run(self) -> None:
        """Go on until `finish`."""
        while not self._done.is_set():
            try:
                self._say(self.count)
            except (OSError, redis.RedisError, AssertionError, ValueError):
                self._done.wait(0.1)
                continue
            self.count += 1
            self._done.wait(self._pause)

    def finish(self) -> int:
        """Stop; return how many things were said."""
        self._done.set()
        self.join(60)
        assert not self.is_alive()
        return self.count


def over_http(node: Server, token: str, key: str, pause: float = 0.02) -> Agent:
    """Make an agent that publishes to one node; the same id again when it did not hear the answer."""

    def say(n: int) -> None:
        payload = {"event": "log", "conversation_id": key, "n": n}
        status, body = node.publish(token, f"stream:{key}", payload, f"{key}-{n}")
        assert status == 201, body

    return Agent(say, pause)


def over_redis(server: RedisServer, key: str, pause: float = 0.02) -> Agent:
    """Make an agent that adds to a stream, as other programs do."""
    bus = redis.Redis(port=server.port, decode_responses=True, socket_timeout=3)

    def say(n: int) -> None:
        payload = {"event": "log", "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{key}{n}")), "conversation_id": key}
        bus.xadd(f"stream:{key}", {"id": payload["id"], "payload": json.dumps(payload | {"n": n})})

    return Agent(say, pause)


class Follower(threading.Thread):
    """Follows one conversation at one node by the client's rule of §3.5, and comes back after every end."""

    def __init__(self, node: Server, token: str, key: str) -> None:
        super().__init__(daemon=True)
        self._node, self._token, self._topic = node, token, f"stream:{key}"
        self._done = threading.Event()
        self.last = 0
        self.numbers: list[int] = []  # the `n` of each event, in order
        self.arrived: dict[int, float] = {}
        self.codes: list[int] = []  # how connections ended
        self.is_level = threading.Event()

    def run(self) -> None:
        """Follow until `close`."""
        while not self._done.is_set():
            try:
                self._follow()
            except (OSError, WebSocketException, TimeoutError):
                self._done.wait(0.1)

    def _follow(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        with connect(f"ws://127.0.0.1:{self._node.port}/ws/", additional_headers=headers, compression=None) as ws:
            try:
                self._subscribe(ws)
                while not self._done.is_set():
                    with suppress(TimeoutError):
                        self._take(ws, json.loads(ws.recv(timeout=0.5)))
            finally:
                if ws.protocol.close_rcvd is not None:
                    self.codes.append(ws.protocol.close_rcvd.code)
                self.is_level.clear()

    def _subscribe(self, ws: Any) -> None:
        ws.send(json.dumps({"op": "subscribe", "topic": self._topic, "after": self.last}))

    def _take(self, ws: Any, frame: dict[str, Any]) -> None:
        assert frame["t"] != "reset"
        if frame["t"] == "caught_up":
            self.is_level.set()
        for event in frame.get("events", ()):
            if event["seq"] == self.last + 1:
                self.last = event["seq"]
                self.numbers.append(event["body"].get("n", -1))
                self.arrived[self.last] = time.time()
            elif event["seq"] > self.last + 1:
                self._subscribe(ws)
                return

    def close(self) -> None:
        """Stop."""
        self._done.set()
        self.join(60)


class Crowd(threading.Thread):
    """Many readers of one conversation at one node, in one loop; each comes back after every end, after what it has."""

    def __init__(self, node: Server, token: str, key: str, size: int) -> None:
        super().__init__(daemon=True)
        self._node, self._token, self._topic = node, token, f"stream:{key}"
        self._loop = asyncio.new_event_loop()
        self.numbers: list[list[int]] = [[] for _ in range(size)]  # of each reader, the `n` of each event
        self.level: set[int] = set()
        self.codes: set[int] = set()

    def run(self) -> None:
        """Read until `close`."""
        readers = [self._loop.create_task(self._read(number)) for number in range(len(self.numbers))]
        self._loop.run_forever()
        for reader in readers:
            reader.cancel()
        self._loop.run_until_complete(asyncio.gather(*readers, return_exceptions=True))
        self._loop.close()

    async def _read(self, number: int) -> None:
        while True:
            with suppress(OSError, WebSocketException, TimeoutError):
                await self._follow(number)
            self.level.discard(number)
            await asyncio.sleep(random.uniform(0.1, 0.5))

    async def _follow(self, number: int) -> None:
        numbers, headers = self.numbers[number], {"Authorization": f"Bearer {self._token}"}
        url = f"ws://127.0.0.1:{self._node.port}/ws/"
        async with client.connect(url, additional_headers=headers, compression=None) as ws:
            await ws.send(json.dumps({"op": "subscribe", "topic": self._topic, "after": len(numbers)}))
            try:
                async for text in ws:
                    self._take(number, json.loads(text))
            except ConnectionClosed as closed:
                self.codes.add(closed.rcvd.code if closed.rcvd else 1006)

    def _take(self, number: int, frame: dict[str, Any]) -> None:
        if frame["t"] == "caught_up":
            self.level.add(number)
        for event in frame.get("events", ()):
            assert event["seq"] == len(self.numbers[number]) + 1  # no hole, nothing twice
            self.numbers[number].append(event["body"]["n"])

    @property
    def is_level(self) -> bool:
        """Return whether everybody is there."""
        return len(self.level) == len(self.numbers)

    def have(self, count: int) -> bool:
        """Return whether everybody has so many."""
        return all(len(numbers) >= count for numbers in self.numbers)

    def close(self) -> None:
        """Stop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.join(60)
