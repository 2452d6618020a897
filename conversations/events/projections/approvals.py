"""Approval events → row deltas (law I). Only ours change anything; a claim from outside is stored and shown.

| event, ours | tool call | approval |
|---|---|---|
| approval.requested | a row, or one observed, waiting | a row, pending |
| approval.decided | approved, or rejected and ended | decided |
| approval.cancelled, expired | blocked, ended, if it waits; an observed one goes on | that status |
| approval.escalated | | the role that was notified; it stays pending |

`log.append` itself adds an approval.cancelled for each approval request that is open when its run ends
(`log/approval_cancellation.py`). The call is `blocked`, not `rejected`: nobody said no to it; its run ended, or its
time was up, before it could be entered.
"""

from __future__ import annotations

from functools import partial

from conversations.core.micros import read_micros
from conversations.events.projections.row_changes import (
    ApprovalEnd,
    ApprovalRow,
    ConversationHead,
    EventFacts,
    Fold,
    RowChanges,
)
from conversations.events.projections.runs import RunEventFields, doer_of, with_fields
from conversations.events.projections.tool_calls import change, end, start_call


@with_fields
def approval_requested(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Open an approval request for a call."""
    if event.run is None or not fields.approval_id:
        return
    call = changes.open_calls[head.id].find(fields.tool_call)
    if call is None or call.run not in (event.run, None):
        call = start_call(changes, head, event)
    change(changes, call, "waiting")
    changes.approvals[head.id, fields.approval_id] = ApprovalRow(
        fields.approval_id[:64], head.id, call.id, event.run, head.head_seq, event.at, read_micros(fields.deadline)
    )


@with_fields
def approval_decided(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Record the decision of an approval request, and its effect on the call."""
    by = doer_of(event, fields)
    rule = fields.rule[:64] if isinstance(fields.rule, str) else None
    _settle(changes, head, fields, ApprovalEnd("decided", fields.decision[:10], by, event.at, head.head_seq, rule))
    call = changes.open_calls[head.id].find(fields.tool_call)
    if call is None:
        return
    call.approver = by
    if fields.decision == "reject":
        end(changes, head, call, "rejected")
    else:
        change(changes, call, "approved")


def closed(status: str) -> Fold:
    """Return the fold that closes an approval request which nobody decided."""
    return with_fields(partial(_close, status))


def _close(status: str, changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    _settle(changes, head, fields, ApprovalEnd(status, None, doer_of(event, fields), event.at, head.head_seq))
    call = changes.open_calls[head.id].find(fields.tool_call)
    if call is not None and call.status == "waiting" and call.run is None:
        change(changes, call, "executing")  # elsewhere, where it is decided now
    elif call is not None and call.status == "waiting":
        end(changes, head, call, "blocked")


def _settle(changes: RowChanges, head: ConversationHead, fields: RunEventFields, decision: ApprovalEnd) -> None:
    row = changes.approvals.get((head.id, fields.approval_id))
    if row is None:
        changes.decisions[head.id, fields.approval_id] = decision
        return
    row.status, row.decision, row.decided_by = decision.status, decision.decision, decision.decided_by
    row.decided_at, row.decided_seq, row.rule = decision.decided_at, decision.decided_seq, decision.rule


@with_fields
def escalated(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Record to whom an approval request was escalated."""
    row, to = changes.approvals.get((head.id, fields.approval_id)), fields.to[:20]
    if row is None:
        changes.escalations[head.id, fields.approval_id] = to, head.head_seq
    else:
        row.escalated_to, row.escalated_seq = to, head.head_seq
