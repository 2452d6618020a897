"""Create auto-approval rules, from a request or by hand, and revoke them. Called by the approvals pages and the API.

`auto_approval` applies them. Creating a rule from a request also approves that request, by the person, in the same
transaction.
"""

import json
import time
from typing import Any, NamedTuple

from django.db import transaction

from conversations.access.action_context import audited_action, check_reason
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import secret_masking
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.ids import new_id
from conversations.core.principals import Principal
from conversations.events.payload import check_depth
from conversations.models import Agent, Approval, AutoApprovalRule, Run
from conversations.models.run import EXTERNAL
from conversations.runs.approvals import auto_approval_rules, request_terms
from conversations.runs.approvals.auto_approval_rules import ToolIdentity
from conversations.runs.approvals.decide import DecisionInput, apply_decision, request_body
from conversations.runs.budgets import budget_requests
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Effect

MAX_USES = 1_000_000
MAX_DURATION = 366 * 24 * 3600 * 10  # seconds from now that a rule may hold, unless for ever


class AutoApprovalScope(NamedTuple):
    """The calls that a rule matches. From a request, `tool`, `lookup_key`, `identity`, `effect` and `agent` are the
    call's, and so are exact arguments; with `any_agent` the rule applies to every agent of the team. By hand, `schema`
    may be the tool's hash, and the tool's code declares the `effect`. `until` is µs UTC."""

    is_exact: bool = True
    arguments: dict[str, Any] | None = None
    any_agent: bool = False
    agent: str = ""
    tool: str = ""
    lookup_key: str = ""
    schema: str = ""
    identity: ToolIdentity = ToolIdentity()
    effect: Effect = "unsafe"
    uses: int | None = None
    until: int | None = None


def make_rule(by: Who, scope: AutoApprovalScope, *, reason: str = "") -> AutoApprovalRule:
    """Create a rule by hand. Raises `Invalid` naming the field, `NotAllowed`."""
    id_ = new_id()
    with audited_action(by, "make_rule", f"rule:{id_}", right="decide") as principal:
        return _make(principal, id_, _named(scope), reason)


def approve_and_make_rule(
    by: Who, approval: str, scope: AutoApprovalScope, *, message: str = "", reason: str = ""
) -> AutoApprovalRule:
    """Approve a request, and create a rule for calls like it. Raises like `decide.decide` and `make_rule`."""
    id_ = new_id()
    with audited_action(by, "decide", f"approval:{approval}", right="decide") as principal:
        row = Approval.objects.filter(id=approval).first()
        if row is None:
            raise NotFound(f"there is no approval {approval[:80]}")
        _require_coverable(row)
        team = Run.objects.filter(id=row.run).values_list("team", flat=True).first() or ""
        of_call = _from_call(auto_approval_rules.call_of(request_body(row), team), scope)
        apply_decision(principal, approval, DecisionInput("approve", message=message, reason=reason), makes_rule=id_)
        return _make(principal, id_, of_call, reason, approval=approval)


def revoke_rule(by: Who, rule: str, *, reason: str = "") -> AutoApprovalRule:
    """Revoke a rule; calls that it approved stay approved. Raises `Conflict` if it is already revoked, `NotFound`."""
    with audited_action(by, "revoke_rule", f"rule:{rule}", right="decide") as principal:
        row = AutoApprovalRule.objects.filter(id=rule[:64]).first()
        if row is None:
            raise NotFound(f"there is no rule {rule[:80]!r}")
        now = database_now()
        if not AutoApprovalRule.objects.filter(id=row.id, revoked_at=None).update(
            revoked_by=str(principal), revoked_at=now
        ):
            row.refresh_from_db()
            raise Conflict(f"{row.revoked_by} already revoked this rule", code="already_revoked")
        chain.add_entry(principal, "revoke_rule", f"rule:{rule}", reason=reason, before=digest_of(row))
        transaction.on_commit(auto_approval_rules.forget)
    row.refresh_from_db()
    return row


def _make(
    principal: Principal, id_: str, scope: AutoApprovalScope, reason: str, *, approval: str = ""
) -> AutoApprovalRule:
    """Store a rule inside an action, with its audit entry."""
    _check(scope, reason)
    now = database_now()
    if scope.until is not None and not now < scope.until <= now + MAX_DURATION * 1_000_000:
        raise Invalid("must be in the future, within ten years", field="until")
    if AutoApprovalRule.objects.live(now).count() >= auto_approval_rules.MAX_RULES:
        raise Invalid(f"there are already {auto_approval_rules.MAX_RULES:,} rules; revoke one first")
    rule = AutoApprovalRule.objects.create(
        id=id_, lookup_key=scope.lookup_key, tool=scope.tool, **scope.identity._asdict(),
        agent="" if scope.any_agent else scope.agent, is_exact=scope.is_exact,
        arguments=auto_approval_rules.canonical(scope.arguments), digest=auto_approval_rules.digest(scope.arguments),
        uses=scope.uses, until=scope.until, made_by=str(principal), made_at=time.time_ns() // 1000,
        approval=approval, reason=reason.strip(),
    )  # fmt: skip
    correlation = {"tool": rule.tool, "agent": rule.agent, "arguments": "exact" if rule.is_exact else "partial"}
    correlation |= {name: value for name in ("uses", "until", "approval") if (value := getattr(rule, name))}
    chain.add_entry(
        principal, "make_rule", f"rule:{id_}", reason=reason, after=digest_of(rule), correlation=correlation
    )
    transaction.on_commit(auto_approval_rules.forget)
    return rule


def _require_coverable(approval: Approval) -> None:
    """Raise Invalid for a request that rules never approve: of an external agent, or for a budget."""
    if Run.objects.filter(id=approval.run, kind=EXTERNAL).exists():
        raise Invalid("no rule can match this call: its agent runs elsewhere", field="match")
    if budget_requests.is_budget(request_body(approval)):
        raise Invalid("no rule can match a budget: a person decides how much more is spent", field="match")


def _from_call(call: auto_approval_rules.MatchedCall, scope: AutoApprovalScope) -> AutoApprovalScope:
    """Return a rule's scope for calls like this one. Raises Invalid if no rule can match them."""
    if call.arguments is None:
        raise Invalid(
            "no rule can match these arguments: they are not a JSON object, or they contain a masked secret",
            field="match",
        )
    arguments = call.arguments if scope.is_exact else scope.arguments or {}
    if not auto_approval_rules.contains(call.arguments, arguments):
        raise Invalid("must be among the arguments of the call", field="arguments")
    return scope._replace(
        tool=call.tool, lookup_key=call.lookup_key, identity=call.identity, effect=evaluate.as_effect(call.effect),
        agent=call.agent, arguments=arguments,
    )  # fmt: skip


def _named(scope: AutoApprovalScope) -> AutoApprovalScope:
    """Return the tool that a rule created by hand names, by its qualified name or its lookup key."""
    if scope.arguments is None:
        raise Invalid("must be a JSON object", field="arguments")
    name, any_agent = scope.lookup_key or scope.tool, scope.any_agent or not scope.agent
    offered: dict[ToolIdentity, tuple[str, str, str]] = {}  # to the schema, the tool's name and its lookup key
    effects: list[Effect] = []
    for agent, team, tools in Agent.objects.order_by("name", "team").values_list("name", "team", "tools"):
        for tool in json.loads(tools) if any_agent or agent == scope.agent else ():
            key = str(tool.get("lookup_key") or f"bare:{tool['name']}")
            identity = auto_approval_rules.identity_of(tool, "" if any_agent else tool.get("team") or team)
            if name in (key, tool["name"]):
                effects.append(evaluate.as_effect(tool.get("effect")))
                offered.setdefault(identity._replace(schema=""), (identity.schema, tool["name"], key))
    if not offered:
        whose = "" if any_agent else f" named {scope.agent[:80]}"
        raise Invalid(f"no available agent{whose} has this tool", field="tool")
    if len(offered) > 1:
        raise Invalid("several tools have this name: create the rule from a request for approval", field="tool")
    ((identity, (schema, tool_name, key)),) = offered.items()
    identity = identity._replace(schema=scope.schema or schema)
    effect = evaluate.weakest(effects)
    return scope._replace(tool=tool_name, lookup_key=key, any_agent=any_agent, identity=identity, effect=effect)


def _check(scope: AutoApprovalScope, reason: str) -> None:
    check_reason(reason)
    if scope.uses is not None and not 1 <= scope.uses <= MAX_USES:
        raise Invalid(f"must be 1 to {MAX_USES:,}, or empty", field="uses")
    try:
        text = auto_approval_rules.canonical(scope.arguments)
        check_depth(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"must be a JSON object: {error}", field="arguments") from None
    if len(text) > auto_approval_rules.MAX_ARGUMENTS:
        raise Invalid(f"must be at most {auto_approval_rules.MAX_ARGUMENTS:,} characters", field="arguments")
    if "\0" in text or secret_masking.MASK in text:
        raise Invalid(f"{secret_masking.MASK} masks a secret, which a rule cannot match", field="arguments")
    about = evaluate.about("" if scope.any_agent else scope.agent, scope.tool)
    if request_terms.of_call(about).no_always:
        raise Invalid(
            f"the policy requires a person to decide on every call of {scope.tool}, so no rule can apply", field="tool"
        )
    effect = evaluate.effective(evaluate.Declared("ask", scope.effect), about).effect
    if effect == "destructive" and (scope.any_agent or not scope.is_exact):
        raise Invalid("a rule for destructive calls requires a single agent and exact arguments", field="match")


def digest_of(rule: AutoApprovalRule) -> str:
    """Return the digest of a rule's scope, for the audit log."""
    scope = [rule.lookup_key, rule.schema, rule.agent, rule.is_exact, rule.digest, rule.uses, rule.until]
    tool = [rule.origin, rule.mcp_server, rule.team]  # which older rules do not have
    return chain.digest([*scope, *tool] if any(tool) else scope)
