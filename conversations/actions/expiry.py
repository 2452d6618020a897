"""Questions whose time is up: told, or ended, once, by the worker's round (design 3.1). Nothing here is silent.

`SWITCHBOARD_APPROVAL_S` is how long a question may wait, 0 for ever; `SWITCHBOARD_APPROVAL_EXPIRY` what happens then:
`wait` tells that it still waits, `notify` tells a role (`SWITCHBOARD_APPROVAL_ROLE`), `reject` ends the question and
the run goes on without the call.
"""

from django.conf import settings

from conversations import audit, log
from conversations.actions.runs import Body
from conversations.ids import new_id
from conversations.log.writing import writing
from conversations.models import Approval, Conversation, Event, Run
from conversations.nodes import database_time
from conversations.principals import SYSTEM

AT_A_TIME = 100


def expire_due() -> list[str]:
    """End or tell the questions whose time is up; answer the ids of those that this call did."""
    limit_s = settings.CONFIG.approval_s
    if not limit_s:
        return []
    due = Approval.objects.open().filter(asked_at__lt=database_time() - int(limit_s * 1e6)).order_by("id")
    do = _expire if settings.CONFIG.approval_expiry == "reject" else _escalate
    return [found.id for found in due[:AT_A_TIME] if do(found)]


def _expire(found: Approval) -> bool:
    with writing():
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Approval.objects.open().filter(id=found.id).update(status="expired"):
            return False
        facts = _facts(found)
        told: Body = {"event": "approval.expired", "id": new_id(), **facts, "approval_id": found.id}
        told |= {"tool_call": found.tool_call, "reason": f"nobody decided within {_limit()}"}
        log.append([log.of_ours(conversation.key, told, SYSTEM)])
        is_last = not Approval.objects.filter(run=found.run, status="pending").exists()
        if is_last and Run.objects.filter(id=found.run, status="waiting").update(status="queued"):
            resumed: Body = {"event": "run.resumed", "id": new_id(), **facts, "reason": "expired"}
            log.append([log.of_ours(conversation.key, resumed, SYSTEM)])
        _enter("expire", found, conversation.key)
    return True


def _escalate(found: Approval) -> bool:
    """Tell once that a question waits for long; it stays open."""
    with writing():
        conversation = Conversation.objects.locked(found.conversation_id)
        of_it = {"kind": "approval.escalated", "principal": str(SYSTEM), "body__contains": found.id}
        is_told = Event.objects.filter(conversation=conversation, seq__gt=found.asked_seq, **of_it).exists()
        if is_told or not Approval.objects.open().filter(id=found.id).exists():
            return False
        is_notice = settings.CONFIG.approval_expiry == "notify"
        told: Body = {"event": "approval.escalated", "id": new_id(), **_facts(found), "approval_id": found.id}
        told |= {"tool_call": found.tool_call, "to": settings.CONFIG.approval_role if is_notice else "approver"}
        log.append([log.of_ours(conversation.key, told | {"reason": f"nobody decided within {_limit()}"}, SYSTEM)])
        _enter("escalate", found, conversation.key)
    return True


def _facts(found: Approval) -> Body:
    return {"run_id": found.run, "agent": Run.objects.values_list("agent", flat=True).get(id=found.run)}


def _enter(verb: str, found: Approval, key: str) -> None:
    told = {"conversation": key, "run": found.run, "call": found.tool_call}
    audit.enter(SYSTEM, verb, f"approval:{found.id}", reason=f"nobody decided within {_limit()}", correlation=told)


def _limit() -> str:
    seconds = settings.CONFIG.approval_s
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
