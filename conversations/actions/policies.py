"""The operators' policy: rules set, removed, loaded as a whole. Called by the page, the API and `manage.py policy`."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from conversations import audit, policy
from conversations.actions.acting import acting
from conversations.errors import Conflict, Invalid, NotFound
from conversations.models import Policy
from conversations.policy import MOST, Row, Target
from conversations.policy_form import whom
from conversations.principals import Principal
from conversations.rights import Who

WHOLE = "policies"  # the target of what is done to all of them


class Loaded(NamedTuple):
    """What a load changed, in rules."""

    added: int
    changed: int
    removed: int
    unchanged: int


def set_policy(
    by: Who, row: Row, *, expected: str | None = None, replaces: Target | None = None, reason: str = ""
) -> None:
    """Set the rule for one agent or all and one tool or all.

    `replaces` names the rule that was edited, when it was about something else. `expected` is the `state_of` the rule
    had when it was drawn (empty: there was none). Raises `Conflict` when it has another one now.
    """
    target = _target(row.target)
    with acting(by, "set_policy", target, right="policies") as principal:
        rows = policy.stored()
        edited = rows.get(replaces or row.target)
        _expect(edited, expected, row)
        if replaces is not None and replaces != row.target:
            if row.target in rows:
                raise Conflict(f"there is a rule for {whom(row)} already", field="tool")
            Policy.objects.filter(agent=replaces[0], tool=replaces[1]).delete()
        if row.target not in rows and len(rows) >= MOST:
            raise Invalid(f"there are {MOST:,} rules already; remove one first")
        _write(principal, row)
        was = f"{_target(replaces)} " if replaces is not None and replaces != row.target else ""
        told = {"was": was.strip(), **{name: str(value) for name, value in row.said().items() if name != "note"}}
        _enter(
            principal, "set_policy", target, edited, row, reason, {name: text for name, text in told.items() if text}
        )


def remove_policy(by: Who, target: Target, *, expected: str | None = None, reason: str = "") -> None:
    """Remove a rule. Raises `NotFound`, and `Conflict` when it was changed since `expected`."""
    with acting(by, "remove_policy", _target(target), right="policies") as principal:
        found = policy.stored().get(target)
        if found is None:
            raise NotFound("there is no such rule any more")
        _expect(found, expected, found)
        Policy.objects.filter(agent=target[0], tool=target[1]).delete()
        _enter(principal, "remove_policy", _target(target), found, None, reason)


def load_policies(by: Who, rows: Sequence[Row], *, reason: str = "") -> Loaded:
    """Make these rows the whole policy: what is not among them goes."""
    with acting(by, "load_policies", WHOLE, right="policies") as principal:
        if len(rows) > MOST:
            raise Invalid(f"{len(rows):,} rules; expected {MOST:,} at most")
        before = policy.stored()
        after = {row.target: row for row in rows}
        changed = [row for target, row in after.items() if target in before and _told(before[target]) != _told(row)]
        added = [row for target, row in after.items() if target not in before]
        gone = [target for target in before if target not in after]
        for agent, tool in gone:
            Policy.objects.filter(agent=agent, tool=tool).delete()
        for row in (*changed, *added):
            _write(principal, row)
        loaded = Loaded(len(added), len(changed), len(gone), len(after) - len(added) - len(changed))
        digests = (digest_of(list(before.values())), digest_of(list(after.values())))
        audit.enter(
            principal, "load_policies", WHOLE, reason=reason, before=digests[0], after=digests[1],
            correlation=loaded._asdict(),
        )  # fmt: skip
        transaction.on_commit(policy.forget)
    return loaded


def state_of(row: Row | None) -> str:
    """Answer a digest of what a rule says, by which a page tells whether it was changed since it was drawn."""
    return audit.digest(_told(row)) if row else ""


def digest_of(rows: Sequence[Row]) -> str:
    """Answer the digest of a whole policy."""
    return audit.digest([_told(row) for row in sorted(rows)])


def _told(row: Row) -> list[str]:
    return [row.agent, row.tool, row.rule, row.effect, row.note, *map(str, row[6:])]


def _expect(found: Row | None, expected: str | None, row: Row) -> None:
    if expected is not None and expected != state_of(found):
        who = f"{found.updated_by} has changed it" if found else "it was removed"
        raise Conflict(f"the rule for {whom(row)} is another one now: {who}; look at it again")


def _write(principal: Principal, row: Row) -> None:
    told = row._asdict()
    Policy.objects.update_or_create(
        agent=told.pop("agent"), tool=told.pop("tool"),
        defaults={**told, "updated_by": str(principal), "updated_at": timezone.now()},
    )  # fmt: skip


def _enter(
    principal: Principal, verb: str, target: str, before: Row | None, after: Row | None, reason: str,
    correlation: dict[str, str] | None = None,
) -> None:  # fmt: skip
    audit.enter(
        principal, verb, target, before=state_of(before), after=state_of(after), reason=reason, correlation=correlation
    )
    transaction.on_commit(policy.forget)


def _target(target: Target) -> str:
    agent, tool = target
    return f"policy:{agent or '*'}/{tool or '*'}"
