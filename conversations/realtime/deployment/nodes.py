"""The processes of a deployment by their heartbeats (`node_heartbeat`). A fact of a wrong type does not count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from conversations.core import json_values, node_heartbeat
from conversations.core.byte_sizes import size
from conversations.core.micros import nearest_datetime
from conversations.models import Node

MAX_GONE = 10  # processes drawn that are no more
MAX_WARNINGS = 8  # of one process

Facts = Mapping[str, Any]  # what JSON holds


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `shown`: its figures as terms and texts."""

    name: str
    kind: str
    version: str
    started: datetime
    last_seen: datetime
    is_alive: bool
    facts: Facts = field(repr=False)
    shown: Sequence[tuple[str, str, str]]  # term, figure, and the exact one of what is drawn in a unit
    warnings: Sequence[str]

    @property
    def place(self) -> str:
        """Name the host and the process's id there."""
        return self.name.rpartition(":")[0] or self.name

    @property
    def role(self) -> str:
        """Tell an active recorder from one that stands by."""
        if self.kind != "recorder":
            return ""
        return "active" if self.facts.get("active") is True else "standby"

    def number(self, name: str) -> float | None:
        """Return a fact that is a number."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def processes() -> tuple[list[Process], int]:
    """Return the living and the last of those that are gone, and how many more are gone since yesterday."""
    all_processes = [_read(node, is_alive) for node, is_alive in node_heartbeat.known_nodes()]
    living = sorted(
        (process for process in all_processes if process.is_alive),
        key=lambda process: (_ORDER.get(process.kind, 9), process.role, process.name),
    )
    gone = [process for process in all_processes if not process.is_alive]
    return living + gone[:MAX_GONE], max(0, len(gone) - MAX_GONE)


_ORDER = {"recorder": 0, "web": 1, "worker": 2}
_SHOWN = {  # fact → term, unit
    "lag_s": ("lag", " s"),
    "events_per_s": ("events/s", ""),
    "events": ("events", ""),
    "streams": ("streams", ""),
    "hot": ("hot", ""),
    "gaps": ("gaps", ""),
    "quarantined": ("quarantined", ""),
    "unsent_posts": ("unsent", ""),
    "sockets": ("sockets", ""),
    "response_readers": ("responses read", ""),
    "queue_bytes": ("queue", ""),
    "rings_bytes": ("page cache", ""),
    "followers_bytes": ("response buffers", ""),
    "running": ("runs now", ""),
    "done": ("runs ended", ""),
    "commits": ("commits", ""),
    "rows": ("rows", ""),
    "search_lag": ("not searchable yet", ""),
    "doorbell_age_s": ("last notification", " s ago"),
}


def _read(node: Node, is_alive: bool) -> Process:
    facts = json_values.parse_object(node.facts) or {}
    raw_warnings = facts.get("warnings")
    warnings = [str(warning)[:300] for warning in raw_warnings[:MAX_WARNINGS]] if isinstance(raw_warnings, list) else []
    return Process(
        name=node.name,
        kind=node.kind,
        version=node.version,
        started=nearest_datetime(node.started_at),
        last_seen=nearest_datetime(node.seen_at),
        is_alive=is_alive,
        facts=facts,
        shown=_shown(facts),
        warnings=warnings,
    )


def _shown(facts: Facts) -> list[tuple[str, str, str]]:
    """Say the figures that are there, in one order; what is not fine about Redis and the layer in words."""
    rows = []
    for name, (term, unit) in _SHOWN.items():
        value = facts.get(name)
        if isinstance(value, int) and name.endswith("_bytes"):
            rows.append((term, *_bytes(value, facts.get(f"{name.removesuffix('_bytes')}_limit"))))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            rows.append((term, f"{value:,.1f}{unit}" if isinstance(value, float) else f"{value:,}{unit}", ""))
    return rows + [(name, facts[name][:120], "") for name in ("redis", "layer") if isinstance(facts.get(name), str)]


def _bytes(value: int, limit: object) -> tuple[str, str]:
    """Say how much of a memory is used, and of how much if it has a budget: in units, and exactly."""
    if type(limit) is not int:
        return size(value), f"{value:,} B"
    return f"{size(value) if value else 0} of {size(limit)}", f"{value:,} of {limit:,} B"
