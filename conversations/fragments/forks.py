"""Forks → where a conversation comes from. Called by drawing."""

from typing import NamedTuple

from markupsafe import Markup

from conversations import principals
from conversations.fragments import content, faces, hidden, richtext
from conversations.fragments.faces import Face, Read, Repeat

_FIELDS = content.ENVELOPE | frozenset({"by", "reason", "parent", "forked_at", "title", "handler", "changed"})
_LONGEST = 200  # characters of a conversation's id


class Origin(NamedTuple):
    """What templates/events/conversation_forked.html draws. `parent` is as it is for an address; `name`, its title or
    id, and `hint`, its id, are to be read."""

    parent: str
    name: str
    hint: str
    at: int
    changed: int  # the message there that follows here in other words; 0: none
    reason: Markup | None
    tag: str


def _forked(read: Read, group: str | None, repeat: Repeat) -> Markup:
    body, is_ours = read.body, principals.is_ours(read.event.principal)
    parent = _id(body.get("parent"))
    by = faces.line(body.get("by")) if is_ours else ""
    who = (by if by and read.event.principal == "system" else read.event.principal) if is_ours else None
    reason = faces.line(body.get("reason"))
    origin = Origin(
        parent,
        hidden.spell(faces.line(body.get("title"))[:200] or parent),
        hidden.spell(parent),
        _seq(body.get("forked_at")),
        _seq(body.get("changed")),
        richtext.inline(reason[:1000]) if reason else None,
        "" if is_ours else "claim",
    )
    face = faces.row(read, "chat", sender=who, principal=who)
    return faces.render("conversation_forked", face, origin, content.more(body, _FIELDS))


def _id(value: object) -> str:
    return value if isinstance(value, str) and 1 <= len(value) <= _LONGEST else ""


def _seq(value: object) -> int:
    return value if type(value) is int and 0 < value < 1 << 53 else 0


FACES: dict[str, Face] = {"conversation.forked": _forked}
