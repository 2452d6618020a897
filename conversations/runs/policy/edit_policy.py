"""Edit the operators' policy: set and remove rules, load a whole policy. Called by the page, the API and `manage.py
policy`."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.principals import Principal
from conversations.models import Policy
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import MAX_RULES, PolicyRule, Target
from conversations.runs.policy.file_format import describe_target

WHOLE = "policies"  # the target of what is done to all of them


class Loaded(NamedTuple):
    """The numbers of rules that a load changed."""

    added: int
    changed: int
    removed: int
    unchanged: int


def set_policy(
    by: Who, row: PolicyRule, *, expected: str | None = None, replaces: Target | None = None, reason: str = ""
) -> None:
    """Set the rule for one agent or all and one tool or all.

    `replaces` names the edited rule if its agent or tool has changed. `expected` is the rule's `state_of` when it was
    displayed (empty: it did not exist). Raises `Conflict` if it has changed since.
    """
    target = target_of(row.target)
    with audited_action(by, "set_policy", target, right="policies") as principal:
        rows = evaluate.stored()
        edited = rows.get(replaces or row.target)
        _expect(edited, expected, row)
        if replaces is not None and replaces != row.target:
            if row.target in rows:
                raise Conflict(f"there is already a rule for {describe_target(row)}", field="tool")
            Policy.objects.filter(agent=replaces[0], tool=replaces[1]).delete()
        if row.target not in rows and len(rows) >= MAX_RULES:
            raise Invalid(f"there are already {MAX_RULES:,} rules; remove one first")
        _write(principal, row)
        was = f"{target_of(replaces)} " if replaces is not None and replaces != row.target else ""
        details = {"was": was.strip(), **{name: str(value) for name, value in row.as_dict().items() if name != "note"}}
        _add_audit_entry(
            principal, "set_policy", target, edited, row, reason, {name: text for name, text in details.items() if text}
        )


def remove_policy(by: Who, target: Target, *, expected: str | None = None, reason: str = "") -> None:
    """Remove a rule. Raises `NotFound`, and `Conflict` if it has changed since `expected`."""
    with audited_action(by, "remove_policy", target_of(target), right="policies") as principal:
        rule = evaluate.stored().get(target)
        if rule is None:
            raise NotFound("this rule no longer exists")
        _expect(rule, expected, rule)
        Policy.objects.filter(agent=target[0], tool=target[1]).delete()
        _add_audit_entry(principal, "remove_policy", target_of(target), rule, None, reason)


def load_policies(by: Who, rows: Sequence[PolicyRule], *, reason: str = "") -> Loaded:
    """Replace the whole policy with these rows."""
    with audited_action(by, "load_policies", WHOLE, right="policies") as principal:
        if len(rows) > MAX_RULES:
            raise Invalid(f"must have at most {MAX_RULES:,} rules; got {len(rows):,}")
        before = evaluate.stored()
        after = {row.target: row for row in rows}
        changed = [
            row for target, row in after.items() if target in before and _audit_row(before[target]) != _audit_row(row)
        ]
        added = [row for target, row in after.items() if target not in before]
        gone = [target for target in before if target not in after]
        for agent, tool in gone:
            Policy.objects.filter(agent=agent, tool=tool).delete()
        for row in (*changed, *added):
            _write(principal, row)
        loaded = Loaded(len(added), len(changed), len(gone), len(after) - len(added) - len(changed))
        digests = (digest_of(list(before.values())), digest_of(list(after.values())))
        chain.add_entry(
            principal, "load_policies", WHOLE, reason=reason, before=digests[0], after=digests[1],
            correlation=loaded._asdict(),
        )  # fmt: skip
        transaction.on_commit(evaluate.forget)
    return loaded


def state_of(row: PolicyRule | None) -> str:
    """Return a digest of a rule, by which a page detects whether it has changed since it was displayed."""
    return chain.digest(_audit_row(row)) if row else ""


def digest_of(rows: Sequence[PolicyRule]) -> str:
    """Return the digest of a whole policy."""
    return chain.digest([_audit_row(row) for row in sorted(rows)])


def _audit_row(row: PolicyRule) -> list[str]:
    return [row.agent, row.tool, row.rule, row.effect, row.note, *map(str, row[6:])]


def _expect(current: PolicyRule | None, expected: str | None, row: PolicyRule) -> None:
    if expected is not None and expected != state_of(current):
        who = f"{current.updated_by} has changed it" if current else "it was removed"
        raise Conflict(f"the rule for {describe_target(row)} has changed: {who}; reload and check it")


def _write(principal: Principal, row: PolicyRule) -> None:
    fields = row._asdict()
    Policy.objects.update_or_create(
        agent=fields.pop("agent"), tool=fields.pop("tool"),
        defaults={**fields, "updated_by": str(principal), "updated_at": timezone.now()},
    )  # fmt: skip


def _add_audit_entry(
    principal: Principal, verb: str, target: str, before: PolicyRule | None, after: PolicyRule | None, reason: str,
    correlation: dict[str, str] | None = None,
) -> None:  # fmt: skip
    whole = {"policies": digest_of(list(evaluate.stored().values()))}
    chain.add_entry(
        principal, verb, target, before=state_of(before), after=state_of(after), reason=reason,
        correlation={**(correlation or {}), **whole},
    )  # fmt: skip
    transaction.on_commit(evaluate.forget)


def target_of(target: Target) -> str:
    """Return the name of a rule in the audit log."""
    agent, tool = target
    return f"policy:{agent or '*'}/{tool or '*'}"
