"""Draw one event of each type as one row of HTML. Called by `event_renderer`; the markup is in the template of
templates/events/ that the type or its view names."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters, principals
from conversations.core.errors import SwitchboardError
from conversations.core.html_escape import safe
from conversations.events import payload, registry
from conversations.events.event_type import EventType, Level, Row
from conversations.events.log.records import Cut, Stored
from conversations.events.payload import ParsedPayload
from conversations.rendering import json_tree, message_body, richtext, timestamps
from conversations.rendering.jinja_environment import macro
from conversations.rendering.participant_marks import ParticipantMark, behind, mark_for
from conversations.rendering.timestamps import RowTimes

Body = Mapping[str, Any]  # a decoded payload: any JSON
Repeat = Literal["", "named", "same"]  # whether an envelope says an output once more, and how we know


CLAIM = "from outside"  # the tag of a claim
EVERYBODY = "everyone"
ALWAYS_VISIBLE = ("waiting", "unknown", "failed")  # states that are seen at any detail


RowRenderer = Callable[["ParsedEvent", str | None, Repeat], Markup]
VIEWS: dict[str, RowRenderer] = {}  # by the names that event types give them


def view(renderer: RowRenderer) -> RowRenderer:
    """Register a function as a view that event types can name for their rows."""
    VIEWS[renderer.__name__] = renderer
    return renderer


class RowFields(NamedTuple):
    """What every row shows, whatever its type."""

    seq: int
    kind: str
    level: str  # chat, steps or all: the least detail at which it is seen
    state: str
    group: str | None
    voice: "SpeakerLabel"
    times: RowTimes
    within: str  # the group of the call that started the run it is of; empty for a run of its own
    is_redacted: bool
    is_claim: bool = False  # reported by somebody who may not say it: it has no effect


class SpeakerLabel(NamedTuple):
    """The sender, the recipient and their principal, drawn once, since a conversation has few such pairs."""

    key: str  # of the sender, fit for an attribute
    hue: int | None
    by: str
    mark: Markup
    name: Markup
    to: Markup
    principal: Markup
    is_badged: bool  # the principal has to be seen wherever the event is
    head: Markup  # name, recipient and principal in a row


class EditedText(NamedTuple):
    """The text of a message before a fork edited it, for templates/events/message.html."""

    parent: str
    seq: int
    was: Markup
    by: str


class ParsedEvent(NamedTuple):
    """An event with its parsed body."""

    event: Stored
    payload: ParsedPayload
    body: Body


def parse_event(event: Stored) -> ParsedEvent:
    """Parse a stored body; one that cannot be parsed (it cannot have come through an endpoint) counts as unknown
    fields."""
    try:
        parsed = payload.parse(event.body.encode("utf-8", "replace"))
        body = payload.decoded(event.body.encode("utf-8", "replace"))
    except (SwitchboardError, ValueError, RecursionError):
        parsed, body = ParsedPayload(), {}
    return ParsedEvent(event, parsed, body)


def row(
    read: ParsedEvent,
    level: str = "",
    *,
    state: str = "",
    group: str | None = None,
    sender: str | None = None,
    principal: str | None = None,
) -> RowFields:
    """Return what every row shows; without `level` that of its type. `sender` and `principal` replace the event's
    own."""
    event, parsed, body = read
    within = parent_group(event)
    level = level or level_of(event.kind)
    if within and level == "chat" and state not in ALWAYS_VISIBLE:
        level = "steps"  # talk inside a call is a part of that call
    name = parsed.speaker if sender is None else sender
    recipient = EVERYBODY if is_to_all(read) else parsed.recipient or ""
    metadata = body.get("metadata")
    is_demo = (body.get("demo") is True and event.kind != "model.turn") or (
        isinstance(metadata, dict) and metadata.get("demo") is True
    )
    return RowFields(
        seq=event.seq,
        kind=hidden_characters.spelled_out(event.kind),
        level=level,
        state=state,
        group=group,
        voice=voice(name, recipient, principal or event.principal, is_demo),
        times=timestamps.of_event(event.at, event.principal, body),
        within=within,
        is_redacted=is_redacted(read),
    )


def level_of(kind: str) -> Level:
    """Return the lowest level of detail at which events of this type are shown."""
    return event_type.level if (event_type := registry.find(kind)) else "all"


def state_of(kind: str) -> str:
    """Return the state in which events of this type are drawn."""
    return event_type.state if (event_type := registry.find(kind)) else ""


def doer(read: ParsedEvent) -> str:
    """Return who did what an event of ours says, by the rule by which its fold tells it."""
    return principals.doer(read.event.principal, line(read.body.get("by")))


def author(read: ParsedEvent) -> str:
    """Return the author of an event: whom the payload names, or who did it if its type says so and it is ours."""
    event_type = registry.find(read.event.kind)
    by_type = event_type.author_of(read.event.principal, line(read.body.get("by"))) if event_type else ""
    return by_type or read.payload.speaker or default_speaker(read.event.kind)


def is_claim(read: ParsedEvent) -> bool:
    """Return whether an event comes from someone who may not say it, so it has no effect."""
    event_type = registry.find(read.event.kind)
    return event_type is not None and not event_type.may_be_said_by(read.event.principal)


def is_redacted(read: ParsedEvent) -> bool:
    """Return whether a tombstone stands in place of what an event said."""
    return read.body.get("redacted") is True


def default_speaker(kind: str) -> str:
    """Return the author shown for events of this type whose payload names none."""
    return event_type.speaker if (event_type := registry.find(kind)) else ""


def row_of(kind: str) -> Row:
    """Return how rows of this type are drawn."""
    return event_type.row if (event_type := registry.find(kind)) else Row()


def parent_group(event: Stored) -> str:
    """Return the block of the call that an event of ours is inside; empty for none. A claim is inside none (law I)."""
    if event.run is None or '"parent_call"' not in event.body:
        return ""
    parent = parse_event(event).body.get("parent_call")
    return f"call:{hidden_characters.spelled_out(parent)[:64]}" if isinstance(parent, str) and parent else ""


def voice(sender: str, recipient: str, principal: str, is_demo: bool) -> SpeakerLabel:
    """Draw a sender, a recipient and their principal."""
    to, mark = mark_for(recipient) if recipient else None, mark_for(sender, principal)
    return drawn_voice(mark, to, principal, sender, is_demo)


@lru_cache(maxsize=2048)
def drawn_voice(
    mark: ParticipantMark, recipient: ParticipantMark | None, principal: str, sender: str, is_demo: bool
) -> SpeakerLabel:
    """Draw a sender and a recipient, given their marks."""
    beyond = behind(principal, sender)
    name, principal_html = named(mark), macro("macros/principal.html", "principal")(beyond, is_demo)
    to = macro("macros/mark.html", "to")(recipient) if recipient else safe("")
    return SpeakerLabel(
        key=mark.key,
        hue=mark.hue,
        by=beyond.by,
        mark=macro("macros/mark.html", "symbol")(mark),
        name=name,
        to=to,
        principal=principal_html,
        is_badged=bool(beyond.by or beyond.unverified or is_demo),
        head=name + principal_html + to if beyond.by else name + to + principal_html,
    )


def is_to_all(read: "ParsedEvent") -> bool:
    """Return whether an event was sent to everyone: to the topic of its conversation, or of that it was copied from."""
    return read.payload.recipient in (f"chat:{read.event.conversation}", f"chat:{read.payload.conversation_id}")


def is_copy(read: "ParsedEvent") -> bool:
    """Return whether an event of ours was copied from the conversation that its body names: actions on it belong
    there."""
    there = read.payload.conversation_id
    return read.event.run is not None and there is not None and there != read.event.conversation


def named(mark: ParticipantMark) -> Markup:
    """Draw a name in its hue."""
    return macro("macros/mark.html", "name")(mark)


def draw(event: Stored, group: str | None, repeat: Repeat) -> Markup:
    """Draw any event but a token and a tool step; one that cannot be parsed, or whose type is unknown, as raw
    fields."""
    parsed, event_type = parse_event(event), registry.find(event.kind)
    if event_type is None or not parsed.body:
        return unknown(parsed, group, repeat)
    if view_name := event_type.row.view:
        return VIEWS[view_name](parsed, group, repeat)
    return _draw_by_template(parsed, event_type)


def draw_failed(event: Stored) -> Markup:
    """Draw an event that nothing else could draw: its type, and its body as text."""
    bare = ParsedEvent(event, ParsedPayload(), {})
    return render("unknown", row(bare, "all"), richtext.inline(event.kind), json_tree.draw_text(event.body[:4000]))


def open_turn(event: Stored, group: str, text: str, cut: Cut | None = None) -> Markup:
    """Draw a turn that is still being written: `text` so far, without what was `cut` off before it."""
    fields = row(parse_event(event), "chat", state="running", group=group)
    return render("token", fields, hidden_characters.spelled_out(text), cut, event.conversation)


@view
def message(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw an envelope; one that repeats an output is a line."""
    parsed = read.payload
    if repeat:  # a name alone proves nothing: such a line stays in sight, its words behind it
        fields = row(read, "all" if repeat == "same" else "")
        first = "" if repeat == "same" else _first_line(parsed.words)
        return render("repeat", fields, richtext.plain(parsed.words), first)
    changed, body = _changed(read), dict(read.body)
    if changed is not None:
        body["metadata"] = {name: value for name, value in body["metadata"].items() if name != "changed"}
    is_sent, reason = read.event.principal.startswith("user:"), _reason(read)
    extra = message_body.more(body, message_body.SPOKEN, sent_by=read.event.principal, shows_reason=reason is not None)
    return render("message", row(read), message_body.words(parsed.words), extra, reason, changed, is_sent)


@view
def user_message(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw what a person typed; if the message before already says it, as a line."""
    if repeat:
        return render(
            "repeat",
            row(read, "all"),
            richtext.plain(read.payload.words),
            "",
            "sent this message on the stream as well",
        )
    sender = read.payload.speaker or default_speaker(read.event.kind)
    extra = message_body.more(read.body, message_body.SPOKEN)
    return render("message", row(read, sender=sender), message_body.words(read.payload.words), extra)


@view
def output(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw an agent's output."""
    is_comment = read.body.get("phase") == "commentary"
    is_known = is_comment or read.body.get("phase") == "final_answer"
    extra = message_body.more(read.body, message_body.SPOKEN | {"phase"} if is_known else message_body.SPOKEN)
    fields, tokens = row(read, group=group), message_body.usage(read.body.get("usage"))
    return render("output", fields, message_body.words(read.payload.words), extra, tokens, is_comment)


@view
def control(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a control envelope."""
    extra = message_body.more(read.body, message_body.SPOKEN)
    return render("control_message", row(read), message_body.words(read.payload.words), extra)


@view
def conversation_opened(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw the beginning of a conversation."""
    title = richtext.inline(read.payload.title or "")
    handler = named(mark_for(agent(read.payload.handler))) if read.payload.handler else None
    extra = message_body.more(read.body, message_body.ENVELOPE | {"title", "handler"})
    by = read.event.principal if read.event.principal.startswith("user:") else None
    return render("conversation_opened", row(read, sender=by), title, handler, extra)


@view
def agent_handoff(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a handoff from one agent to another."""
    giver, taker = line(read.body.get("from_agent")), line(read.body.get("to_agent"))
    reason = richtext.inline(line(read.body.get("reason")))
    fields = row(read, sender=agent(giver or read.payload.agent))
    extra = message_body.more(read.body, message_body.ENVELOPE | {"from_agent", "to_agent", "reason"})
    return render("agent_handoff", fields, named(mark_for(agent(taker))), reason, extra)


def _draw_by_template(read: ParsedEvent, event_type: EventType) -> Markup:
    """Draw an event with its type's template and its fields as text."""
    fields = {name: richtext.inline(line(read.body.get(name))) for name in event_type.fields}
    details = {name for name, text in fields.items() if text}
    claims = is_claim(read)
    doer = author(read) if event_type.author == "principal" and not claims else None
    row_fields = row(read, event_type.level, state="" if claims else event_type.state, sender=doer, principal=doer)
    row_fields = row_fields._replace(is_claim=claims)
    return render(
        event_type.row.template, row_fields, fields, message_body.more(read.body, message_body.ENVELOPE | details)
    )


def unknown(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw an event of a type that this version does not know, as raw fields."""
    return render("unknown", row(read, "all"), richtext.inline(read.event.kind), json_tree.draw(read.event.body))


def render(template: str, *values: object) -> Markup:
    """Call the `draw` macro of an event's template."""
    return render_as(template, "draw", *values)


def render_as(template: str, name: str, *values: object) -> Markup:
    """Call another macro of an event's template."""
    return macro(f"events/{template}.html", name)(*values)


def agent(name: str | None) -> str:
    """Return an agent's name as on the wire; empty for none."""
    return f"agent:{name.removeprefix('agent:')}" if name else ""


def line(value: object) -> str:
    """Return a text or number of the body, clipped to a line; empty for anything else."""
    is_line = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value)[: message_body.MAX_LINE] if is_line else ""


def drawn_field(read: ParsedEvent, name: str) -> Markup | None:
    """Draw a text or number of the body, clipped to a line; None without one."""
    text = line(read.body.get(name))
    return richtext.inline(text) if text else None


def _first_line(text: str) -> Markup:
    return richtext.inline(text.strip().split("\n", 1)[0][:160])


def _reason(read: ParsedEvent) -> Markup | None:
    """Return the reason a person gave for speaking as another, from metadata of ours; None for a claim of one."""
    metadata = read.body.get("metadata") if principals.is_people(read.event.principal) else None
    reason = metadata.get("reason") if isinstance(metadata, dict) else None
    return richtext.inline(reason[: message_body.MAX_REASON]) if isinstance(reason, str) and reason else None


def _changed(read: ParsedEvent) -> EditedText | None:
    """Return the original text of a message that a fork edited; None if it was not edited."""
    metadata = read.body.get("metadata")
    changed = metadata.get("changed") if isinstance(metadata, dict) else None
    if not isinstance(changed, dict) or not principals.is_ours(read.event.principal):
        return None
    text, parent, seq = (changed.get(name) for name in ("content", "conversation_id", "seq"))
    if not isinstance(text, str) or not isinstance(parent, str) or type(seq) is not int:
        return None
    if not 1 <= len(parent) <= payload.MAX_KEY or not 0 < seq < 1 << 53:
        return None
    return EditedText(parent, seq, richtext.plain(text[:8000]), mark_for(line(changed.get("sender"))[:200]).name)
