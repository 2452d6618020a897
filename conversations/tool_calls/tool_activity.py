"""How often tools were called of late, and how many of these calls failed, by who called them. One query, which ends at
a bound. For the agents page."""

import time
from collections import defaultdict
from dataclasses import dataclass

from conversations.core.micros import DAY
from conversations.listing.sql_conditions import fetch_rows
from conversations.models.tool_call import FAILED
from conversations.tool_calls.schemas.call_statistics import RAN

CALLS = 5_000  # the newest of a day, of all agents

_ACTIVITY = """WITH newest AS (SELECT agent,schema,status,run FROM conversations_toolcall
WHERE started_at+0>=%s ORDER BY started_at+0 DESC LIMIT %s)
SELECT agent,CASE WHEN run IS NULL THEN NULL ELSE schema END,status,COUNT(*) FROM newest GROUP BY 1,2,3"""

Key = tuple[str, str]  # agent, and hash of the tool's schema


@dataclass(slots=True)
class ToolActivity:
    """Calls of a day that ran, and how many of them failed. `is_cut`: there may be more within the day."""

    ran: int = 0
    failed: int = 0
    is_cut: bool = False

    def __iadd__(self, other: "ToolActivity") -> "ToolActivity":
        self.ran += other.ran
        self.failed += other.failed
        self.is_cut |= other.is_cut
        return self

    @property
    def calls(self) -> str:
        """Return how many ran, as text."""
        return f"{self.ran:,}{'+' if self.is_cut else ''}"

    @property
    def rate(self) -> str:
        """Return the percentage that failed, as text; empty if none ran."""
        return f"{100 * self.failed / self.ran:.1f} %" if self.ran else ""


def by_caller(now: int | None = None) -> dict[Key, ToolActivity]:
    """Return the calls of our agents in the 24 hours up to `now` (µs UTC)."""
    now = time.time_ns() // 1000 if now is None else now
    activities: dict[Key, ToolActivity] = defaultdict(ToolActivity)
    looked_at = 0
    for agent, schema, status, number in fetch_rows(_ACTIVITY, [now - DAY, CALLS]):
        looked_at += number
        if schema and status in RAN:
            activities[agent, schema] += ToolActivity(number, number if status in FAILED else 0)
    for activity in activities.values():
        activity.is_cut = looked_at >= CALLS
    return dict(activities)
