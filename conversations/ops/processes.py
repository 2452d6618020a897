"""The processes of a deployment as they told of themselves (`nodes.Pulse`). A fact of a wrong type is no fact."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from conversations import nodes
from conversations.models import Node

MOST_GONE = 10  # processes drawn that are no more
MOST_WARNINGS = 8  # of one process

Facts = Mapping[str, Any]  # what JSON holds


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `shown`: its figures as terms and texts."""

    name: str
    kind: str
    version: str
    started: datetime
    seen: datetime
    is_alive: bool
    facts: Facts = field(repr=False)
    shown: Sequence[tuple[str, str]]
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
        """Answer a fact that is a number."""
        value = self.facts.get(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def processes() -> tuple[list[Process], int]:
    """Answer the living and the last of those that are gone, and how many more are gone since yesterday."""
    told = [_read(node, is_alive) for node, is_alive in nodes.known()]
    living = sorted(
        (one for one in told if one.is_alive), key=lambda one: (_ORDER.get(one.kind, 9), one.role, one.name)
    )
    gone = [one for one in told if not one.is_alive]
    return living + gone[:MOST_GONE], max(0, len(gone) - MOST_GONE)


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
    "queue_bytes": ("queue", " B"),
    "commits": ("commits", ""),
    "rows": ("rows", ""),
    "search_lag": ("not searchable yet", ""),
    "doorbell_age_s": ("doorbell", " s ago"),
}


def _read(node: Node, is_alive: bool) -> Process:
    try:
        facts = json.loads(node.facts)
    except (ValueError, RecursionError):
        facts = {}
    facts = facts if isinstance(facts, dict) else {}
    said = facts.get("warnings")
    warnings = [str(one)[:300] for one in said[:MOST_WARNINGS]] if isinstance(said, list) else []
    return Process(
        name=node.name,
        kind=node.kind,
        version=node.version,
        started=_moment(node.started_at),
        seen=_moment(node.seen_at),
        is_alive=is_alive,
        facts=facts,
        shown=_shown(facts),
        warnings=warnings,
    )


def _shown(facts: Facts) -> list[tuple[str, str]]:
    """Say the figures that are there, in one order; what is not fine about Redis and the layer in words."""
    said = []
    for name, (term, unit) in _SHOWN.items():
        value = facts.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            said.append((term, f"{value:,.1f}{unit}" if isinstance(value, float) else f"{value:,}{unit}"))
    return said + [(name, facts[name][:120]) for name in ("redis", "layer") if isinstance(facts.get(name), str)]


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0), 253_402_300_799_000_000) / 1e6, UTC)
