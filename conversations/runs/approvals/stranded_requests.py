"""Approval requests whose run is over: it ended before anybody decided, or no worker could resume it with the decision.
For the approvals page."""

import time
from collections.abc import Iterable

from conversations.core.micros import DAY
from conversations.models import Approval, Run
from conversations.models.run import EXTERNAL

RECENT = 200  # requests of the last day that are looked at
MAX_REQUESTS = 10
ENDS = {
    "incompatible": "run could not resume", "interrupted": "run interrupted", "failed": "run failed",
    "cancelled": "run stopped", "done": "run finished",
}  # fmt: skip


def newest() -> list[Approval]:
    """Return those of the last day, newest first."""
    since = time.time_ns() // 1000 - DAY
    recent = Approval.objects.filter(asked_at__gte=since, conversation__is_staged=False).order_by("-asked_at", "-id")
    rows = list(recent.select_related("conversation")[:RECENT])
    why = reasons(rows)
    return [row for row in rows if row.id in why][:MAX_REQUESTS]


def reasons(approvals: Iterable[Approval]) -> dict[str, str]:
    """Say of each of these requests whose run is over why it cannot go on, by its id."""
    settled = [row for row in approvals if row.status in ("cancelled", "decided")]
    if not settled:
        return {}
    over = Run.objects.filter(id__in={row.run for row in settled}, status__in=ENDS)
    ends = {id_: end for id_, *end in over.values_list("id", "status", "reason", "kind")}
    return {
        row.id: _words(*ends[row.run])
        for row in settled
        if row.run in ends and (row.status == "cancelled" or ends[row.run][0] == "incompatible")
    }


def _words(status: str, reason: str, kind: str) -> str:
    if kind == EXTERNAL:
        return reason or "its agent no longer waits"
    return f"{ENDS[status]}: {reason}" if status == "incompatible" and reason else ENDS[status]
