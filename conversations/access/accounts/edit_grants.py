"""Grants, given and revoked by an admin. Called by the People page."""

from datetime import datetime

from django.utils import timezone

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.grants import ALL, KINDS, SPEAK_AS
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.events import payload
from conversations.events.payload import MAX_KEY
from conversations.models import Grant, User

MAX_TOOL = 401  # characters: a namespace, a dot, a name


def give_grant(by: Who, name: str, what: str, target: str, *, until: datetime | None = None, reason: str = "") -> Grant:
    """Allow a person to do `what` to `target`, until a time or until revoked. An expired grant can be given again.

    `target` is `agent:NAME` or `system` to speak as, a tool's qualified name to replay, `*` for all of them. Raises
    Invalid with the field, NotFound, and Conflict if the person already has it.
    """
    person, target, now = f"user:{name}", _fit(what, target), timezone.now()
    if until is not None and until <= now:
        raise Invalid("must be in the future", field="until")
    with audited_action(by, "give_grant", person, right="people") as principal:
        user = User.objects.select_for_update().filter(username=name).first()
        if user is None:
            raise NotFound(f"there is no person {name}", field="name")
        Grant.objects.filter(user=user, what=what, target=target, until__lte=now).delete()
        defaults = {"granted_by": str(principal), "granted_at": now, "until": until}
        grant, is_new = Grant.objects.get_or_create(user=user, what=what, target=target, defaults=defaults)
        if not is_new:
            raise Conflict(
                f"this grant already exists: {name} may {_title(what, target)}, granted by {grant.granted_by}",
                field="target",
            )
        facts = facts_of(grant)
        chain.add_entry(principal, "give_grant", person, reason=reason, after=chain.digest(facts), correlation=facts)
    return grant


def take_grant(by: Who, name: str, what: str, target: str, *, reason: str = "") -> None:
    """Revoke a grant at once: actions that have not committed yet are refused. Raises Conflict if it no longer
    exists."""
    person = f"user:{name}"
    with audited_action(by, "take_grant", person, right="people") as principal:
        grant = Grant.objects.select_for_update().filter(user__username=name, what=what, target=target).first()
        if grant is None:
            entry = chain.last("take_grant", person)
            who = f", by {entry.principal}" if entry else ""
            raise Conflict(f"this grant of {name} is already revoked{who}")
        facts = facts_of(grant)
        grant.delete()
        chain.add_entry(principal, "take_grant", person, reason=reason, before=chain.digest(facts), correlation=facts)


def _fit(what: str, target: str) -> str:
    """Return the target as it is stored. An agent's name with or without `agent:` is the same agent."""
    if what not in KINDS:
        raise Invalid(f"must be one of {', '.join(KINDS)}; got {what[:40]!r}", field="what")
    target = target.strip()
    if not target or payload.clean_text(target) != target:
        raise Invalid("must be a name, or * for all", field="target")
    if what != SPEAK_AS or target in (ALL, "system"):
        limit = MAX_TOOL
    else:
        target, limit = f"agent:{target.removeprefix('agent:').strip()}", MAX_KEY
    if target == "agent:":
        raise Invalid("must be agent:NAME, system, or * for all", field="target")
    if len(target) > limit:
        raise Invalid(f"must be at most {limit} characters", field="target")
    return target


def _title(what: str, target: str) -> str:
    return f"{KINDS[what].words} {'all' if target == ALL else target}"


def facts_of(grant: Grant) -> dict[str, str]:
    """Return a grant's facts for an audit entry."""
    until = grant.until.isoformat() if grant.until else ""
    return {"what": grant.what, "target": grant.target, "until": until}
