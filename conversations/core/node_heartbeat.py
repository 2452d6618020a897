"""What each process of a deployment tells of itself, for the ops page and the metrics: a row, told again every few
seconds. A row is a hint for people; nothing is decided by it."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from django.db import connection

from conversations.core import crash_reports
from conversations.core.write_transaction import write_transaction
from conversations.models import Node

BEAT_EVERY = 5.0  # seconds
GONE_AFTER = 20.0  # seconds without a beat
FORGET_AFTER = 24 * 3600.0

Facts = Callable[[], dict[str, Any]]


def release() -> str:
    """Return the installed version."""
    try:
        return version("switchboard-dashboard")
    except PackageNotFoundError:
        return "unknown"


def database_now() -> int:
    """Return the database's clock, µs UTC: what leases and beats are measured by."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)")
            answer = cursor.fetchone()[0]
            if answer is None:  # SQLite before 3.42 has no 'subsec'
                answer = time.time_ns() // 1000  # the same machine, the same clock
        else:
            cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
            answer = cursor.fetchone()[0]
    return int(answer)


def worker_node(worker: str) -> str:
    """Return the name of the row by which a worker tells of itself."""
    return f"{worker[:92]}-worker"


def is_there(name: str) -> bool:
    """Return whether a process tells of itself, by the name of its row."""
    seen = Node.objects.filter(name=name).values_list("seen_at", flat=True).first()
    return seen is not None and _is_fresh(seen, database_now())


class Heartbeat:
    """One process's row. `facts` is asked at every beat and answers what JSON can hold."""

    def __init__(self, kind: str, facts: Facts) -> None:
        self._kind, self._facts = kind, facts
        self._started_at = time.time_ns() // 1000
        self.name = f"{socket.gethostname()}:{os.getpid()}:{self._started_at // 1_000_000}"[:100]

    def beat(self) -> None:
        """Tell of this process now, and forget those that are long gone. Sync; one short write."""
        now = database_now()
        facts = self._facts() | {"clock_skew_ms": round((time.time_ns() // 1000 - now) / 1000, 1)}
        facts["warnings"] = [*crash_reports.recent_crashes(), *facts.get("warnings", ())]
        with write_transaction():
            row = {"kind": self._kind, "version": release(), "started_at": self._started_at, "seen_at": now}
            Node.objects.update_or_create(name=self.name, defaults=row | {"facts": json.dumps(facts)})
            Node.objects.filter(seen_at__lt=now - int(FORGET_AFTER * 1e6)).delete()

    def stop(self) -> None:
        """Take the row away: this process ends in order."""
        with write_transaction():
            Node.objects.filter(name=self.name).delete()

    async def beat_in_thread(self) -> None:
        """Wait for the next beat's time and tell; for `background_loop.run_forever`."""
        await asyncio.to_thread(self.beat)
        await asyncio.sleep(BEAT_EVERY)


def live_nodes() -> list[tuple[Node, bool]]:
    """Return every process told of, newest beat first, and whether it still is."""
    now = database_now()
    return [(node, _is_fresh(node.seen_at, now)) for node in Node.objects.order_by("-seen_at")[:200]]


def _is_fresh(seen_at: int, now: int) -> bool:
    """Return whether a beat is a recent one; one of the future is of a clock that was ahead."""
    return abs(now - seen_at) < GONE_AFTER * 1e6
