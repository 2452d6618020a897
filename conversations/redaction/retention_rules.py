"""Rules of what is kept for how long, set and removed by an admin. The retention job (`retention_job`) goes by them;
which events match a rule, and which are held back, is in `expiry`.

Where two admins have to agree to a redaction, `requests.submit_rule` has a rule wait for the second.
"""

import time
from typing import NamedTuple

from django.db.models.query import QuerySet

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.events.payload import clean_text
from conversations.models import RetentionRule
from conversations.redaction import expiry, legal_holds, retention_clock

MAX_RULES = 200
MAX_DAYS = 36_500
DAY_US = 86_400_000_000
MAX_LENGTHS = {"kind": 100, "team": 200, "conversation": 200}
TARGET = "record"  # of audit entries, until a rule has a number


class RetentionTerms(NamedTuple):
    """How many days what is kept; empty: of any type, team or conversation."""

    days: int
    kind: str = ""
    team: str = ""
    conversation: str = ""


def rules() -> QuerySet[RetentionRule]:
    """Return those in force, oldest first."""
    return RetentionRule.objects.filter(removed_at=None).order_by("id")


def set_rule(
    by: Who, *, days: int, reason: str, kind: str = "", team: str = "", conversation: str = ""
) -> RetentionRule:
    """Set one. Raises Invalid with the field, Conflict for one that is there."""
    reason = legal_holds.checked_reason(reason)
    terms = checked(RetentionTerms(days, kind, team, conversation))
    with audited_action(by, "set_retention", TARGET, right="redact") as principal:
        require_free(terms)
        fields = terms._asdict()
        made = RetentionRule.objects.create(
            reason=reason, made_by=str(principal), made_at=time.time_ns() // 1000, **fields
        )
        facts = {"rule": made.pk, **{name: value for name, value in fields.items() if value}}
        chain.add_entry(principal, "set_retention", f"retention:{made.pk}", reason=reason, correlation=facts)
    return made


def set_rule_once(by: Who, terms: RetentionTerms, reason: str) -> None:
    """Set one like `set_rule`, unless the same one is in force."""
    if not rules().filter(**terms._asdict()).exists():
        set_rule(by, reason=reason, **terms._asdict())


def checked(terms: RetentionTerms) -> RetentionTerms:
    """Return the terms without surrounding blanks. Raises Invalid with the field."""
    texts = {name: str(getattr(terms, name)).strip() for name in MAX_LENGTHS}
    for name, value in texts.items():
        if len(value) > MAX_LENGTHS[name] or clean_text(value) != value:
            raise Invalid(f"must be at most {MAX_LENGTHS[name]} characters", field=name)
    if not 1 <= terms.days <= MAX_DAYS:
        raise Invalid(f"must be 1 to {MAX_DAYS:,}", field="days")
    return RetentionTerms(terms.days, **texts)


def require_free(terms: RetentionTerms) -> None:
    """Raise Conflict if there is a rule for the same events, or too many rules."""
    if rules().filter(kind=terms.kind, team=terms.team, conversation=terms.conversation).exists():
        raise Conflict("there is already a rule for the same events: remove it first", code="rule_exists")
    if rules().count() >= MAX_RULES:
        raise Conflict(f"there are already {MAX_RULES} rules: remove one first", code="too_many")


def name_of(terms: RetentionTerms) -> str:
    """Return what a rule says, in words."""
    days = "1 day" if terms.days == 1 else f"{terms.days:,} days"
    of_team = f"conversations of team {terms.team}" if terms.team else ""
    what = ", ".join(filter(None, (terms.kind and f"{terms.kind} events", of_team, terms.conversation)))
    return f"a retention rule of {days} for {what or 'all events'}"


def remove_rule(by: Who, number: int, reason: str = "") -> None:
    """Remove one; what it has redacted stays redacted. Raises NotFound."""
    target = f"retention:{number}"
    with audited_action(by, "remove_retention", target, right="redact") as principal:
        if not rules().filter(pk=number).update(removed_at=time.time_ns() // 1000):
            raise NotFound("this rule no longer exists")
        chain.add_entry(principal, "remove_retention", target, reason=reason)


def selector(rule: RetentionRule | RetentionTerms) -> expiry.RetentionScope:
    """Return what a rule takes now."""
    older_than = retention_clock.machine_time() - rule.days * DAY_US
    return expiry.RetentionScope(older_than, [rule.kind] if rule.kind else [], rule.conversation, rule.team)
