"""`append`: events through `log.submit` against raw `executemany` of the same rows into the same tables and indexes.

Target: at least 0.5 of raw alone, and beside a busy Python thread at least 0.5 of itself alone.
"""

import json
import time
from concurrent.futures import Future
from pathlib import Path

from tests.benchmarks import common, raw

common.set_up()

from django.db import connection

from conversations.core import principals
from conversations.events import log, payload

ROWS = 20_000
JOB = 100  # events of one submit
ROUNDS = 5


def batch(round_: int):
    """Make a batch of messages, 50 conversations in runs of 20."""
    events = []
    for i in range(ROWS):
        key = f"c{i // 20 % 50}"
        body = json.dumps(
            {
                "id": f"{round_}-{i}",
                "conversation_id": key,
                "event": "log",
                "sender": f"agent:A{i % 7}",
                "text": "agent tool search file error result plan step query index " * 4,
                "created_at": "2026-11-21T21:00:00Z",
            }
        )
        events.append(
            log.from_bus(f"stream:{key}", None, body, payload.parse(body.encode()), principals.token_principal("b"))
        )
    return events


def ours(events) -> float:
    """Submit in jobs of 100; return rows/s."""
    writer = log.WriterThreads()
    writer.start()
    start = time.perf_counter()
    waits = []
    for at in range(0, len(events), JOB):
        done: Future = Future()
        writer.submit(events[at : at + JOB], done)
        waits.append(done)
    for done in waits:
        done.result(120)
    rate = len(events) / (time.perf_counter() - start)
    writer.close()
    return rate


def main() -> None:
    """Interleave ours, raw and ours beside a busy thread."""
    source = Path(connection.settings_dict["NAME"])
    alone, beside, floor = [], [], []
    for round_ in range(ROUNDS):
        clear()
        alone.append(ours(batch(round_)))
        floor.append(raw.executemany(source, common.HOME / f"raw{round_}.sqlite3", ROWS))
        clear()
        events = batch(1000 + round_)
        with common.busy_thread():
            beside.append(ours(events))
    a, r, b = common.median(alone), common.median(floor), common.median(beside)
    common.report(
        "append", ratio=a / r, target=">= 0.5 of raw executemany", met=a / r >= 0.5,
        ours_rows_s=round(a), raw_rows_s=round(r), rounds=ROUNDS, rows=ROWS,
    )  # fmt: skip
    common.report(
        "append-busy", ratio=b / a, target=">= 0.5 of alone beside a busy thread", met=b / a >= 0.5,
        beside_rows_s=round(b), alone_rows_s=round(a), rounds=ROUNDS,
    )  # fmt: skip


def clear() -> None:
    """Start each round on empty tables, as raw does."""
    for table in ("event", "post", "toolcall", "participant", "conversation"):
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM conversations_{table}")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


if __name__ == "__main__":
    main()
    common.tear_down()
