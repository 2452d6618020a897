"""Permissions beyond a person's roles (§3.7): speak as another, replay calls with side effects. Checked by actions.

An admin gives and revokes grants (`accounts.edit_grants`). A grant counts for a person whose role has the underlying
permission, until it expires; what an action reads inside its transaction decides.
"""

from typing import NamedTuple

from conversations.access import permissions
from conversations.access.permissions import Who
from conversations.core.errors import NotAllowed
from conversations.core.principals import Principal
from conversations.models import Grant, User

ALL = "*"
SPEAK_AS, REPLAY = "speak_as", "replay"


class GrantKind(NamedTuple):
    """A kind of grant: the permission that makes it unnecessary, the permission that it requires, and its words."""

    freely: str
    base: str
    words: str


KINDS = {
    SPEAK_AS: GrantKind("speak", "send", "speak as"),
    REPLAY: GrantKind("replay_unsafe", "replay", "replay calls of"),
}


def granted_targets(by: Who, what: str) -> frozenset[str]:
    """Return the targets to which `by` may do `what` now; `*` among them means all."""
    kind = KINDS[what]
    if permissions.has_permission(by, kind.freely):
        return frozenset({ALL})
    if not permissions.has_permission(by, kind.base) or not (name := _person(by)):
        return frozenset()
    grants = Grant.objects.live().filter(user__username=name, what=what)
    return frozenset(grants.values_list("target", flat=True))


def require(by: Who, what: str, target: str) -> None:
    """Raise NotAllowed, which says what is missing and who can grant it, unless `by` may do `what` to `target`."""
    if granted_targets(by, what).isdisjoint({ALL, target}):
        kind, who = KINDS[what], permissions.principal_of(by)
        permissions.require(by, kind.base)
        way = "an admin can grant it on the People page" if _person(by) else "only people can have one"
        raise NotAllowed(f"{who} may not {kind.words} {target}: this requires a grant; {way}")


def _person(by: Who) -> str:
    match by:
        case User():
            return by.username
        case Principal(kind="user"):
            return by.name
    return ""
