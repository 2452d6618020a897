"""`ingest`: committed events a second through the HTTP door and through Redis, against raw SQL of the very same rows.

Each case has a fresh server on a fresh database; raw puts the rows it stored into an empty table of the same shape and
indexes, 1,000 a transaction: executemany on SQLite, executemany and COPY on PostgreSQL. Cases and raw are interleaved.
Targets: SQLite in batches of 1,000 at least 0.55 of raw, of 100 at least 0.35; PostgreSQL by 1,000 at least 0.9 of
executemany and 0.5 of COPY; singles over 64 connections at most 130 µs of the server's CPU and 6 times cheaper than a
Django view that does the same; through Redis at least 0.33 (0.5 is hoped for). `DATABASES=sqlite` is SQLite alone.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.benchmarks import common
from tests.benchmarks.publisher import envelope
from tests.live import Server, on_postgresql, until
from tests.services import PostgresServer, RedisServer, running

ROUNDS = int(os.environ.get("ROUNDS", "3"))
COLUMNS = "conversation_id,seq,kind,at,principal,run,turn,event_id,body,salt,digest,hash"
TABLE = "conversations_event"
STREAMS = 50


class Case(NamedTuple):
    """Connections, messages a request, messages."""

    connections: int
    batch: int
    n: int


CASES = {
    "single-1": Case(1, 1, 1500),
    "single-8": Case(8, 1, 6000),
    "single-64": Case(64, 1, 12_800),
    "batch-100": Case(4, 100, 40_000),
    "batch-1000": Case(4, 1000, 80_000),
}
REDIS_N = 100_000


class Place:
    """Where a server keeps its rows: a data directory of SQLite, or a database of one cluster."""

    def __init__(self, cluster: PostgresServer | None) -> None:
        self.cluster = cluster
        self.kind = "postgresql" if cluster else "sqlite"
        self._made = 0

    @contextmanager
    def server(self, **environment: str) -> Iterator[Server]:
        """Serve on something fresh."""
        self._made += 1
        if self.cluster:
            environment |= on_postgresql(self.cluster.create(f"fresh{self._made}"))
        with tempfile.TemporaryDirectory(prefix="switchboard-bench-") as home:
            server = Server(Path(home) / "data", "--no-demo", **environment)
            server.start()
            try:
                yield server
            finally:
                server.terminate()

    def raw(self, server: Server) -> dict[str, float]:
        """Store what the server stored once more, by plain SQL; answer rows/s of each way."""
        if self.cluster is None:
            return {"executemany": raw_sqlite(server)}
        self._made += 1
        url = self.cluster.create(f"raw{self._made}")
        source = server.environment["SWITCHBOARD_DATABASE_URL"]
        return {way: raw_postgresql(source, url, way) for way in ("executemany", "copy")}


def published(server: Server, case: Case) -> dict[str, float]:
    """Publish a case; answer events/s, CPU µs an event and the waits."""
    token = server.token()
    publish(server.port, token, case._replace(n=case.connections * case.batch))  # warm-up
    assert server.process is not None
    before = common.cpu_of(server.process.pid)
    told = publish(server.port, token, case)
    cpu = common.cpu_of(server.process.pid) - before
    return told | {"rate": told["events"] / told["seconds"], "us": cpu / told["events"] * 1e6}


def publish(port: int, token: str, case: Case, path: str = "/api/v1/publish") -> dict[str, float]:
    """Run the clients in their own process."""
    command = [sys.executable, "-m", "tests.benchmarks.publisher", str(port), token, *map(str, case), path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    told: dict[str, float] = json.loads(done.stdout)
    assert not told["failed"], told
    return told


def raw_sqlite(server: Server) -> float:
    """Insert the server's rows by executemany into a fresh file with the same pragmas; answer rows/s."""
    with sqlite3.connect(server.data_dir / "switchboard.sqlite3") as ours:
        rows = ours.execute(f"SELECT {COLUMNS} FROM {TABLE} ORDER BY id").fetchall()
        schema = [s for (s,) in ours.execute(f"SELECT sql FROM sqlite_master WHERE tbl_name='{TABLE}' AND sql<>''")]
    target = sqlite3.connect(server.data_dir / "raw.sqlite3", isolation_level=None)
    target.executescript(
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA wal_autocheckpoint=16000;PRAGMA cache_size=-65536;"
    )
    for statement in schema:
        target.execute(statement)
    insert = f"INSERT INTO {TABLE}({COLUMNS}) VALUES ({','.join('?' * 12)})"
    start = time.perf_counter()
    for at in range(0, len(rows), 1000):
        target.execute("BEGIN IMMEDIATE")
        target.executemany(insert, rows[at : at + 1000])
        target.execute("COMMIT")
    rate = len(rows) / (time.perf_counter() - start)
    target.close()
    return rate


def raw_postgresql(source: str, url: str, way: str) -> float:
    """Insert the server's rows by executemany or COPY into an empty table like theirs; answer rows/s."""
    with psycopg.connect(source) as ours:
        rows = ours.execute(f"SELECT {COLUMNS} FROM {TABLE} ORDER BY id").fetchall()
        indexes = ours.execute("SELECT indexdef FROM pg_indexes WHERE tablename=%s", [TABLE]).fetchall()
        columns = ours.execute(
            "SELECT column_name, data_type, is_identity FROM information_schema.columns WHERE table_name=%s"
            " ORDER BY ordinal_position",
            [TABLE],
        ).fetchall()
    parts = [f"{n} {t}{' GENERATED BY DEFAULT AS IDENTITY' if i == 'YES' else ''}" for n, t, i in columns]
    with psycopg.connect(url, autocommit=True) as target:
        target.execute(f"DROP TABLE IF EXISTS {TABLE}")
        target.execute(f"CREATE TABLE {TABLE} ({', '.join(parts)})")
        for (definition,) in indexes:
            target.execute(definition)
        start = time.perf_counter()
        for at in range(0, len(rows), 1000):
            with target.transaction(), target.cursor() as cursor:
                if way == "copy":
                    with cursor.copy(f"COPY {TABLE} ({COLUMNS}) FROM STDIN") as copy:
                        for row in rows[at : at + 1000]:
                            copy.write_row(row)
                else:
                    marks = ",".join(["%s"] * 12)
                    cursor.executemany(f"INSERT INTO {TABLE}({COLUMNS}) VALUES ({marks})", rows[at : at + 1000])
        return len(rows) / (time.perf_counter() - start)


def recorded(place: Place, bus: RedisServer) -> dict[str, float]:
    """Record what stands on Redis already; answer rows/s of the recorder's steady part, and of raw."""
    bus.client().flushall()
    fill(bus, REDIS_N)
    with place.server(SWITCHBOARD_REDIS_URL=bus.url) if place.cluster is None else place.server() as server:
        recorder = None
        if place.cluster is not None:
            home = server.data_dir / "recorder"
            home.mkdir()
            environment = server.environment | {"SWITCHBOARD_REDIS_URL": bus.url}
            recorder = Server(home, **environment)
            recorder.process = recorder.spawn(["record"], recorder.log, recorder.log)
        try:
            rate = steady(server, REDIS_N)
        finally:
            if recorder is not None:
                recorder.terminate()
        return {"rate": rate, **place.raw(server)}


def fill(bus: RedisServer, n: int) -> None:
    """Put n messages onto 50 streams."""
    client = bus.client()
    for at in range(0, n, 1000):
        pipe = client.pipeline(transaction=False)
        for number in range(at, at + 1000):
            payload = envelope(number)
            fields = {"id": payload["id"], "payload": json.dumps(payload, separators=(",", ":"))}
            pipe.xadd(f"stream:{payload['conversation_id']}", fields)
        pipe.execute()
    client.close()


def steady(server: Server, n: int) -> float:
    """Watch the rows come; answer rows/s between the first tenth and the end."""
    database = server.database()

    def stored() -> int:
        return int(database.execute("SELECT COALESCE(SUM(head_seq),0) FROM conversations_conversation").fetchone()[0])

    first = until(lambda: (time.perf_counter(), count) if (count := stored()) >= n // 10 else None, within=60)
    last = until(lambda: (time.perf_counter(), count) if (count := stored()) >= n else None, within=120)
    database.close()
    return (last[1] - first[1]) / (last[0] - first[0])


def view() -> float:
    """Measure the same publish through a Django view; answer the server's CPU µs a message."""
    from tests.benchmarks.fanout import Bench

    bench = Bench("ours")
    try:
        publish(bench.port, "bench", Case(64, 1, 64), "/bench/view")
        before = common.cpu_of(bench.process.pid)
        told = publish(bench.port, "bench", Case(64, 1, 3200), "/bench/view")
        return (common.cpu_of(bench.process.pid) - before) / told["events"] * 1e6
    finally:
        bench.stop()


def main() -> None:
    """Interleave the cases and raw on each database."""
    kinds = os.environ.get("DATABASES", "sqlite,postgresql").split(",")
    with ExitStack() as stack:
        bus = stack.enter_context(running(RedisServer()))
        assert isinstance(bus, RedisServer)
        for kind in kinds:
            cluster = stack.enter_context(running(PostgresServer())) if kind == "postgresql" else None
            assert cluster is None or isinstance(cluster, PostgresServer)
            measure(Place(cluster), bus)


def measure(place: Place, bus: RedisServer) -> None:
    """Measure and report one database."""
    got: dict[str, list[dict[str, float]]] = {}
    raw: dict[str, list[float]] = {}
    views: list[float] = []
    for _ in range(ROUNDS):
        for name, case in CASES.items():
            with place.server() as server:
                got.setdefault(name, []).append(published(server, case))
                if case.batch > 1:
                    for way, rate in place.raw(server).items():
                        raw.setdefault(way, []).append(rate)
        if place.cluster is None:
            views.append(view())
        got.setdefault("redis", []).append(recorded(place, bus))
    floors = {way: common.median(rates) for way, rates in raw.items()}
    for name in CASES:
        tell(place.kind, name, got[name], floors, views)
    through = common.median([r["rate"] for r in got["redis"]])
    floor = common.median([r["executemany"] for r in got["redis"]])
    common.report(
        f"ingest-{place.kind}-redis", ratio=through / floor, target=">= 0.33 of raw executemany",
        met=through / floor >= 0.33, rows_s=round(through), raw_rows_s=round(floor), rounds=ROUNDS, rows=REDIS_N,
    )  # fmt: skip


def tell(kind: str, name: str, some: list[dict[str, float]], floors: dict[str, float], views: list[float]) -> None:
    """Report one case."""
    rate, us = (common.median([r[key] for r in some]) for key in ("rate", "us"))
    figures: dict[str, Any] = {"events_s": round(rate), "cpu_us": round(us, 1), "rounds": ROUNDS}
    figures |= {"p50_ms": common.median([r["p50"] for r in some]), "p99_ms": common.median([r["p99"] for r in some])}
    figures |= {f"{way}_rows_s": round(floor) for way, floor in floors.items()}
    ratio, copied = rate / floors["executemany"], rate / floors.get("copy", float("inf"))
    target, met = "said", True
    if name.startswith("batch"):
        least = {"sqlite": {"batch-100": 0.35, "batch-1000": 0.55}, "postgresql": {"batch-1000": 0.9}}
        floor = least[kind].get(name)
        if floor is not None:
            target, met = f">= {floor} of raw executemany", ratio >= floor
        if kind == "postgresql":
            figures["of_copy"] = round(copied, 3)
            if floor is not None:
                target, met = f"{target}, >= 0.5 of COPY", met and copied >= 0.5
    elif name == "single-64":
        target, met = "<= 130 µs CPU", us <= 130
        if views:
            figures["django_view_us"] = round(common.median(views), 1)
            target, met = f"{target}, >= 6 times cheaper than a view", met and common.median(views) / us >= 6
    common.report(f"ingest-{kind}-{name}", ratio=ratio, target=target, met=met, **figures)


if __name__ == "__main__":
    main()
    common.tear_down()
