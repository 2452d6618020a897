"""What each process of a deployment reports about itself, for the operations page and the metrics: a row that it renews
every few seconds. Rows inform people; the one decision taken by them is whether the worker of a run whose lease is
invalid is gone (`leases.is_abandoned`)."""

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from conversations.core import crash_reports, schema_state
from conversations.core.database_clock import database_now
from conversations.core.write_transaction import write_transaction
from conversations.models import Node

BEAT_EVERY = 5.0  # seconds
GONE_AFTER = 20.0  # seconds without a beat
FORGET_AFTER = 24 * 3600.0
FORGET_EVERY = 3600.0  # seconds between looks for rows to forget

Facts = Callable[[], dict[str, Any]]


def release() -> str:
    """Return the installed version."""
    try:
        return version("switchboard-dashboard")
    except PackageNotFoundError:
        return "unknown"


def worker_node(worker: str) -> str:
    """Return the name of a worker's row."""
    return f"{worker[:92]}-worker"


def is_alive(name: str, *, after: int = 0) -> bool:
    """Return whether a process is alive, by the name of its row, and has been seen later than `after`, in µs UTC by the
    database's clock."""
    seen = Node.objects.filter(name=name).values_list("seen_at", flat=True).first()
    return seen is not None and seen > after and _is_fresh(seen, database_now())


class Heartbeat:
    """One process's row. `facts` is called at every beat and returns what JSON can hold."""

    def __init__(self, kind: str, facts: Facts) -> None:
        self._kind, self._facts = kind, facts
        self._started_at = time.time_ns() // 1000
        self._forgot_at = 0  # µs UTC
        self.name = f"{socket.gethostname()}:{os.getpid()}:{self._started_at // 1_000_000}"[:100]

    def beat(self) -> None:
        """Store this process as alive, and delete rows of long ended ones. Synchronous; one short write."""
        now = database_now()
        facts = self._facts() | {"clock_skew_ms": round((time.time_ns() // 1000 - now) / 1000, 1)}
        newer = schema_state.newer_warning()
        facts["warnings"] = [*filter(None, [newer]), *crash_reports.recent_crashes(), *facts.get("warnings", ())]
        with write_transaction():
            row = {"kind": self._kind, "version": release(), "started_at": self._started_at, "seen_at": now}
            row["facts"] = json.dumps(facts)
            node = Node(name=self.name, **row)
            Node.objects.bulk_create([node], update_conflicts=True, unique_fields=["name"], update_fields=[*row])
            if now - self._forgot_at > FORGET_EVERY * 1e6:
                self._forgot_at = now
                Node.objects.filter(seen_at__lt=now - int(FORGET_AFTER * 1e6)).delete()

    def stop(self) -> None:
        """Delete the row: this process ends in order."""
        with write_transaction():
            Node.objects.filter(name=self.name).delete()

    async def beat_in_thread(self) -> None:
        """Beat, then sleep until the next beat is due; for `background_loop.run_forever`."""
        await asyncio.to_thread(self.beat)
        await asyncio.sleep(BEAT_EVERY)


def known_nodes() -> list[tuple[Node, bool]]:
    """Return up to 200 known processes, newest heartbeat first, each with whether it is alive."""
    now = database_now()
    return [(node, _is_fresh(node.seen_at, now)) for node in Node.objects.order_by("-seen_at")[:200]]


def _is_fresh(seen_at: int, now: int) -> bool:
    """Return whether a beat is recent; one in the future is from a clock that was ahead."""
    return abs(now - seen_at) < GONE_AFTER * 1e6
