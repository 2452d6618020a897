"""Who was let do what beyond their roles (design 3.7): speak as another, replay what is not only read. Actions ask.

An admin gives and takes grants (`actions.grants`). A grant counts for a person who has the role that the plain verb
takes, until its time is up, and as the database has it now: what an action reads inside its transaction is what counts.
"""

from typing import NamedTuple

from conversations import rights
from conversations.errors import NotAllowed
from conversations.models import Grant, User
from conversations.principals import Principal
from conversations.rights import Who

ALL = "*"
SPEAK_AS, REPLAY = "speak_as", "replay"


class Kind(NamedTuple):
    """What a grant is about: the right that needs none, the right without which it counts for nothing, and words."""

    freely: str
    base: str
    words: str


KINDS = {
    SPEAK_AS: Kind("speak", "send", "speak as"),
    REPLAY: Kind("replay_unsafe", "replay", "replay calls of"),
}


def held(by: Who, what: str) -> frozenset[str]:
    """Answer the targets that `by` may do `what` to now; `*` among them means all."""
    kind = KINDS[what]
    if rights.may(by, kind.freely):
        return frozenset({ALL})
    if not rights.may(by, kind.base) or not (name := _person(by)):
        return frozenset()
    given = Grant.objects.live().filter(user__username=name, what=what)
    return frozenset(given.values_list("target", flat=True))


def require(by: Who, what: str, target: str) -> None:
    """Raise `NotAllowed`, which names what is missing and who can give it, unless `by` may do `what` to `target`."""
    if held(by, what).isdisjoint({ALL, target}):
        kind, who = KINDS[what], rights.principal_of(by)
        rights.require(by, kind.base)
        way = "an admin can give one on the People page" if _person(by) else "only people can be given one"
        raise NotAllowed(f"{who} may not {kind.words} {target}: that takes a grant, and {way}")


def _person(by: Who) -> str:
    match by:
        case User():
            return by.username
        case Principal(kind="user"):
            return by.name
    return ""
