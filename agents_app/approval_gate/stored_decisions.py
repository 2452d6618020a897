"""Read what people decided about a run's calls. Called when a run is opened, and by a remote agent's model."""

import json

from agents_app.call_decisions import Decision
from conversations.models import Approval, Event

EXPIRED_MESSAGE = "Nobody decided in time, so the call was not made. Continue without it."


def decisions(run: str) -> dict[str, Decision]:
    """Return what was decided about a run's calls, by our ids. Sync."""
    decisions_by_call: dict[str, Decision] = {}
    for row in Approval.objects.filter(run=run, status="expired"):
        decisions_by_call[row.tool_call] = Decision("reject", EXPIRED_MESSAGE)
    for row in Approval.objects.filter(run=run, status="decided"):
        both = Event.objects.filter(conversation=row.conversation_id, seq__in=(row.asked_seq, row.decided_seq or 0))
        request_body, decision_body = (json.loads(body) for body in both.order_by("seq").values_list("body", flat=True))
        decisions_by_call[row.tool_call] = Decision(
            row.decision or "",
            decision_body.get("message") or "",
            digest=decision_body.get("digest") or request_body.get("digest") or "",
            arguments=decision_body.get("args_raw"),
            output=decision_body.get("output") or "",
            by=row.decided_by or "",
            server=request_body.get("mcp_server") or "",
        )
    return decisions_by_call
