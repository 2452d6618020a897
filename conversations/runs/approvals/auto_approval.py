"""Approve calls by auto-approval rules: a call that is about to need approval, and requests that already wait.

A use is counted in the transaction that records the approval, so the count is exact with any number of workers. Nothing
is approved while the conversation is paused or taken over, if the policy denies the call or requires a person, or if
the rule's creator may no longer decide, or not about this run (four eyes). Rules apply to agents' calls: a call that a
person has replayed waits for a person.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from django.db.models import F, OuterRef, Q, Subquery

from conversations.access import four_eyes, permissions
from conversations.access.audit import chain
from conversations.core import principals
from conversations.core.database_clock import database_now
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import bounded_reads
from conversations.models import Approval, AutoApprovalRule, Conversation, Event, Run, ToolCall
from conversations.models.run import EXTERNAL
from conversations.runs.act_on_each import act_on_each
from conversations.runs.approvals import auto_approval_rules, decide, request_terms
from conversations.runs.budgets import budget_requests
from conversations.runs.claims import Body, Claim
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared

AT_A_TIME = 200  # approvals of one call; the worker's round goes on
MAX_REQUESTS = 2_000  # approval requests that are looked at in one round

_looked_upto = ""  # the last request that a round looked at


class _WaitingRequest(NamedTuple):
    id: str
    conversation_id: int


def approve_call(claimed: Claim, request: Body) -> AutoApprovalRule | None:
    """Record that a rule approves a call of a run: `request` is its approval.requested. None: a person has to decide.

    Raises `Fenced` if the worker no longer holds the run.
    """
    with write_transaction():
        conversation = Conversation.objects.locked(key=claimed.conversation)
        rule = None if conversation.is_held else _use(request, Run.objects.get(id=claimed.run))
        if rule is None:
            return None
        body = _decision_body(request, rule) | {
            "id": new_id(),
            "run_id": claimed.run,
            "agent": claimed.agent,
            "by": str(SYSTEM),
        }
        decided = log.from_internal(claimed.conversation, body, SYSTEM)._replace(attempt=claimed.attempt)
        log.append([claimed.event(request), decided])
        _add_audit_entry(rule, claimed.conversation, claimed.run, body)
    return rule


def approve_waiting(at_most: int = AT_A_TIME) -> list[str]:
    """Approve waiting requests that match a rule, each in a separate transaction; return the ids of those approved by
    this call."""
    rules = auto_approval_rules.by_key(auto_approval_rules.live())
    waiting = _waiting(rules) if rules else iter(())
    return [approval.id for approval in islice(act_on_each(waiting, _approve), at_most)]


def _waiting(rules: auto_approval_rules.Rules) -> Iterator[_WaitingRequest]:
    """Return the requests that a rule may match, oldest first. A round continues after the last one of the round
    before, so that requests that no rule matches hold up no others."""
    global _looked_upto
    named = ToolCall.objects.filter(Q(lookup_key__in=rules) | Q(lookup_key=None), status="waiting").values("id")
    free = Approval.objects.open().filter(conversation__state="open", conversation__owner="", tool_call__in=named)
    requests = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("asked_seq")).values("body")
    teams = Run.objects.filter(id=OuterRef("run")).values("team")
    ids = list(free.filter(id__gt=_looked_upto).order_by("id").values_list("id", flat=True)[:MAX_REQUESTS])
    for at in range(0, len(ids), bounded_reads.FETCHED):
        some = Approval.objects.filter(id__in=ids[at : at + bounded_reads.FETCHED]).order_by("id")
        rows = some.annotate(asked=Subquery(requests[:1]), team=Subquery(teams))
        for approval, conversation, body, team in rows.values_list("id", "conversation_id", "asked", "team"):
            call = auto_approval_rules.call_of(json.loads(body), team or "")
            of_tool = rules.get(call.lookup_key, ())
            if any(auto_approval_rules.fits(rule, call, is_destructive=False) for rule in of_tool):
                yield _WaitingRequest(approval, conversation)
    _looked_upto = ids[-1] if len(ids) == MAX_REQUESTS else ""  # not if the round has ended before


def _approve(approval: _WaitingRequest) -> bool:
    with write_transaction():
        conversation = Conversation.objects.locked(approval.conversation_id)
        row = Approval.objects.open().filter(id=approval.id).first()
        if row is None or conversation.is_held:
            return False
        run, request = Run.objects.get(id=row.run), decide.request_body(row)
        if budget_requests.is_budget(request):  # a person decides how much more is spent
            return False
        if request_terms.expired_at(row, request) is not None:
            return False
        rule = _use(request, run)
        if rule is None:
            return False
        body = _decision_body(request, rule)
        decide.store_decision(SYSTEM, row, conversation.key, run, body)
        _add_audit_entry(rule, conversation.key, run.id, body)
    return True


def _use(request: Body, run: Run) -> AutoApprovalRule | None:
    """Count a use of the first valid rule that matches a call, with the conversation locked. None for a replay, because
    rules apply to agents' calls and a person requested the replay; nor for an external agent."""
    call = auto_approval_rules.call_of(request, run.team)
    if run.kind in ("replay", EXTERNAL):
        return None
    about = evaluate.about(call.agent, call.tool)
    declared = Declared("ask", evaluate.as_effect(call.effect))
    held, call_terms = evaluate.effective(declared, about), request_terms.of_call(about)
    if held.rule == "deny" or call_terms.no_always:
        return None
    behind = decide.authors(run) if call_terms.four_eyes else set()
    live = AutoApprovalRule.objects.live(database_now())
    for rule in live.filter(lookup_key=call.lookup_key).order_by(*auto_approval_rules.IN_TURN):
        is_about = auto_approval_rules.fits(rule, call, is_destructive=held.effect == "destructive")
        if is_about and not four_eyes.is_among(rule.made_by, behind) and makers_right(rule) and _counted(rule):
            return rule
    return None


def makers_right(rule: AutoApprovalRule) -> bool:
    """Return whether the creator of a rule may still decide; otherwise the rule does not apply. A token that was made
    since under the creator's name is not the creator."""
    if not permissions.has_permission(principals.principal_from_row(rule.made_by), "decide"):
        return False
    token = chain.last("make_token", rule.made_by) if rule.made_by.startswith("token:") else None
    made = chain.last("make_rule", f"rule:{rule.id}") if token is not None else None
    return token is None or (made is not None and token.seq < made.seq)


def _counted(rule: AutoApprovalRule) -> bool:
    return bool(AutoApprovalRule.objects.live(database_now()).filter(id=rule.id).update(used=F("used") + 1))


def _decision_body(request: Body, rule: AutoApprovalRule) -> Body:
    named = {name: request[name] for name in ("approval_id", "tool_call")}
    return {"event": "approval.decided", **named, "decision": "approve", "rule": rule.id, "rule_by": rule.made_by}


def _add_audit_entry(rule: AutoApprovalRule, key: str, run: str, body: Body) -> None:
    correlation = {"conversation": key, "run": run, "call": body["tool_call"], "decision": "approve", "rule": rule.id}
    reason = f"an auto-approval rule by {rule.made_by}"
    chain.add_entry(SYSTEM, "decide", f"approval:{body['approval_id']}", reason=reason, correlation=correlation)
