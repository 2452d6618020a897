"""Handle approval requests whose deadline has passed: escalate or end them, once. Called periodically by
servers and workers (§3.1).

A request contains its deadline and what happens then (`request_terms`): `wait` records that it still waits, `notify`
notifies a role, `reject` ends the request, and the run continues without the call. For a request that contains neither,
the settings apply: `SWITCHBOARD_APPROVAL_S`, 0 for no deadline, and `SWITCHBOARD_APPROVAL_EXPIRY`.
"""

from django.conf import settings

from conversations.access.audit import chain
from conversations.core.database_clock import database_now
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import Approval, Conversation, Run
from conversations.runs.act_on_each import act_on_each
from conversations.runs.approvals import decide, request_terms
from conversations.runs.approvals.decide import request_body
from conversations.runs.claims import Body
from conversations.runs.policy.file_format import time_of

AT_A_TIME = 100


def handle_due() -> list[str]:
    """End or escalate each request whose deadline has passed; return the ids of those handled by this call."""
    overdue = request_terms.past_deadline(database_now())
    due = Approval.objects.open().filter(overdue, escalated_seq=None).order_by("id")
    return [approval.id for approval in act_on_each(due[:AT_A_TIME], _handle)]


def _handle(approval: Approval) -> bool:
    request = request_body(approval)
    then, role = request_terms.terms_of_request(request)
    return _expire(approval) if then == "reject" else _escalate(approval, role)


def _expire(approval: Approval) -> bool:
    with write_transaction():
        conversation = Conversation.objects.locked(approval.conversation_id)
        if not Approval.objects.open().filter(id=approval.id).update(status="expired"):
            return False
        fields = _facts(approval)
        body: Body = {"event": "approval.expired", "id": new_id(), **fields, "approval_id": approval.id}
        body |= {"tool_call": approval.tool_call, "reason": f"no decision within {_limit(approval)}"}
        log.append([log.from_internal(conversation.key, body, SYSTEM)])
        decide.requeue_or_end_if_decided(SYSTEM, conversation.key, Run.objects.get(id=approval.run), fields, "expired")
        _add_audit_entry("expire", approval, conversation.key)
    return True


def _escalate(approval: Approval, role: str) -> bool:
    """Notify a role once that a request has waited too long; it stays open."""
    with write_transaction():
        conversation = Conversation.objects.locked(approval.conversation_id)
        if not Approval.objects.open().filter(id=approval.id, escalated_seq=None).exists():
            return False
        body: Body = {"event": "approval.escalated", "id": new_id(), **_facts(approval), "approval_id": approval.id}
        body |= {"tool_call": approval.tool_call, "to": role, "reason": f"no decision within {_limit(approval)}"}
        log.append([log.from_internal(conversation.key, body, SYSTEM)])
        _add_audit_entry("escalate", approval, conversation.key)
    return True


def _facts(approval: Approval) -> Body:
    return {"run_id": approval.run, "agent": Run.objects.values_list("agent", flat=True).get(id=approval.run)}


def _add_audit_entry(verb: str, approval: Approval, key: str) -> None:
    correlation = {"conversation": key, "run": approval.run, "call": approval.tool_call}
    chain.add_entry(
        SYSTEM,
        verb,
        f"approval:{approval.id}",
        reason=f"no decision within {_limit(approval)}",
        correlation=correlation,
    )


def _limit(approval: Approval) -> str:
    waited = (approval.deadline - approval.asked_at) / 1e6 if approval.deadline else settings.CONFIG.approval_s
    return time_of(round(waited, 1) if waited < 1 else round(waited) if waited < 60 else round(waited / 5) * 5)
