"""Always rules: made from a question or by hand, revoked. Called by the approvals pages and the API.

What a rule approves afterwards is `actions.granting`. Making one from a question approves that question too, by the
person, in the same transaction.
"""

import json
import time
from typing import Any, NamedTuple

from django.db import transaction

from conversations import always, audit, masking, policy, terms
from conversations.actions.acting import acting
from conversations.actions.approvals import Answer, asked_of, settle
from conversations.envelopes import check_depth
from conversations.errors import Conflict, Invalid, NotFound
from conversations.ids import new_id
from conversations.models import Agent, AlwaysRule, Approval
from conversations.nodes import database_time
from conversations.principals import Principal
from conversations.rights import Who

MOST_USES = 1_000_000
LONGEST = 366 * 24 * 3600 * 10  # seconds from now that a rule may hold, unless for ever
MOST_REASON = 2000  # characters


class Scope(NamedTuple):
    """What a rule is about. From a question, `tool`, `lookup_key`, `schema` and `agent` are the call's, and exact
    arguments too; `any_agent` has it count for every agent. `until` is µs UTC."""

    is_exact: bool = True
    arguments: dict[str, Any] | None = None
    any_agent: bool = False
    agent: str = ""
    tool: str = ""
    lookup_key: str = ""
    schema: str = ""
    uses: int | None = None
    until: int | None = None


def make_rule(by: Who, scope: Scope, *, reason: str = "") -> AlwaysRule:
    """Make a rule by hand. Raises `Invalid` naming the field, `NotAllowed`."""
    id_ = new_id()
    with acting(by, "make_rule", f"rule:{id_}", right="decide") as principal:
        return _make(principal, id_, _named(scope), reason)


def approve_always(by: Who, approval: str, scope: Scope, *, message: str = "", reason: str = "") -> AlwaysRule:
    """Approve a question, and make a rule for calls like it. Raises as `approvals.decide` and `make_rule` do."""
    id_ = new_id()
    with acting(by, "decide", f"approval:{approval}", right="decide") as principal:
        found = Approval.objects.filter(id=approval).first()
        if found is None:
            raise NotFound(f"no approval {approval[:80]}")
        of_call = _from_call(always.call_of(asked_of(found)), scope)
        settle(principal, approval, Answer("approve", message=message, reason=reason), makes_rule=id_)
        return _make(principal, id_, of_call, reason, approval=approval)


def revoke_rule(by: Who, rule: str, *, reason: str = "") -> AlwaysRule:
    """End a rule; what it approved stays so. Raises `Conflict` when somebody did, `NotFound`."""
    with acting(by, "revoke_rule", f"rule:{rule}", right="decide") as principal:
        found = AlwaysRule.objects.filter(id=rule[:64]).first()
        if found is None:
            raise NotFound(f"no rule {rule[:80]!r}")
        now = database_time()
        if not AlwaysRule.objects.filter(id=found.id, revoked_at=None).update(
            revoked_by=str(principal), revoked_at=now
        ):
            found.refresh_from_db()
            raise Conflict(f"{found.revoked_by} revoked it already", code="already_revoked")
        audit.enter(principal, "revoke_rule", f"rule:{rule}", reason=reason[:MOST_REASON], before=_digest(found))
        transaction.on_commit(always.forget)
    found.refresh_from_db()
    return found


def _make(principal: Principal, id_: str, scope: Scope, reason: str, *, approval: str = "") -> AlwaysRule:
    """Store a rule inside an action, and audit it."""
    _check(scope, reason)
    now = database_time()
    if scope.until is not None and not now < scope.until <= now + LONGEST * 1_000_000:
        raise Invalid("expected a time to come, within ten years", field="until")
    if AlwaysRule.objects.live(now).count() >= always.MOST:
        raise Invalid(f"there are {always.MOST:,} rules already; revoke one first")
    made = AlwaysRule.objects.create(
        id=id_, lookup_key=scope.lookup_key, tool=scope.tool, schema=scope.schema,
        agent="" if scope.any_agent else scope.agent, is_exact=scope.is_exact,
        arguments=always.canonical(scope.arguments), digest=always.digest(scope.arguments), uses=scope.uses,
        until=scope.until, made_by=str(principal), made_at=time.time_ns() // 1000, approval=approval,
        reason=reason.strip(),
    )  # fmt: skip
    told = {"tool": made.tool, "agent": made.agent, "arguments": "exact" if made.is_exact else "partial"}
    told |= {name: value for name in ("uses", "until", "approval") if (value := getattr(made, name))}
    audit.enter(principal, "make_rule", f"rule:{id_}", reason=reason, after=_digest(made), correlation=told)
    transaction.on_commit(always.forget)
    return made


def _from_call(call: always.Call, scope: Scope) -> Scope:
    """Answer a rule's scope for calls like this one. Raises Invalid when no rule could be about them."""
    if call.arguments is None:
        raise Invalid("its arguments are no JSON object, or cover a secret: no rule can be about them", field="match")
    given = call.arguments if scope.is_exact else scope.arguments or {}
    if not always.contains(call.arguments, given):
        raise Invalid("the call itself does not have these arguments", field="arguments")
    return scope._replace(
        tool=call.tool, lookup_key=call.lookup_key, schema=call.schema, agent=call.agent, arguments=given
    )


def _named(scope: Scope) -> Scope:
    """Find the tool that a rule made by hand names, by its qualified name or its lookup key."""
    if scope.arguments is None:
        raise Invalid("expected a JSON object", field="arguments")
    wanted, any_agent = scope.lookup_key or scope.tool, scope.any_agent or not scope.agent
    for name, tools in Agent.objects.order_by("name").values_list("name", "tools"):
        for tool in json.loads(tools) if any_agent or name == scope.agent else ():
            key = str(tool.get("lookup_key") or f"bare:{tool['name']}")
            if wanted in (key, tool["name"]):
                return scope._replace(
                    tool=tool["name"], lookup_key=key, any_agent=any_agent,
                    schema=scope.schema or str(tool.get("schema") or ""),
                )  # fmt: skip
    raise Invalid(f"no agent that is served{'' if any_agent else f' as {scope.agent[:80]}'} has it", field="tool")


def _check(scope: Scope, reason: str) -> None:
    if len(reason) > MOST_REASON:
        raise Invalid(f"expected at most {MOST_REASON:,} characters", field="reason")
    if scope.uses is not None and not 1 <= scope.uses <= MOST_USES:
        raise Invalid(f"expected 1 to {MOST_USES:,}, or nothing", field="uses")
    try:
        text = always.canonical(scope.arguments)
        check_depth(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"expected a JSON object: {error}", field="arguments") from None
    if len(text) > always.MOST_ARGUMENTS:
        raise Invalid(f"expected {always.MOST_ARGUMENTS:,} characters at most", field="arguments")
    if "\0" in text or masking.MASK in text:
        raise Invalid(f"{masking.MASK} covers a secret: a rule cannot be about it", field="arguments")
    about = policy.about("" if scope.any_agent else scope.agent, scope.tool)
    if terms.of_call(about).no_always:
        raise Invalid(f"the policy has a person decide each call of {scope.tool}: no rule would count", field="tool")
    effect = policy.effective(policy.Declared("ask", "read"), about).effect
    if effect == "destructive" and (scope.any_agent or not scope.is_exact):
        raise Invalid("a call that destroys is approved for one agent and exact arguments only", field="match")


def _digest(rule: AlwaysRule) -> str:
    return audit.digest([rule.lookup_key, rule.schema, rule.agent, rule.is_exact, rule.digest, rule.uses, rule.until])
