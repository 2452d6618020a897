"""What agents of ours did of late, by the turns of their models: how many over time, and in how many runs of others
they took part. One query, which ends at a bound. For the agents page."""

import time
from dataclasses import dataclass, field

from conversations.core.micros import DAY
from conversations.listing.sql_conditions import fetch_rows

TURNS = 5_000  # the newest of a day, of all agents
SPANS, SPAN_US = 24, 1_200_000_000  # eight hours
_HANDED, _LOOKED_AT = -1, -2  # in place of a span

_ACTIVITY = """WITH newest AS (SELECT agent,at,run FROM conversations_turn WHERE at>=%s ORDER BY at DESC LIMIT %s)
SELECT agent,(at-%s)/%s,COUNT(*) FROM newest WHERE run IS NOT NULL AND at>=%s GROUP BY 1,2 UNION ALL
SELECT n.agent,%s,COUNT(DISTINCT n.run) FROM newest n JOIN conversations_run r ON r.id=n.run
WHERE r.ended_seq IS NOT NULL AND r.agent<>n.agent GROUP BY 1 UNION ALL
SELECT '',%s,COUNT(*) FROM newest"""


@dataclass(slots=True)
class AgentActivity:
    """What one agent did: its turns in each span of the last eight hours, the oldest first; and `handed`, how many runs
    that another agent began, that it took part in and that are over. `is_cut`: there may be more within the day."""

    turns: list[int] = field(default_factory=lambda: [0] * SPANS)
    handed: int = 0
    is_cut: bool = False


def by_agent(now: int | None = None) -> dict[str, AgentActivity]:
    """Return what each agent did up to `now` (µs UTC), of those that did anything."""
    now = time.time_ns() // 1000 if now is None else now
    start = (now // SPAN_US - SPANS + 1) * SPAN_US
    activities: dict[str, AgentActivity] = {}
    looked_at = 0
    for agent, span, number in fetch_rows(_ACTIVITY, [now - DAY, TURNS, start, SPAN_US, start, _HANDED, _LOOKED_AT]):
        if span == _LOOKED_AT:
            looked_at = number
        elif span == _HANDED:
            activities.setdefault(agent, AgentActivity()).handed = number
        else:
            activities.setdefault(agent, AgentActivity()).turns[min(span, SPANS - 1)] += number
    for activity in activities.values():
        activity.is_cut = looked_at == TURNS
    return activities
