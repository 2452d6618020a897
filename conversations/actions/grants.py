"""Grants given and taken by an admin. Called by the People page."""

from datetime import datetime

from django.utils import timezone

from conversations import audit, envelopes
from conversations.actions.acting import acting
from conversations.envelopes import MAX_KEY
from conversations.errors import Conflict, Invalid, NotFound
from conversations.grants import ALL, KINDS, SPEAK_AS
from conversations.models import Grant, User
from conversations.rights import Who

MAX_TOOL = 401  # characters: a namespace, a dot, a name


def give_grant(by: Who, name: str, what: str, target: str, *, until: datetime | None = None, reason: str = "") -> Grant:
    """Let a person do `what` to `target`, until a time or until it is taken. One whose time is up is given anew.

    `target` is `agent:NAME` or `system` to speak as, a tool's qualified name to replay, `*` for all of them. Raises
    `Invalid` with the field, `NotFound`, and `Conflict` when the person has it already.
    """
    target, now = _fit(what, target), timezone.now()
    if until is not None and until <= now:
        raise Invalid("expected a time to come", field="until")
    with acting(by, "give_grant", f"user:{name}", right="people") as principal:
        user = User.objects.select_for_update().filter(username=name).first()
        if user is None:
            raise NotFound(f"nobody is called {name}", field="name")
        Grant.objects.filter(user=user, what=what, target=target, until__lte=now).delete()
        told = {"granted_by": str(principal), "granted_at": now, "until": until}
        grant, is_new = Grant.objects.get_or_create(user=user, what=what, target=target, defaults=told)
        if not is_new:
            raise Conflict(f"{grant.granted_by} was first: {name} may {_words(what, target)} already", field="target")
        facts = _facts(grant)
        audit.enter(
            principal, "give_grant", f"user:{name}", reason=reason, after=audit.digest(facts), correlation=facts
        )
    return grant


def take_grant(by: Who, name: str, what: str, target: str, *, reason: str = "") -> None:
    """Take a grant away at once: an action under way that has not committed yet is refused. Raises `Conflict` when it
    is not there any more."""
    with acting(by, "take_grant", f"user:{name}", right="people") as principal:
        grant = Grant.objects.select_for_update().filter(user__username=name, what=what, target=target).first()
        if grant is None:
            entry = audit.last("take_grant", f"user:{name}")
            who = f"{entry.principal} was first: " if entry else ""
            raise Conflict(f"{who}{name} has no such grant any more")
        facts = _facts(grant)
        grant.delete()
        audit.enter(
            principal, "take_grant", f"user:{name}", reason=reason, before=audit.digest(facts), correlation=facts
        )


def _fit(what: str, target: str) -> str:
    """Answer the target as it is stored. `agent:` and a name without it are the same agent."""
    if what not in KINDS:
        raise Invalid(f"no such grant: {what}; there are {', '.join(KINDS)}", field="what")
    target = target.strip()
    if not target or envelopes.fit(target) != target:
        raise Invalid("expected a name, or * for all", field="target")
    if what != SPEAK_AS or target in (ALL, "system"):
        limit = MAX_TOOL
    else:
        target, limit = f"agent:{target.removeprefix('agent:').strip()}", MAX_KEY
    if target == "agent:":
        raise Invalid("expected agent:NAME, system, or * for all", field="target")
    if len(target) > limit:
        raise Invalid(f"expected at most {limit} characters", field="target")
    return target


def _words(what: str, target: str) -> str:
    return f"{KINDS[what].words} {'all' if target == ALL else target}"


def _facts(grant: Grant) -> dict[str, str]:
    until = grant.until.isoformat() if grant.until else ""
    return {"what": grant.what, "target": grant.target, "until": until}
