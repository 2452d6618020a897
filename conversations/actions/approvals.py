"""Approvals: asked by a run that waits, decided once by a person (design 3.1, law E)."""

from conversations import audit, log
from conversations.actions.acting import acting
from conversations.actions.runs import Body
from conversations.errors import Conflict, Invalid, NotFound
from conversations.ids import new_id
from conversations.models import Approval, Conversation, Run
from conversations.rights import Who

DECISIONS = ("approve", "reject")


def decide(by: Who, approval: str, decision: str, *, message: str = "", reason: str = "") -> Approval:
    """Decide a tool call; the run is queued again once nothing more is pending.

    Raises `Conflict` when somebody was first (code already_decided) or the question is over (cancelled, expired),
    `NotFound`, `Invalid`.
    """
    if decision not in DECISIONS:
        raise Invalid(f"expected one of {', '.join(DECISIONS)}", field="decision")
    with acting(by, "decide", f"approval:{approval}", right="decide") as principal:
        found = Approval.objects.filter(id=approval).first()
        if found is None:
            raise NotFound(f"no approval {approval}")
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Approval.objects.filter(id=approval, status="pending").update(status="decided"):
            found.refresh_from_db()
            raise _over(found)
        run = Run.objects.get(id=found.run)
        facts: Body = {"id": new_id(), "run_id": run.id, "agent": run.agent, "tool_call": found.tool_call}
        decided: Body = {"event": "approval.decided", **facts, "approval_id": approval, "decision": decision}
        decided |= {name: text for name, text in (("message", message), ("reason", reason)) if text}
        log.append([log.of_ours(conversation.key, decided, principal)])
        is_last = not Approval.objects.filter(run=run.id, status="pending").exists()
        if is_last and Run.objects.filter(id=run.id, status="waiting").update(status="queued"):
            resumed: Body = {"event": "run.resumed", "id": new_id(), "run_id": run.id, "agent": run.agent}
            log.append([log.of_ours(conversation.key, resumed | {"reason": decision}, principal)])
        told = {"conversation": conversation.key, "run": run.id, "call": found.tool_call, "decision": decision}
        audit.enter(principal, "decide", f"approval:{approval}", reason=reason, correlation=told)
    found.refresh_from_db()
    return found


def _over(found: Approval) -> Conflict:
    if found.status == "cancelled":
        return Conflict(f"the question was withdrawn: its run was ended by {found.decided_by}", code="cancelled")
    if found.status == "expired":
        return Conflict("the question is over: its time was up", code="expired")
    return Conflict(f"{found.decided_by} decided already: {found.decision}", code="already_decided")
