"""`rebuild`: a record of a million events folded again, against what storing them took; on SQLite, then on PostgreSQL.
First with every row right, then with the rows of all conversations and calls spoiled.

Target: both in at most twice the CPU of storing them, which leaves HTTP out, and no lock held for more than 100 ms of
CPU. `EVENTS=100000` makes it smaller; `KEEP=FOLDER` fills the databases once.
"""

import json
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks import common

common.on_postgresql()
common.set_up()

from django.db import connection

from conversations.core.write_transaction import write_transaction
from conversations.events.log import rebuild, refold
from conversations.models import Conversation, ToolCall
from tests.benchmarks.seed import fill, message

EVENTS = int(os.environ.get("EVENTS", "1000000"))
EACH = 500  # events of a conversation
FILLING = common.HOME / "filling.json"
SPOILED = 77  # what every counter is set to

held: list[float] = []  # CPU seconds of each transaction of a rebuild


def store() -> None:
    """Fill, and note the CPU that it took."""
    clock = common.cpu_clock()
    began = clock()
    fill(message(f"c{n // EACH}", n % EACH) for n in range(EVENTS))
    FILLING.write_text(json.dumps(clock() - began))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE)")  # as autovacuum leaves it, which is off so that it does not disturb


@contextmanager
def timed_transaction() -> Iterator[None]:
    """Note how long the lock is held."""
    with write_transaction():
        began = time.thread_time()
        yield
        held.append(time.thread_time() - began)


def folded_again() -> dict[str, float]:
    """Rebuild; return the CPU and the wall clock's time, seconds, and the longest lock, ms of CPU."""
    held.clear()
    clock, start = common.cpu_clock(), time.perf_counter()
    began = clock()
    assert sum(events for _, events in rebuild.rebuild()) == EVENTS
    cpu, wall = clock() - began, time.perf_counter() - start
    return {"cpu_s": round(cpu, 1), "s": round(wall, 1), "locks": len(held),
            "longest_lock_ms": round(max(held, default=0) * 1000, 1)}  # fmt: skip


def spoil() -> None:
    """Make every conversation's and every call's row wrong."""
    with write_transaction():
        Conversation.objects.update(messages=SPOILED)
        ToolCall.objects.update(status="unknown")


def main() -> None:
    """Fill, and rebuild twice."""
    common.fill_once(f"{EVENTS} events", store)
    refold.write_transaction = timed_transaction
    filling = float(json.loads(FILLING.read_text()))
    common.as_a_server()
    right = folded_again()
    spoil()
    wrong = folded_again()
    assert not Conversation.objects.filter(messages=SPOILED).exists()
    assert not ToolCall.objects.filter(status="unknown").exists()
    ratio = max(right["cpu_s"], wrong["cpu_s"]) / filling
    longest = max(right["longest_lock_ms"], wrong["longest_lock_ms"])
    common.report(
        "rebuild", ratio=ratio, target="<= 2 times the CPU of storing, locks <= 100 ms",
        met=ratio <= 2 and longest <= 100, database=connection.vendor, events=EVENTS, filling_cpu_s=round(filling, 1),
        right=right, spoiled=wrong, mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    )  # fmt: skip


if __name__ == "__main__":
    common.on_both("rebuild", main)
