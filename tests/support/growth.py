"""How the work of a function grows with its input, and how it compares with a raw counterpart in the same run.

Two functions are compared by CPU seconds of this thread, in turns, the least of several: other load on the machine
only ever adds. So a bound that holds is found to hold soon, and one that does not is missed every time. What SQLite
does is counted by its own steps, which are the same on every machine.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection
from django.test.utils import CaptureQueriesContext

ROUNDS = 12
NUMBERED = b"[" + b"1," * ((1 << 19) - 1) + b"1]"


def cpu_of(work: Callable[[], object]) -> float:
    """Return the CPU seconds that this thread takes for some work."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect none meanwhile: that may begin in any call, and takes as long as this process's other objects need."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def read_numbers() -> None:
    """Read 1 MiB of numbers as Python does, 20 to 30 ms on a quiet machine of 2026: what bounds are told against."""
    json.loads(NUMBERED)


def ratio(work: Callable[[], object], raw: Callable[[], object], *, below: float) -> float:
    """Return how many times as long as `raw` the work takes, measuring again until it is below a bound."""
    least, least_raw = cpu_of(work), cpu_of(raw)
    for _ in range(ROUNDS - 1):
        if least < below * least_raw:
            break
        least, least_raw = min(least, cpu_of(work)), min(least_raw, cpu_of(raw))
    return least / least_raw


def sqlite_steps(work: Callable[[], object]) -> int:
    """Return how many steps SQLite's machine takes for some work on this thread's connection, in tens."""
    tens = 0

    def count() -> int:
        nonlocal tens
        tens += 1
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(count, 10)
    try:
        work()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return tens


def database_reads(work: Callable[[], object], table: str) -> int:
    """Return how much the database did for some work: SQLite's steps, in tens, or the pages that PostgreSQL touched for
    the queries that name a table, of which there must be one."""
    if connection.vendor == "sqlite":
        return sqlite_steps(work)
    with CaptureQueriesContext(connection) as queries:
        work()
    reads = [query["sql"] for query in queries if table in query["sql"] and "SELECT" in query["sql"]]
    assert reads
    return sum(map(_pages_of, reads))


def _pages_of(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + sql)
        (plan,) = cursor.fetchone()[0]
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
