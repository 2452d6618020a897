"""`toolcalls`: the newest 50 of a million tool calls by each filter and by some together, against the plain query; on
SQLite, then on PostgreSQL.

Target: p99 at most 5 ms by any one filter. Filters together end at the bound of the walk; how long that takes is said,
and how often. `CALLS=100000` makes it smaller.
"""

import os
import random
import time
from collections.abc import Iterator
from typing import Any

from tests.benchmarks import common

IS_POSTGRESQL = common.on_postgresql()
common.set_up()

from django.db import connection

from conversations.log import rows
from conversations.log.writing import writing
from conversations.projections import CallRow, Fold
from conversations.toolcalls import listing
from conversations.toolcalls.facets import facets
from conversations.toolcalls.filters import Filters, moment
from tests.benchmarks.seed import fill, message

CALLS = int(os.environ.get("CALLS", 1_000_000))
CONVERSATIONS = 10_000
ROUNDS = 60
BEGAN = moment("2026-10-22T00:00Z")
STEP = 30 * 86_400_000_000 // CALLS  # µs between two calls: a month of them
STATUSES = ("done", "failed", "timeout", "rejected", "blocked", "unknown", "waiting", "executing")
LIKELY = (900_000, 80_000, 15_000, 3_000, 1_500, 400, 60, 40)

dice = random.Random(7)


def call(number: int, conversations: list[int]) -> CallRow:
    """Make a call: agents and tools of very different frequency, a few replays, decisions and slow ones."""
    agent, tool = int(dice.paretovariate(0.8)) % 60, int(dice.paretovariate(0.6)) % 300
    space = f"desk{tool % 5}" if tool % 3 == 0 else None
    name = f"tool{tool}"
    status = dice.choices(STATUSES, LIKELY)[0]
    is_server = tool % 7 == 0
    return CallRow(
        id=f"{number:036d}", conversation_id=conversations[number // 20 % len(conversations)],
        run=f"run-{number // 10}",
        call_id=f"call_{number}", nth=1, agent=f"Agent {agent}", name=name, namespace=space, lookup_key=name,
        origin="mcp" if is_server else "function", schema=None, called_seq=number * 2 + 2, finished_seq=number * 2 + 3,
        status=status, arguments_digest="", started_at=BEGAN + number * STEP,
        duration_ms=dice.lognormvariate(4.5, 1.6), replay_of=f"{number - 1:036d}" if number % 5000 == 9 else None,
        qualified_name=f"{space}.{name}" if space else name, mcp_server=f"server {tool % 3}" if is_server else None,
        output_bytes=int(dice.lognormvariate(6, 2)),
        approver=f"user:person{number % 7}" if number % 400 == 3 else None,
    )  # fmt: skip


def seed() -> None:
    """Fill the table as the log writes it, and conversations for it to be about."""
    fill(message(f"c{number}", number * 10 + 5) for number in range(CONVERSATIONS))
    with connection.cursor() as cursor:
        if not IS_POSTGRESQL:
            cursor.execute("PRAGMA wal_autocheckpoint=16000")
        cursor.execute("SELECT id FROM conversations_conversation ORDER BY id")
        conversations = [row[0] for row in cursor.fetchall()]
    for at in range(0, CALLS, 2000):
        made = [call(number, conversations) for number in range(at, min(CALLS, at + 2000))]
        with writing(), connection.cursor() as cursor:
            rows.write_changes(cursor, Fold(made={one.id: one for one in made}))
    if IS_POSTGRESQL:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE)")  # as autovacuum leaves it, which is off so that it does not disturb
            cursor.execute("CHECKPOINT")  # nor does what filling left to be written


def singles() -> dict[str, Filters]:
    """Each filter alone: a frequent value and a rare one."""
    late = BEGAN + CALLS * STEP // 2
    return {
        "none": Filters(),
        "agent, frequent": Filters(agent=("Agent 1",)), "agent, rare": Filters(agent=("Agent 47",)),
        "tool, frequent": Filters(tool=("tool1",)), "tool, rare": Filters(tool=("tool211",)),
        "qualified": Filters(qualified=("desk3.tool3",)), "qualified, plain": Filters(qualified=("tool1",)),
        "origin": Filters(origin=("mcp",)), "server": Filters(server=("server 1",)),
        "status, frequent": Filters(status=("done",)), "status, rare": Filters(status=("executing",)),
        "statuses": Filters(status=("failed", "timeout", "rejected", "unknown")),
        "approver": Filters(by=("user:person3",)), "replayed": Filters(replayed="yes"),
        "original": Filters(replayed="no"), "slow": Filters(min_ms=60_000.0), "quick": Filters(max_ms=20.0),
        "long or short": Filters(min_ms=300.0, max_ms=310.0), "large": Filters(min_bytes=2_000_000.0),
        "small": Filters(max_bytes=3.0), "from": Filters(since=late), "to": Filters(until=late),
        "conversation": Filters(conversation="c77"), "run": Filters(run="run-77"),
        "call id": Filters(call_id="call_777"), "nothing matches": Filters(agent=("nobody",)),
    }  # fmt: skip


def together() -> Iterator[Filters]:
    """Two to four filters drawn at random: most leave few calls or none."""
    names: dict[str, list[Any]] = {
        "agent": [(f"Agent {n}",) for n in (1, 2, 3, 9, 47)], "tool": [(f"tool{n}",) for n in (1, 2, 7, 21, 211)],
        "status": [(status,) for status in STATUSES], "origin": [("mcp",), ("function",)],
        "by": [("user:person3",)], "replayed": ["yes", "no"], "min_ms": [10.0, 1000.0, 60_000.0],
        "min_bytes": [10.0, 100_000.0], "since": [BEGAN + CALLS * STEP * n // 10 for n in (1, 5, 9)],
    }  # fmt: skip
    for _ in range(300):
        chosen = dice.sample(sorted(names), dice.randint(2, 4))
        yield Filters(**{name: dice.choice(names[name]) for name in chosen})


def timed(filters: Filters, cpu: list[float] | None = None) -> tuple[float, listing.Page]:
    """Read one page; answer the ms. `cpu` takes those of this thread: what a machine with nothing else to do needs."""
    start, used = time.perf_counter(), time.thread_time()
    page = listing.newest(filters)
    if cpu is not None:
        cpu.append((time.thread_time() - used) * 1000)
    return (time.perf_counter() - start) * 1000, page


def raw(filters: Filters) -> float:
    """Ask for the same as one would by hand, every condition in one query; answer the ms."""
    tests = {"agent": "agent", "tool": "name", "status": "status", "origin": "origin", "by": "approver"}
    where, values = ["1=1"], []
    for name, column in tests.items():
        for value in getattr(filters, name):
            where.append(f"{column}=%s")
            values.append(value)
    for name, test in (("min_ms", "duration_ms>=%s"), ("min_bytes", "output_bytes>=%s"), ("since", "started_at>=%s")):
        if getattr(filters, name) is not None:
            where.append(test)
            values.append(getattr(filters, name))
    where += {"yes": ["replay_of IS NOT NULL"], "no": ["replay_of IS NULL"]}.get(filters.replayed, [])
    start = time.perf_counter()
    with connection.cursor() as cursor:
        order = "ORDER BY started_at DESC,conversation_id DESC,called_seq DESC LIMIT 51"
        columns, tests = ",".join(listing.Found._fields), " AND ".join(where)
        sql = f"SELECT {columns} FROM conversations_toolcall WHERE {tests} {order}"
        cursor.execute(sql, values)
        cursor.fetchall()
    return (time.perf_counter() - start) * 1000


def main() -> None:
    """Fill, then ask in turns."""
    start = time.perf_counter()
    seed()
    seeded = time.perf_counter() - start
    waits: dict[str, list[float]] = {name: [] for name in singles()}
    cpu: dict[str, list[float]] = {name: [] for name in singles()}
    for _ in range(ROUNDS):
        for name, filters in singles().items():
            ms, page = timed(filters, cpu[name])
            waits[name].append(ms)
            assert page.looked_at == 0 or name in ("original",), name
    p99 = {name: common.percentile(some, 0.99) for name, some in waits.items()}
    ours, theirs, cut = [], [], 0
    for filters in together():
        ms, page = timed(filters)
        ours.append(ms)
        theirs.append(raw(filters))
        cut += bool(page.looked_at)
    start = time.perf_counter()
    facets(Filters())
    counting = [(time.perf_counter() - start) * 1000]
    for filters in list(together())[:10]:
        start = time.perf_counter()
        facets(filters)
        counting.append((time.perf_counter() - start) * 1000)
    worst = max(p99, key=lambda name: p99[name])
    common.report(
        "toolcalls", ratio=max(theirs) / max(ours), target="p99 <= 5 ms by any one filter", met=p99[worst] <= 5,
        database=connection.vendor, calls=CALLS,
        cpu_p50_ms={name: round(common.median(some), 2) for name, some in cpu.items()},
        p99_ms={name: round(ms, 2) for name, ms in p99.items()}, worst=worst,
        together_ms={"p50": round(common.median(ours), 2), "p99": round(common.percentile(ours, 0.99), 2),
                     "max": round(max(ours), 2)},
        plain_ms={"p50": round(common.median(theirs), 2), "p99": round(common.percentile(theirs, 0.99), 2),
                  "max": round(max(theirs), 2)},
        cut_short=f"{cut} of 300", facets_ms={"all": round(counting[0], 1), "max": round(max(counting), 1)},
        calls_written_s=round(CALLS / seeded),
    )  # fmt: skip


if __name__ == "__main__":
    common.on_both("toolcalls", main)
