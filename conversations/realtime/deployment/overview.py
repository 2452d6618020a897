"""The whole state in one value, and what a person should know of it first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import QuerySet

from conversations.core.micros import to_datetime
from conversations.core.status import OK
from conversations.events import epoch
from conversations.models import Conversation, Event, Quarantine, RedisPosition, ToolCall
from conversations.realtime.deployment import bus_state, database
from conversations.realtime.deployment.bus_state import RedisStream, Topic
from conversations.realtime.deployment.database import DatabaseFacts
from conversations.realtime.deployment.nodes import Process, processes
from conversations.telemetry_export import cursor, ended_runs
from conversations.telemetry_export.cursor import Cursor
from conversations.transport import relay_start

MAX_COUNT = 1_000  # §3.6: "1,000+"
SKEWED_MS = 1_000.0  # between a process's clock and the database's
LATE_S = 5.0  # behind Redis
_SPELLED = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}  # others have one capital, at the beginning
_REMEDY = {
    "SQLite": "The server records itself: restart it with SWITCHBOARD_REDIS_URL.",
    "PostgreSQL": "Start one: switchboard record",
}


class Count(NamedTuple):
    """How many, as far as it was counted."""

    number: int
    is_more: bool = False

    def __str__(self) -> str:
        return f"{self.number:,}+" if self.is_more else f"{self.number:,}"


def bounded(rows: QuerySet[Any], most: int = MAX_COUNT) -> Count:
    """Count the rows up to `most`. One query, over an index where the rows come by one."""
    count = rows.order_by().values("pk")[: most + 1].count()
    return Count(min(count, most), count > most)


class Export(NamedTuple):
    """What went to the collector, and how many ended runs wait."""

    cursor: Cursor
    waiting: Count


@dataclass(frozen=True, slots=True)
class Deployment:
    """What `/ops/` shows. `lag_s`: None where nobody reads Redis."""

    read_at: datetime
    has_redis: bool
    processes: Sequence[Process]
    gone_too: int
    lag_s: float | None
    events_per_s: float | None
    sockets: int | None
    response_readers: int | None
    streams: Sequence[RedisStream]
    stream_count: Count
    hot: int | None
    topics: Sequence[Topic]
    unsent: Count
    quarantined: Count
    database: DatabaseFacts
    conversations: Count
    tool_calls: Count
    newest_event: int
    last_event: datetime | None
    epoch: str
    versions: str
    export: Export | None
    warnings: Sequence[str]


def state(stream: str = "") -> Deployment:
    """Read it all; `stream` picks Redis streams by name. About 20 queries, each of a bounded number of rows."""
    all_processes, gone_too = processes()
    living = [process for process in all_processes if process.is_alive]
    active = next((process for process in living if process.role == "active"), None)
    has_redis = bool(settings.CONFIG.redis_url) or active is not None
    looked, export = database.look(), _export()
    unsent = bounded(relay_start.unsent()) if has_redis else Count(0)
    last_at = Conversation.objects.visible().newest_first().values_list("last_at", flat=True).first()
    return Deployment(
        read_at=datetime.now(UTC),
        has_redis=has_redis,
        processes=all_processes,
        gone_too=gone_too,
        lag_s=active.number("lag_s") if active else None,
        events_per_s=_sum(living, "events_per_s"),
        sockets=_count(living, "sockets"),
        response_readers=_count(living, "response_readers"),
        streams=bus_state.streams(stream),
        stream_count=bounded(RedisPosition.objects.all()),
        hot=None if active is None or (hot := active.number("hot")) is None else round(hot),
        topics=bus_state.topics(),
        unsent=unsent,
        quarantined=bounded(Quarantine.objects.open()),
        database=looked,
        conversations=bounded(Conversation.objects.visible()),
        tool_calls=bounded(ToolCall.objects.all()),
        newest_event=Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0,
        last_event=to_datetime(last_at) if last_at else None,
        epoch=epoch.current(),
        versions=_versions(living),
        export=export,
        warnings=_warnings(living, active, looked, export, has_redis=has_redis),
    )


def _export() -> Export | None:
    """Return how the export of runs stands; None where there is none."""
    place = cursor.read() if settings.CONFIG.otlp_endpoint else None
    if place is None:
        return None
    waiting = ended_runs.count(place.row, MAX_COUNT + 1)
    return Export(place, Count(min(waiting, MAX_COUNT), waiting > MAX_COUNT))


def _sum(living: Sequence[Process], name: str) -> float | None:
    """Add a fact up; None when nobody tells it."""
    numbers = [number for process in living if (number := process.number(name)) is not None]
    return sum(numbers) if numbers else None


def _count(living: Sequence[Process], name: str) -> int | None:
    """Add a count up; None when nobody tells it."""
    total = _sum(living, name)
    return None if total is None else round(total)


def _warnings(
    living: Sequence[Process],
    active: Process | None,
    looked: DatabaseFacts,
    export: Export | None,
    *,
    has_redis: bool,
) -> list[str]:
    """Return what needs a person, the worst first; each once."""
    warnings = []
    if has_redis and active is None:
        warnings.append(f"No recorder is active: messages on Redis are not stored. {_REMEDY[looked.vendor]}")
    if active is not None and active.facts.get("redis") not in (None, OK):
        warnings.append(f"The recorder cannot reach Redis: {str(active.facts['redis'])[:200]}")
    if active is not None and (active.number("lag_s") or 0) > LATE_S:
        warnings.append(f"The recorder is {active.number('lag_s'):,.0f} s behind Redis.")
    if sum(process.role == "active" for process in living) > 1:
        warnings.append("Two recorders are active. One steps down at its next batch; nothing is stored twice.")
    if export is not None and export.cursor.trouble:
        warnings.append(
            f"Traces of runs are not exported: {export.cursor.trouble}. Nothing is lost; they are sent later."
        )
    places_by_warning: dict[str, list[str]] = {}
    for process in living:
        for warning in (*process.warnings, *_skewed(process)):
            places_by_warning.setdefault(warning, []).append(process.place)
    warnings += [f"{', '.join(places)}: {warning}" for warning, places in places_by_warning.items()]
    versions = sorted({process.version for process in living})
    if len(versions) > 1:
        warnings.append(f"Processes run different versions: {', '.join(versions)}.")
    return warnings


def _skewed(process: Process) -> list[str]:
    """Warn of a process's clock."""
    skew = process.number("clock_skew_ms") or 0
    if abs(skew) <= SKEWED_MS:
        return []
    return [
        f"Its clock is {abs(skew) / 1000:,.1f} s {'ahead of' if skew > 0 else 'behind'} the database's."
        " Synchronize both with NTP."
    ]


def _versions(living: Sequence[Process]) -> str:
    """Return what the server runs on, as one of its processes tells it."""
    versions = (process.facts.get("versions") for process in living)
    reported: dict[str, object] = next((each for each in versions if isinstance(each, dict)), {})
    return ", ".join(
        f"{_SPELLED.get(str(name), str(name).capitalize())} {str(version)[:40]}"
        for name, version in list(reported.items())[:8]
    )
