"""`growth`: how fast events go in when a million (with FULL=1 five million) are there already, against an empty table.

Target: in runs (50 live conversations, 20 events each in turn) at least 0.7 of the empty table's rate. Spread over
10,000 conversations, one event each in turn, is measured and said.
"""

import os
import time

from tests.benchmarks import common

common.set_up()

from conversations.events import log
from conversations.models import Event
from tests.benchmarks.seed import message

SIZE = 1000  # events a transaction
SAMPLE = 30  # transactions a measurement
TOTAL = 5_000_000 if os.environ.get("FULL") else 1_000_000
made = {"n": 0}


def batch(conversations: int, run: int) -> list[log.NewEvent]:
    """Make one transaction's events: `run` in a row for each of the conversations in turn."""
    start = made["n"]
    made["n"] += SIZE
    return [message(f"{conversations}-{(start + i) // run % conversations}", start + i) for i in range(SIZE)]


def rate(conversations: int, run: int) -> tuple[float, float]:
    """Append 30 transactions; return events/s of the log alone, and the worst transaction in ms."""
    waits = []
    for _ in range(SAMPLE):
        events = batch(conversations, run)
        start = time.perf_counter()
        log.append(events)
        waits.append(time.perf_counter() - start)
    return SIZE / common.median(waits), max(waits) * 1000


def main() -> None:
    """Measure empty, fill, measure again."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_autocheckpoint=16000")  # this thread is the writer here
    empty = {"runs": rate(50, 20), "spread": rate(10_000, 1)}
    while made["n"] < TOTAL:
        log.append(batch(50, 20))
    full = {"runs": rate(50, 20), "spread": rate(10_000, 1)}
    ratio = {name: full[name][0] / empty[name][0] for name in empty}
    common.report(
        "growth", ratio=ratio["runs"], target=">= 0.7 of the empty table's rate, in runs", met=ratio["runs"] >= 0.7,
        spread_ratio=round(ratio["spread"], 3), events=Event.objects.count(),
        empty_events_s={name: round(r) for name, (r, _) in empty.items()},
        full_events_s={name: round(r) for name, (r, _) in full.items()},
        worst_transaction_ms={name: round(ms, 1) for name, (_, ms) in full.items()},
        megabytes=round((common.HOME / "switchboard.sqlite3").stat().st_size / 1e6),
    )  # fmt: skip


if __name__ == "__main__":
    main()
    common.tear_down()
