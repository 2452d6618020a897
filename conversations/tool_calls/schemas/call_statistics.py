"""Statistics of a tool's newest calls: how many fail, how long they take. By index, within bounds."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from math import ceil

from conversations.core.micros import to_datetime
from conversations.models import ToolCall
from conversations.models.tool_call import FAILED, STOPPED

WINDOW = 1_000  # calls that are counted, the newest
SHOWN = 20
RAN = ("done", "failed", "timeout", "unknown")


@dataclass(frozen=True, slots=True)
class Latency:
    """Known durations of successful calls in ms, as percentiles by nearest rank."""

    p50: float | None
    p95: float | None
    p99: float | None
    calls: int


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """Figures of the newest `WINDOW` calls; `since`: when the oldest of them began; `is_full`: there were more."""

    calls: int
    ran: int
    failed: int
    stopped: int
    latency: Latency | None
    since: datetime | None
    is_full: bool
    newest: list[ToolCall]

    @property
    def failure_rate(self) -> float | None:
        """Return the percentage of executed calls that failed; None without any."""
        return 100 * self.failed / self.ran if self.ran else None


def figures_of(schemas: Sequence[str], other_agents: Collection[str] = ()) -> CallStatistics:
    """Count our calls with these schemas, except those of `other_agents`, which belong to another team with the
    same tool."""
    all_rows: list[tuple[str, str, float | None, int]] = []
    for schema in schemas:
        calls = ToolCall.objects.filter(schema=schema, run__isnull=False).exclude(agent__in=list(other_agents))
        rows = calls.order_by("-id").values_list("id", "status", "duration_ms", "started_at")
        all_rows += rows[: WINDOW + 1]
    newest = nlargest(WINDOW, all_rows)
    statuses = Counter(status for _, status, _, _ in newest)
    durations = sorted(ms for _, status, ms, _ in newest if status == "done" and ms)
    shown = ToolCall.objects.filter(id__in=[row[0] for row in newest[:SHOWN]]).select_related("conversation")
    return CallStatistics(
        calls=len(newest),
        ran=sum(statuses[word] for word in RAN),
        failed=sum(statuses[word] for word in FAILED),
        stopped=sum(statuses[word] for word in STOPPED),
        latency=Latency(rank(durations, 50), rank(durations, 95), rank(durations, 99), len(durations))
        if durations
        else None,
        since=to_datetime(newest[-1][3]) if newest else None,
        is_full=len(all_rows) > WINDOW,
        newest=sorted(shown, key=lambda call: call.id, reverse=True),
    )


def rank(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile of ascending values by nearest rank; None without values."""
    return values[max(0, ceil(len(values) * percent / 100) - 1)] if values else None
