"""Whose question is over: the end of a run withdraws what it still asks, in the transaction that stores the end."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.ids import new_id
from conversations.log.events import NewEvent, of_ours
from conversations.models import Approval
from conversations.principals import SYSTEM
from conversations.projections import Fold, Head

WHY = {
    "run.cancelled": "the run was stopped",
    "run.failed": "the run failed",
    "run.interrupted": "the run was interrupted",
    "run.incompatible": "the run could not go on",
}


def of(end: NewEvent, head: Head, changes: Fold) -> Iterator[NewEvent]:
    """Answer an `approval.cancelled` for each open question of the run that `end` ends, by whoever ended it.

    `changes` has what this batch asked and decided; the conversation is locked, so the rows say the rest.
    """
    stored = Approval.objects.filter(run=end.run, status="pending").order_by("asked_seq")
    asked = [(id_, call) for id_, call in stored.values_list("id", "tool_call") if id_ not in changes.decisions]
    asked += [(a.id, a.tool_call) for a in changes.approvals.values() if (a.run, a.status) == (end.run, "pending")]
    for approval, call in asked:
        facts: dict[str, object] = {"id": new_id(), "run_id": end.run, "agent": end.said.agent or ""}
        facts |= {"approval_id": approval, "tool_call": call, "reason": WHY[end.kind]}
        yield of_ours(head.key, {"event": "approval.cancelled", **facts}, SYSTEM)._replace(principal=end.principal)
