"""Collect what this server process reports in its `Node` row: figures, versions, and warnings for the operations
page."""

import platform
import re
import sqlite3
import time
from typing import Any, Protocol

import django
from channels.layers import get_channel_layer
from django.apps import apps
from django.conf import settings
from django.db import connection

from conversations.core.byte_budget import BoundedMemory
from conversations.core.status import OK
from conversations.events import log
from conversations.events.log.stored_totals import TOTALS
from conversations.realtime.broadcast_listener import BroadcastListener
from conversations.realtime.socket_registry import SocketRegistry
from conversations.search.indexer import Indexer

POLL_EVERY_S = 60.0  # for warnings
MIN_POSTGRESQL = (14, 0)
MIN_REDIS = (6, 2)


class MeasuredRuntime(Protocol):
    """What is measured of a server process. Implemented by `ServerRuntime`, which creates one `NodeMetrics`."""

    url: str
    socket_registry: SocketRegistry
    writer: log.WriterThreads
    budgets: dict[str, BoundedMemory]
    broadcast_listener: BroadcastListener
    indexer: Indexer | None


class NodeMetrics:
    """The figures of one runtime. Sync; called in a thread at every heartbeat."""

    def __init__(self, runtime: MeasuredRuntime) -> None:
        self._runtime = runtime
        self._rows_before, self._at = TOTALS.events, time.monotonic()
        self._looked_at = float("-inf")
        self._versions: dict[str, str] = {}
        self._warnings: list[str] = []

    def facts(self) -> dict[str, Any]:
        """Return the figures as values that JSON can represent."""
        runtime = self._runtime
        now = time.monotonic()
        if now - self._looked_at > POLL_EVERY_S:
            self._looked_at = now
            self._look()
        layer = runtime.broadcast_listener.state
        return {
            "url": runtime.url,
            "sockets": len(runtime.socket_registry.sockets),
            "response_readers": len(runtime.socket_registry.responses),
            "queue_bytes": runtime.writer.waiting_bytes,
            **{f"{name}_bytes": budget.size for name, budget in runtime.budgets.items()},
            **{f"{name}_limit": budget.limit for name, budget in runtime.budgets.items()},
            "commits": TOTALS.commits,
            "rows": TOTALS.events,
            "events_per_s": self._rate(now),
            "doorbell_age_s": runtime.broadcast_listener.age_s,
            "layer": layer,
            "search_lag": runtime.indexer.lag.events if runtime.indexer else None,
            "versions": self._versions,
            "warnings": [*self._warnings, *_search_trouble(runtime)],
        }

    def _rate(self, now: float) -> float:
        rows, before, since = TOTALS.events, self._rows_before, now - self._at
        self._rows_before, self._at = rows, now
        return round((rows - before) / since, 1) if since > 0 else 0.0

    def _look(self) -> None:
        self._versions = {"python": platform.python_version(), "django": django.get_version(), **_database_version()}
        redis = _redis_version() if get_channel_layer() is not None else ""
        if redis:
            self._versions["redis"] = redis
        self._warnings = [*missing_indexes(), *_old(self._versions)]


def _search_trouble(runtime: MeasuredRuntime) -> list[str]:
    """Return why search does not keep up, if so."""
    state = runtime.indexer.state if runtime.indexer else OK
    return [] if state == OK else [f"Search is missing new events: {state}"]


def missing_indexes() -> list[str]:
    """Compare the models' indexes with those of the database; return a warning for each missing one."""
    there = _names()
    return [
        f"The database lacks the index {declared.name} of {model._meta.db_table}:"
        " run `switchboard migrate`, or create it manually."
        for model in apps.get_app_config("conversations").get_models()
        for declared in (*model._meta.indexes, *model._meta.constraints)
        if declared.name not in there
    ]


def _names() -> set[str]:
    """Return the names of the database's indexes and constraints. Django's introspection parses every table's SQL for
    them, which takes half a second of CPU on SQLite."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(_POSTGRESQL)
            return {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('index', 'table')")
        rows = cursor.fetchall()
    return {name for name, _ in rows} | {name for _, sql in rows for name in _CONSTRAINT.findall(sql or "")}


_POSTGRESQL = """SELECT relname FROM pg_class WHERE relkind='i' AND pg_table_is_visible(oid)
UNION SELECT conname FROM pg_constraint WHERE conrelid<>0 AND pg_table_is_visible(conrelid)"""
_CONSTRAINT = re.compile(r'CONSTRAINT "([^"]+)"')


def _database_version() -> dict[str, str]:
    if connection.vendor == "sqlite":
        return {"sqlite": sqlite3.sqlite_version}
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        return {"postgresql": str(cursor.fetchone()[0]).split()[0]}


def _redis_version() -> str:
    """Query Redis for its version, with a short timeout; return an empty string if it does not respond."""
    import redis

    try:
        with redis.Redis.from_url(settings.CONFIG.redis_url, socket_timeout=1, socket_connect_timeout=1) as client:
            return str(client.info("server").get("redis_version", ""))
    except (redis.RedisError, OSError, ValueError):
        return ""


def _old(versions: dict[str, str]) -> list[str]:
    least = {"postgresql": MIN_POSTGRESQL, "redis": MIN_REDIS}
    return [
        f"{name} {versions[name]} is older than {'.'.join(map(str, minimum))}, the oldest tested version."
        for name, minimum in least.items()
        if versions.get(name) and _numbers(versions[name]) < minimum
    ]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
