"""Draw where a fork comes from, and where a moved conversation continues. Called by `event_renderer`."""

from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.events.payload import MAX_KEY
from conversations.rendering import event_rows, message_body
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
    parent, changed = _id(body.get("parent")), _seq(body.get("changed"))
    title = event_rows.line(body.get("title"))[:200]  # its parent's, unless `changed` gave it
    who = event_rows.doer(read) if is_ours else None
    origin = Origin(
        parent,
        "its original" if changed else hidden_characters.spelled_out(title or parent),
        hidden_characters.spelled_out(parent),
        _seq(body.get("forked_at")),
        changed,
        event_rows.drawn_field(read, "reason"),
        "" if is_ours else event_rows.CLAIM,
    )
    fields = event_rows.row(read, sender=who, principal=who)
    return event_rows.render("conversation_forked", fields, origin, message_body.more(body, _FIELDS))


@view
def conversation_moved(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw where a conversation moved to."""
    place, why = _id(read.body.get("to")), event_rows.drawn_field(read, "reason")
    tag = "" if principals.is_ours(read.event.principal) else event_rows.CLAIM
    shown = hidden_characters.spelled_out(place)
    extra = message_body.more(read.body, _MOVED_FIELDS)
    return event_rows.render("conversation_moved", event_rows.row(read), place, shown, tag, why, extra)


def _id(value: object) -> str:
    return value if isinstance(value, str) and 1 <= len(value) <= MAX_KEY else ""


def _seq(value: object) -> int:
    return value if type(value) is int and 0 < value < 1 << 53 else 0
