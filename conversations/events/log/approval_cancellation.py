"""Cancel a run's open approval requests when the run ends, in the transaction that stores its end."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import registry
from conversations.events.log.records import NewEvent, from_internal
from conversations.events.projections import ConversationHead, RowChanges
from conversations.models import Approval


def cancellations_for(end: NewEvent, head: ConversationHead, changes: RowChanges) -> Iterator[NewEvent]:
    """Return an `approval.cancelled` for each open request of the run that `end` ends, with the principal that ended
    it, and whom `by` names there: the system writes a token's stop.

    `changes` contains what this batch requested and decided; the conversation is locked, so all other requests are in
    the tables.
    """
    stored = Approval.objects.filter(run=end.run, conversation_id=head.id, status="pending").order_by("asked_seq")
    pending = [
        (id_, call) for id_, call in stored.values_list("id", "tool_call") if (head.id, id_) not in changes.decisions
    ]
    here = [a for (conversation, _), a in changes.approvals.items() if conversation == head.id]
    pending += [(a.id, a.tool_call) for a in here if (a.run, a.status) == (end.run, "pending")]
    known = registry.declared(end.kind)
    why = known.run_end.request_reason if known is not None and known.run_end is not None else ""
    by = json.loads(end.body).get("by") if pending else None
    for approval, call in pending:
        fields: dict[str, object] = {"id": new_id(), "run_id": end.run, "agent": end.payload.agent or ""}
        fields |= {"approval_id": approval, "tool_call": call, "reason": why}
        fields |= {"by": by} if by else {}
        yield from_internal(head.key, {"event": "approval.cancelled", **fields}, SYSTEM)._replace(
            principal=end.principal
        )
