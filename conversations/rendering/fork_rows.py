"""Draw where a fork comes from, and where a moved conversation continues. Called by `event_renderer`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.events.payload import MAX_KEY
from conversations.rendering import event_rows, message_body, richtext
from conversations.rendering.event_rows import ParsedEvent, Repeat, view

_FIELDS = message_body.ENVELOPE | frozenset({"by", "reason", "parent", "forked_at", "title", "handler", "changed"})
_MOVED_FIELDS = message_body.ENVELOPE | frozenset({"to", "reason"})


class Origin(NamedTuple):
    """The context of templates/events/conversation_forked.html. `parent` is the id for an address; `name` (title or id)
    and `hint` (id) are for display."""

    parent: str
    name: str
    hint: str
    at: int
    changed: int  # the message there that follows here in other words; 0: none
    reason: Markup | None
    tag: str


@view
def conversation_forked(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw where a fork comes from."""
    body, is_ours = read.body, principals.is_ours(read.event.principal)
    parent = _id(body.get("parent"))
    who = event_rows.doer(read) if is_ours else None
    reason = event_rows.line(body.get("reason"))
    origin = Origin(
        parent,
        "its original" if _seq(body.get("changed")) else hidden_characters.spelled_out(_title(body) or parent),
        hidden_characters.spelled_out(parent),
        _seq(body.get("forked_at")),
        _seq(body.get("changed")),
        richtext.inline(reason[:1000]) if reason else None,
        "" if is_ours else event_rows.CLAIM,
    )
    fields = event_rows.row(read, sender=who, principal=who)
    return event_rows.render("conversation_forked", fields, origin, message_body.more(body, _FIELDS))


@view
def conversation_moved(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw where a conversation moved to."""
    place, reason = _id(read.body.get("to")), event_rows.line(read.body.get("reason"))
    tag = "" if principals.is_ours(read.event.principal) else event_rows.CLAIM
    shown = hidden_characters.spelled_out(place)
    why = richtext.inline(reason[:1000]) if reason else None
    fields = event_rows.row(read, sender=None, principal=None)
    extra = message_body.more(read.body, _MOVED_FIELDS)
    return event_rows.render("conversation_moved", fields, place, shown, tag, why, extra)


def _title(body: Mapping[str, Any]) -> str:
    """Return the fork's title, which is its parent's too, unless a message was edited whose text may be the title."""
    return event_rows.line(body.get("title"))[:200]


def _id(value: object) -> str:
    return value if isinstance(value, str) and 1 <= len(value) <= MAX_KEY else ""


def _seq(value: object) -> int:
    return value if type(value) is int and 0 < value < 1 << 53 else 0
