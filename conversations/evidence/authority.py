"""Rows that authority rests on and no event makes: people, tokens, grants, policies, auto-approval rules, budgets,
legal holds, retention rules, redactions that wait for a second person.

Each change of them is an audit entry, so the audit log says what they must be. Called by `verify`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.utils import timezone

from conversations.access.accounts import edit_grants, tokens
from conversations.access.audit import chain, entry_facts
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.models import (
    Approval,
    AuditEntry,
    AutoApprovalRule,
    BudgetLimit,
    Grant,
    LegalHold,
    RedactionRequest,
    RetentionRule,
    Token,
    User,
)
from conversations.redaction import legal_holds
from conversations.redaction.scope import RedactionScope
from conversations.runs.approvals import auto_approval_edit
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy, evaluate

VERBS = (
    "create_person", "set_roles", "deactivate", "activate", "make_token", "revoke_token", "give_grant", "take_grant",
    "set_policy", "remove_policy", "load_policies", "make_rule", "revoke_rule", "set_budget", "remove_budget",
    "hold", "release_hold", "set_retention", "remove_retention",
    "request_redaction", "confirm_redaction", "decline_redaction",
)  # fmt: skip
UNKNOWN = "?"  # a policy of which the entries do not say enough


@dataclass
class Authority:
    """What the audit log makes of these rows."""

    roles: dict[str, list[str]] = field(default_factory=dict)
    inactive: set[str] = field(default_factory=set)
    tokens: dict[str, tuple[str, str, str]] = field(default_factory=dict)  # role, agent, digest of what is stored
    revoked: set[str] = field(default_factory=set)
    grants: dict[tuple[str, str, str], str] = field(default_factory=dict)  # until
    policies: dict[str, str] = field(default_factory=dict)
    whole_policy: str = ""  # the digest of all of them, where the last entry tells it
    rules: dict[str, str] = field(default_factory=dict)
    revoked_rules: set[str] = field(default_factory=set)
    budgets: dict[str, str] = field(default_factory=dict)
    holds: dict[str, tuple[str, bool]] = field(default_factory=dict)  # target, whether it is of class regulated
    released: set[str] = field(default_factory=set)
    retention: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # days, kind, team, conversation
    ended_retention: set[str] = field(default_factory=set)
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)  # who asked, for what
    decided: dict[str, tuple[str, bool]] = field(default_factory=dict)  # who decided, whether it is confirmed

    def take(self, entry: AuditEntry) -> None:
        """Fold one entry."""
        _, _, name = entry.target.partition(":")
        facts = entry_facts.parse(entry.correlation)
        match entry.verb:
            case "create_person" | "set_roles":
                self.roles[name] = [str(role) for role in facts.get("roles") or []]
                if entry.verb == "create_person":
                    self.inactive.discard(name)
            case "deactivate":
                self.inactive.add(name)
            case "activate":
                self.inactive.discard(name)
            case "make_token":
                role = str(facts.get("role", ""))
                agent = (str(facts.get("agent", "")) or name) if role in tokens.OUTSIDE else ""
                self.tokens[name] = (role, agent, entry.after)
                self.revoked.discard(name)
            case "revoke_token":
                self.revoked.add(name)
            case "give_grant" | "take_grant":
                grant = (name, str(facts.get("what", "")), str(facts.get("target", "")))
                if entry.verb == "give_grant":
                    self.grants[grant] = str(facts.get("until", ""))
                else:
                    self.grants.pop(grant, None)
            case "make_rule":
                self.rules[name] = entry.after
            case "revoke_rule":
                self.revoked_rules.add(name)
            case "set_budget":
                self.budgets[entry.target] = str(facts.get("amount", ""))
            case "remove_budget":
                self.budgets.pop(entry.target, None)
            case "hold" | "release_hold" | "set_retention" | "remove_retention":
                self._take_retention(entry, facts)
            case "request_redaction" | "confirm_redaction" | "decline_redaction":
                self._take_request(entry, facts)
            case _:
                self._take_policy(entry, facts)

    def _take_retention(self, entry: AuditEntry, facts: dict[str, Any]) -> None:
        _, _, number = entry.target.partition(":")
        if entry.verb == "hold":
            self.holds[str(facts.get("hold", ""))] = (entry.target, facts.get("regulated") is True)
        elif entry.verb == "release_hold":
            self.released.add(number)
        elif entry.verb == "set_retention":
            narrowed = (str(facts.get(name, "")) for name in ("kind", "team", "conversation"))
            self.retention[number] = (facts.get("days"), *narrowed)
        else:
            self.ended_retention.add(number)

    def _take_request(self, entry: AuditEntry, facts: dict[str, Any]) -> None:
        number = str(facts.get("request", ""))
        if entry.verb == "request_redaction":
            self.requests[number] = (entry.principal, entry.target)
        else:
            self.decided[number] = (entry.principal, entry.verb == "confirm_redaction")

    def _take_policy(self, entry: AuditEntry, facts: dict[str, Any]) -> None:
        if entry.verb == "load_policies":
            self.policies, self.whole_policy = {}, entry.after
            return
        whole = str(facts.get("policies", ""))
        self.whole_policy = whole or (UNKNOWN if self.whole_policy else "")
        self.policies.pop(str(facts.get("was", "")), None)
        if entry.verb == "set_policy":
            self.policies[entry.target] = entry.after
        else:
            self.policies.pop(entry.target, None)


def first_fault() -> str:
    """Return what is wrong first, in words; empty for nothing. Rows and entries are read one after the other, beside
    people at work: what looks wrong is compared again, with entries since then, while all actions wait."""
    while True:
        expected, upto = Authority(), _newest_entry()
        _fold(expected, 0, upto)
        checks = (_people, _tokens, _grants, _policies, _rules, _budgets, _holds, _retention, _requests)
        failed = [check for check in checks if next(check(expected), "")]
        if not failed:
            return ""
        with write_transaction():
            lock_actions()
            if not AuditEntry.objects.filter(verb=chain.ERASE, seq__gt=upto).exists():  # else earlier ones changed
                _fold(expected, upto, _newest_entry())
                return next((fault for check in failed for fault in check(expected)), "")


def _fold(expected: Authority, after: int, upto: int) -> None:
    entries = AuditEntry.objects.filter(verb__in=VERBS, outcome="done", seq__gt=after, seq__lte=upto).order_by("seq")
    for entry in entries.iterator(chunk_size=1_000):
        expected.take(entry)


def _newest_entry() -> int:
    return AuditEntry.objects.order_by("-seq").values_list("seq", flat=True).first() or 0


def _people(expected: Authority) -> Iterator[str]:
    for user in User.objects.order_by("pk").prefetch_related("roles").iterator(chunk_size=500):
        held = sorted(role.name for role in user.roles.all())
        audited = sorted(expected.roles.get(user.username, []))
        if held != audited:
            yield f"person {user.username!r} has the roles {_listed(held)}; the audit log gave {_listed(audited)}"
        elif held and user.is_active == (user.username in expected.inactive):
            state = "active" if user.is_active else "deactivated"
            yield f"person {user.username!r} is {state}; the audit log says otherwise"


def _tokens(expected: Authority) -> Iterator[str]:
    for token in Token.objects.order_by("pk").iterator(chunk_size=500):
        role, agent, digest = expected.tokens.get(token.name, ("", "", ""))
        if not role:
            yield f"token {token.name!r} was created by no audit entry"
        elif (token.role, token.agent) != (role, agent):
            held, given = f"role {token.role} for {token.agent!r}", f"{role} for {agent!r}"
            yield f"token {token.name!r} has {held}; the audit log gave {given}"
        elif digest and digest != tokens.state_of(token):
            yield f"token {token.name!r} has a different secret from the one issued"
        elif (token.revoked_at is not None) != (token.name in expected.revoked):
            yield f"token {token.name!r} is {'not ' if token.revoked_at is None else ''}revoked; the audit log differs"


def _grants(expected: Authority) -> Iterator[str]:
    there = {}
    for grant in Grant.objects.select_related("user").order_by("pk").iterator(chunk_size=500):
        place = (grant.user.username, grant.what, grant.target)
        until = there[place] = edit_grants.facts_of(grant)["until"]
        if expected.grants.get(place) != until:
            yield f"the grant of {place[0]!r} ({place[1]} {place[2]}) differs from the audit log"
    now = timezone.now().isoformat()
    for place, until in expected.grants.items():
        if place not in there and (not until or until > now):
            yield f"the grant of {place[0]!r} ({place[1]} {place[2]}) is missing, and no audit entry revoked it"


def _policies(expected: Authority) -> Iterator[str]:
    if expected.whole_policy == UNKNOWN:
        return
    stored = evaluate.stored()
    if expected.whole_policy:
        if edit_policy.digest_of(list(stored.values())) != expected.whole_policy:
            yield "the policies differ from the last audit entry about them"
        return
    states = {edit_policy.target_of(target): edit_policy.state_of(row) for target, row in stored.items()}
    for target in sorted(states.keys() | expected.policies.keys()):
        if states.get(target, "") != expected.policies.get(target, ""):
            yield f"{target} differs from the audit log"


def _rules(expected: Authority) -> Iterator[str]:
    for rule in AutoApprovalRule.objects.order_by("id").iterator(chunk_size=500):
        if rule.id not in expected.rules:
            yield f"auto-approval rule {rule.id} was created by no audit entry"
        elif auto_approval_edit.digest_of(rule) != expected.rules[rule.id]:
            yield f"auto-approval rule {rule.id} has changed since it was created"
        elif (rule.revoked_at is not None) != (rule.id in expected.revoked_rules):
            yield f"the revocation of auto-approval rule {rule.id} differs from the audit log"
        elif rule.uses is not None and rule.used < Approval.objects.filter(rule=rule.id).count():
            yield f"auto-approval rule {rule.id} counts fewer uses than it has approved calls"


def _budgets(expected: Authority) -> Iterator[str]:
    there = {}
    for row in BudgetLimit.objects.order_by("id"):
        there[edit_budgets.target_of(row.scope, row.agent, row.measure)] = f"{row.amount.normalize():f}"
    for target in sorted(there.keys() | expected.budgets.keys()):
        if _number(there.get(target, "")) != _number(expected.budgets.get(target, "")):
            yield f"{target} is {there.get(target, 'gone')}; the audit log says {expected.budgets.get(target, 'none')}"


def _holds(expected: Authority) -> Iterator[str]:
    there = set()
    for hold in LegalHold.objects.select_related("conversation").order_by("pk").iterator(chunk_size=500):
        there.add(number := str(hold.pk))
        if expected.holds.get(number) != (legal_holds.target_of(hold), hold.is_regulated):
            yield f"legal hold {number} differs from the audit log"
        elif (hold.released_at is not None) != (number in expected.released):
            yield f"legal hold {number} is {'not ' if hold.released_at is None else ''}released; the audit log differs"
    for number in expected.holds.keys() - there:
        yield f"legal hold {number} is missing, although holds are never removed"


def _retention(expected: Authority) -> Iterator[str]:
    there = set()
    for rule in RetentionRule.objects.order_by("pk").iterator(chunk_size=500):
        there.add(number := str(rule.pk))
        if expected.retention.get(number) != (rule.days, rule.kind, rule.team, rule.conversation):
            yield f"retention rule {number} differs from the audit log"
        elif (rule.removed_at is not None) != (number in expected.ended_retention):
            state = "in force" if rule.removed_at is None else "removed"
            yield f"retention rule {number} is {state}; the audit log differs"
    for number in expected.retention.keys() - there:
        yield f"retention rule {number} is missing, although its row is never deleted"


def _requests(expected: Authority) -> Iterator[str]:
    there = set()
    for row in RedactionRequest.objects.order_by("pk").iterator(chunk_size=500):
        there.add(number := str(row.pk))
        asked_by, target = expected.requests.get(number, ("", ""))
        decided = (row.decided_by, bool(row.is_confirmed)) if row.decided_at is not None else None
        # what is decided no longer has words of a person
        is_other = row.decided_at is None and RedactionScope.from_json(row.scope).target != target
        if row.requested_by != asked_by or is_other:
            yield f"redaction request {number} differs from the audit log"
        elif decided != expected.decided.get(number):
            yield f"the decision on redaction request {number} differs from the audit log"
    for number in expected.requests.keys() - there:
        yield f"redaction request {number} is missing, although its row is never deleted"


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(text) if text else None
    except ArithmeticError:
        return None


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
