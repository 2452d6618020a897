"""The whole state in one value, and what a person should know of it first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.conf import settings

from conversations import epoch, relayed
from conversations.models import Conversation, Event, Quarantine, RedisPosition, ToolCall
from conversations.ops import database, transport
from conversations.ops.counts import Count, bounded
from conversations.ops.database import Database
from conversations.ops.processes import Process, processes
from conversations.ops.transport import Stream, Topic

SKEWED_MS = 1_000.0  # between a process's clock and the database's
LATE_S = 5.0  # behind Redis
_REMEDY = {
    "SQLite": "The server that has the database records: start it again with SWITCHBOARD_REDIS_URL.",
    "PostgreSQL": "Start one: switchboard record",
}


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
    streams: Sequence[Stream]
    stream_count: Count
    hot: int | None
    topics: Sequence[Topic]
    unsent: Count
    quarantined: Count
    database: Database
    conversations: Count
    tool_calls: Count
    newest_event: int
    last_event: datetime | None
    epoch: str
    versions: str
    warnings: Sequence[str]


def state(stream: str = "") -> Deployment:
    """Read it all; `stream` picks Redis streams by name. About 20 queries, each of a bounded number of rows."""
    told, gone_too = processes()
    living = [one for one in told if one.is_alive]
    active = next((one for one in living if one.role == "active"), None)
    has_redis = bool(settings.CONFIG.redis_url) or active is not None
    looked = database.look()
    unsent = bounded(relayed.unsent()) if has_redis else Count(0)
    last_at = Conversation.objects.visible().newest_first().values_list("last_at", flat=True).first()
    return Deployment(
        read_at=datetime.now(UTC),
        has_redis=has_redis,
        processes=told,
        gone_too=gone_too,
        lag_s=active.number("lag_s") if active else None,
        events_per_s=_sum(living, "events_per_s"),
        sockets=None if (sockets := _sum(living, "sockets")) is None else round(sockets),
        streams=transport.streams(stream),
        stream_count=bounded(RedisPosition.objects.all()),
        hot=None if active is None or (hot := active.number("hot")) is None else round(hot),
        topics=transport.topics(),
        unsent=unsent,
        quarantined=bounded(Quarantine.objects.open()),
        database=looked,
        conversations=bounded(Conversation.objects.visible()),
        tool_calls=bounded(ToolCall.objects.all()),
        newest_event=Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0,
        last_event=datetime.fromtimestamp(last_at / 1e6, UTC) if last_at else None,
        epoch=epoch.current(),
        versions=_versions(living),
        warnings=_warnings(living, active, looked, has_redis=has_redis),
    )


def _sum(living: Sequence[Process], name: str) -> float | None:
    """Add a fact up; None when nobody tells it."""
    numbers = [number for one in living if (number := one.number(name)) is not None]
    return sum(numbers) if numbers else None


def _warnings(living: Sequence[Process], active: Process | None, looked: Database, *, has_redis: bool) -> list[str]:
    """Say what needs a person, the worst first; each once."""
    found = []
    if has_redis and active is None:
        found.append(f"No recorder is active: what agents say on Redis is not stored. {_REMEDY[looked.engine]}")
    if active is not None and active.facts.get("redis") not in (None, "ok"):
        found.append(f"The recorder does not reach Redis: {str(active.facts['redis'])[:200]}")
    if active is not None and (active.number("lag_s") or 0) > LATE_S:
        found.append(f"The recorder is {active.number('lag_s'):,.0f} s behind Redis.")
    if sum(one.role == "active" for one in living) > 1:
        found.append("Two recorders say they are active. One of them gives way at its next batch; nothing is doubled.")
    told: dict[str, list[str]] = {}
    for one in living:
        for words in one.warnings or _skewed(one):
            told.setdefault(words, []).append(one.place)
    found += [f"{', '.join(places)}: {words}" for words, places in told.items()]
    versions = sorted({one.version for one in living})
    if len(versions) > 1:
        found.append(f"Processes run different versions: {', '.join(versions)}.")
    return found


def _skewed(one: Process) -> list[str]:
    """Warn of a clock that the process itself does not warn of."""
    skew = one.number("clock_skew_ms") or 0
    if abs(skew) <= SKEWED_MS:
        return []
    return [f"Its clock is {abs(skew) / 1000:,.1f} s {'ahead of' if skew > 0 else 'behind'} the database's."]


def _versions(living: Sequence[Process]) -> str:
    """Say what the server runs on, as one of its processes tells it."""
    versions = (one.facts.get("versions") for one in living)
    told: dict[str, object] = next((each for each in versions if isinstance(each, dict)), {})
    return ", ".join(f"{str(name).capitalize()} {str(version)[:40]}" for name, version in list(told.items())[:8])
