"""Questions whose time is up: told, or ended, once, by the worker's round (design 3.1). Nothing here is silent.

A question says itself until when it may wait and what happens then (`conversations.terms`): `wait` tells that it still
waits, `notify` tells a role, `reject` ends the question and the run goes on without the call. One that says nothing
goes by the settings: `SWITCHBOARD_APPROVAL_S`, 0 for ever, and `SWITCHBOARD_APPROVAL_EXPIRY`.
"""

from django.conf import settings
from django.db.models import Q

from conversations import audit, log, terms
from conversations.actions.approvals import asked_of
from conversations.actions.runs import Body
from conversations.ids import new_id
from conversations.log.writing import writing
from conversations.models import Approval, Conversation, Run
from conversations.nodes import database_time
from conversations.policy_form import time_of
from conversations.principals import SYSTEM

AT_A_TIME = 100


def expire_due() -> list[str]:
    """End or tell the questions whose time is up; answer the ids of those that this call did."""
    now, limit_s = database_time(), settings.CONFIG.approval_s
    is_up = Q(deadline__lt=now)
    if limit_s:
        is_up |= Q(deadline=None, asked_at__lt=now - int(limit_s * 1e6))
    due = Approval.objects.open().filter(is_up, escalated_seq=None).order_by("id")
    return [found.id for found in due[:AT_A_TIME] if _end(found)]


def _end(found: Approval) -> bool:
    told = asked_of(found)
    then, role = terms.asked(told)
    return _expire(found) if then == "reject" else _escalate(found, role)


def _expire(found: Approval) -> bool:
    with writing():
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Approval.objects.open().filter(id=found.id).update(status="expired"):
            return False
        facts = _facts(found)
        told: Body = {"event": "approval.expired", "id": new_id(), **facts, "approval_id": found.id}
        told |= {"tool_call": found.tool_call, "reason": f"nobody decided within {_limit(found)}"}
        log.append([log.of_ours(conversation.key, told, SYSTEM)])
        is_last = not Approval.objects.filter(run=found.run, status="pending").exists()
        if is_last and Run.objects.filter(id=found.run, status="waiting").update(status="queued"):
            resumed: Body = {"event": "run.resumed", "id": new_id(), **facts, "reason": "expired"}
            log.append([log.of_ours(conversation.key, resumed, SYSTEM)])
        _enter("expire", found, conversation.key)
    return True


def _escalate(found: Approval, role: str) -> bool:
    """Tell a role once that a question waits for long; it stays open."""
    with writing():
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Approval.objects.open().filter(id=found.id, escalated_seq=None).exists():
            return False
        told: Body = {"event": "approval.escalated", "id": new_id(), **_facts(found), "approval_id": found.id}
        told |= {"tool_call": found.tool_call, "to": role, "reason": f"nobody decided within {_limit(found)}"}
        log.append([log.of_ours(conversation.key, told, SYSTEM)])
        _enter("escalate", found, conversation.key)
    return True


def _facts(found: Approval) -> Body:
    return {"run_id": found.run, "agent": Run.objects.values_list("agent", flat=True).get(id=found.run)}


def _enter(verb: str, found: Approval, key: str) -> None:
    told = {"conversation": key, "run": found.run, "call": found.tool_call}
    audit.enter(SYSTEM, verb, f"approval:{found.id}", reason=f"nobody decided within {_limit(found)}", correlation=told)


def _limit(found: Approval) -> str:
    waited = (found.deadline - found.asked_at) / 1e6 if found.deadline else settings.CONFIG.approval_s
    return time_of(round(waited, 1) if waited < 1 else round(waited) if waited < 60 else round(waited / 5) * 5)
