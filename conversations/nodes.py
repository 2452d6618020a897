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

from conversations.log.writing import writing
from conversations.models import Node

BEAT_EVERY = 5.0  # seconds
GONE_AFTER = 20.0  # seconds without a beat
FORGET_AFTER = 24 * 3600.0

Facts = Callable[[], dict[str, Any]]


def release() -> str:
    """Answer the installed version."""
    try:
        return version("switchboard-dashboard")
    except PackageNotFoundError:
        return "unknown"


def database_time() -> int:
    """Answer the database's clock, µs UTC: what leases and beats are measured by."""
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


class Pulse:
    """One process's row. `facts` is asked at every beat and answers what JSON can hold."""

    def __init__(self, kind: str, facts: Facts) -> None:
        self._kind, self._facts = kind, facts
        self._started_at = time.time_ns() // 1000
        self.name = f"{socket.gethostname()}:{os.getpid()}:{self._started_at // 1_000_000}"[:100]

    def beat(self) -> None:
        """Tell of this process now, and forget those that are long gone. Sync; one short write."""
        now = database_time()
        facts = self._facts() | {"clock_skew_ms": round((time.time_ns() // 1000 - now) / 1000, 1)}
        with writing():
            row = {"kind": self._kind, "version": release(), "started_at": self._started_at, "seen_at": now}
            Node.objects.update_or_create(name=self.name, defaults=row | {"facts": json.dumps(facts)})
            Node.objects.filter(seen_at__lt=now - int(FORGET_AFTER * 1e6)).delete()

    def stop(self) -> None:
        """Take the row away: this process ends in order."""
        with writing():
            Node.objects.filter(name=self.name).delete()

    async def beat_in_thread(self) -> None:
        """Wait for the next beat's time and tell; for `lasting.repeat`."""
        await asyncio.to_thread(self.beat)
        await asyncio.sleep(BEAT_EVERY)


def known() -> list[tuple[Node, bool]]:
    """Answer every process told of, newest beat first, and whether it still is."""
    now = database_time()
    return [(node, now - node.seen_at < GONE_AFTER * 1e6) for node in Node.objects.order_by("-seen_at")[:200]]
