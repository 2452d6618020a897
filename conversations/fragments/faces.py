"""One event of each kind → one row of HTML. Called by drawing; the markup is templates/events/<kind>.html."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

from markupsafe import Markup

from conversations import envelopes, principals
from conversations.envelopes import Said
from conversations.errors import SwitchboardError
from conversations.fragments import content, hidden, jsontree, richtext, times
from conversations.fragments.environment import macro
from conversations.fragments.markup import safe
from conversations.fragments.times import Times
from conversations.fragments.who import Who, behind, who
from conversations.log.events import Stored

Body = Mapping[str, Any]  # a decoded payload: any JSON
Repeat = Literal["", "named", "same"]  # whether an envelope says an output once more, and how we know


EVERYBODY = "everybody here"
LOUD = ("waiting", "unknown", "failed")  # states that are seen at any detail


Face = Callable[["Read", str | None, Repeat], Markup]


class Row(NamedTuple):
    """What every row shows, whatever its kind."""

    seq: int
    kind: str
    level: str  # chat, steps or all: the least detail at which it is seen
    state: str
    group: str | None
    voice: "Voice"
    times: Times
    within: str  # the group of the call that started the run it is of; empty for a run of its own


class Voice(NamedTuple):
    """Who speaks to whom, and what stands behind it: drawn once, since a conversation has few of them."""

    key: str  # of the sender, fit for an attribute
    hue: int | None
    by: str
    mark: Markup
    name: Markup
    to: Markup
    principal: Markup
    head: Markup  # name, recipient and principal in a row


class Changed(NamedTuple):
    """What a message was before a fork had it in other words, for templates/events/message.html."""

    parent: str
    seq: int
    was: Markup
    by: str


class Read(NamedTuple):
    """An event's body, read."""

    event: Stored
    said: Said
    body: Body


def read(event: Stored) -> Read:
    """Read a stored body; one that cannot be read (it cannot have come through a door) is all unknown."""
    try:
        said = envelopes.read(event.body.encode("utf-8", "replace"))
        body = envelopes.decoded(event.body.encode("utf-8", "replace"))
    except (SwitchboardError, ValueError, RecursionError):
        said, body = Said(), {}
    return Read(event, said, body)


def row(
    read: Read,
    level: str,
    *,
    state: str = "",
    group: str | None = None,
    sender: str | None = None,
    principal: str | None = None,
) -> Row:
    """Gather what every row shows. `sender` and `principal` take the place of the event's own."""
    event, said, body = read
    within = parent_group(event)
    if within and level == "chat" and state not in LOUD:
        level = "steps"  # talk inside a call is a part of that call
    name = said.speaker if sender is None else sender
    metadata = body.get("metadata")
    is_demo = (body.get("demo") is True and event.kind != "model.turn") or (
        isinstance(metadata, dict) and metadata.get("demo") is True
    )
    return Row(
        seq=event.seq,
        kind=hidden.spell(event.kind),
        level=level,
        state=state,
        group=group,
        voice=voice(name, _recipient(said, event), principal or event.principal, is_demo),
        times=times.of_event(event.at, event.principal, body),
        within=within,
    )


def parent_group(event: Stored) -> str:
    """Name the block of the call that an event of ours is inside; empty for none. A claim is inside nothing (law I)."""
    if event.run is None or '"parent_call"' not in event.body:
        return ""
    parent = read(event).body.get("parent_call")
    return f"call:{hidden.spell(parent)[:64]}" if isinstance(parent, str) and parent else ""


@lru_cache(maxsize=2048)
def voice(sender: str, recipient: str, principal: str, is_demo: bool) -> Voice:
    """Draw a pair of voices and their principal."""
    face, beyond = who(sender, principal), behind(principal, sender)
    name, told = named(face), _macro("macros/principal.html", "principal", beyond, is_demo)
    to = _macro("macros/mark.html", "to", who(recipient)) if recipient else safe("")
    return Voice(
        key=face.key,
        hue=face.hue,
        by=beyond.by,
        mark=_macro("macros/mark.html", "symbol", face),
        name=name,
        to=to,
        principal=told,
        head=name + told + to if beyond.by else name + to + told,
    )


def _recipient(said: Said, event: Stored) -> str:
    """Answer whom it was said to; the conversation's own topic is everybody in it, in a fork's copy as well."""
    return EVERYBODY if is_to_all(Read(event, said, {})) else said.recipient or ""


def is_to_all(read: "Read") -> bool:
    """Tell whether it was said to everybody in the conversation."""
    return read.said.recipient in (f"chat:{read.event.conversation}", f"chat:{read.said.conversation_id}")


def is_copy(read: "Read") -> bool:
    """Tell whether an event of ours was copied from the conversation that its body names: whatever can be done about
    it is done there."""
    there = read.said.conversation_id
    return read.event.run is not None and there is not None and there != read.event.conversation


def named(face: Who) -> Markup:
    """Draw a name in its hue."""
    return _macro("macros/mark.html", "name", face)


def draw(event: Stored, group: str | None, repeat: Repeat, more: Mapping[str, Face]) -> Markup:
    """Draw any event but a token and a tool step; one that cannot be read, as it came. `more` are further faces."""
    found = read(event)
    kind = ".stage" if event.kind.endswith(".stage") else event.kind  # a team's own; its name comes before the dot
    face = (_FACES.get(kind) or more.get(kind, unknown)) if found.body else unknown
    return face(found, group, repeat)


def draw_failed(event: Stored) -> Markup:
    """Draw an event that nothing else here could draw: its kind, and its body as text."""
    bare = Read(event, Said(), {})
    return render("unknown", row(bare, "all"), richtext.inline(event.kind), jsontree.draw_text(event.body[:4000]))


def open_turn(event: Stored, group: str, text: str) -> Markup:
    """Draw a turn that is still being written; `text` so far, as it stands."""
    return render("token", row(read(event), "chat", state="running", group=group), hidden.spell(text))


def _message(read: Read, group: str | None, repeat: Repeat) -> Markup:
    said = read.said
    if repeat:  # a name alone proves nothing: such a line stays in sight, its words behind it
        face = row(read, "all" if repeat == "same" else "chat")
        first = "" if repeat == "same" else _first_line(said.words)
        return render("repeat", face, richtext.plain(said.words), first)
    changed, body = _changed(read), dict(read.body)
    if changed is not None:
        body["metadata"] = {name: value for name, value in body["metadata"].items() if name != "changed"}
    extra = content.more(body, content.ENVELOPE, sent_by=read.event.principal)
    is_sent = read.event.principal.startswith("user:")
    return render("message", row(read, "chat"), content.words(said.words), extra, _reason(read), changed, is_sent)


def _user_message(read: Read, group: str | None, repeat: Repeat) -> Markup:
    sender = read.said.speaker or "user"
    extra = content.more(read.body, content.ENVELOPE)
    return render("user_message", row(read, "chat", sender=sender), content.words(read.said.words), extra)


def _output(read: Read, group: str | None, repeat: Repeat) -> Markup:
    extra = content.more(read.body, content.ENVELOPE)
    face = row(read, "chat", group=group)
    return render("output", face, content.words(read.said.words), extra, usage(read.body.get("usage")))


def _control(read: Read, group: str | None, repeat: Repeat) -> Markup:
    extra = content.more(read.body, content.ENVELOPE)
    return render("control", row(read, "steps"), content.words(read.said.words), extra)


def _signal(read: Read, group: str | None, repeat: Repeat) -> Markup:
    topic = read.body.get("topic")
    is_sent = read.event.kind == "signal_send"
    extra = content.more(read.body, content.ENVELOPE | {"topic"})
    return render("signal", row(read, "steps"), is_sent, richtext.inline(line(topic)), extra)


def _log(read: Read, group: str | None, repeat: Repeat) -> Markup:
    level = line(read.body.get("level")).lower()
    component = richtext.inline(line(read.body.get("component")))
    told = read.body.get("message")
    words = richtext.plain(told if isinstance(told, str) else read.said.words)
    extra = content.more(read.body, content.ENVELOPE | {"level", "component", "message"})
    face = row(read, "all", state="failed" if level in ("error", "critical", "fatal") else "")
    return render("log", face, richtext.inline(level), component, words, extra)


def _opened(read: Read, group: str | None, repeat: Repeat) -> Markup:
    title = richtext.inline(read.said.title or "")
    handler = named(who(agent(read.said.handler))) if read.said.handler else None
    extra = content.more(read.body, content.ENVELOPE | {"title", "handler"})
    by = read.event.principal if read.event.principal.startswith("user:") else None
    return render("conversation_opened", row(read, "steps", sender=by), title, handler, extra)


def _handoff(read: Read, group: str | None, repeat: Repeat) -> Markup:
    giver, taker = line(read.body.get("from_agent")), line(read.body.get("to_agent"))
    reason = richtext.inline(line(read.body.get("reason")))
    face = row(read, "steps", sender=agent(giver or read.said.agent))
    extra = content.more(read.body, content.ENVELOPE | {"from_agent", "to_agent", "reason"})
    return render("agent_handoff", face, named(who(agent(taker))), reason, extra)


def _gap(read: Read, group: str | None, repeat: Repeat) -> Markup:
    body = read.body
    since, until = times.moment(body.get("since")), times.moment(body.get("until"))
    why = richtext.inline(line(body.get("why")) or line(body.get("reason")))
    topic, is_single = richtext.inline(line(body.get("topic"))), body.get("reason") == "quarantined"
    return render("record_gap", row(read, "chat"), _missing(body), since, until, why, topic, is_single)


def _missing(body: Body) -> Markup:
    """Say what is missing: how many, or from which to which, as far as it was told."""
    first, last, lost = (body.get(name) for name in ("from", "to", "lost"))
    if body.get("reason") == "quarantined":
        return safe("One entry could not be filed; it is in the quarantine.")
    if first is not None or last is not None:
        ends = (richtext.inline(line(end) or "?") for end in (first, last))
        return safe("Entries {} to {} are missing.".format(*ends))
    if type(lost) is int:
        return safe("One entry is missing here." if lost == 1 else f"{lost:,} entries are missing here.")
    return safe("Entries may be missing here." if "lost" in body else "Entries are missing here.")


def _dead_letter(read: Read, group: str | None, repeat: Repeat) -> Markup:
    error, envelope = read.body.get("error"), read.body.get("envelope")
    trace = error if isinstance(error, str) else ""
    last = next((one for one in reversed(trace.splitlines()) if one.strip()), "")
    letter = content.tree(envelope) if isinstance(envelope, dict) and envelope else None
    said = envelope.get("content") if isinstance(envelope, dict) else None
    extra = content.more(read.body, content.ENVELOPE | {"envelope"} | ({"error"} if trace else set()))
    words = richtext.plain(said[:2000]) if isinstance(said, str) and said else None
    face = row(read, "chat", state="failed")
    return render(
        "dead_letter", face, richtext.inline(last[:300]), words, richtext.plain(trace) if trace else None, letter, extra
    )


def _raised(read: Read, group: str | None, repeat: Repeat) -> Markup:
    extra = content.more(read.body, content.ENVELOPE)
    return render("signal_raised", row(read, "steps"), extra)


def unknown(read: Read, group: str | None, repeat: Repeat) -> Markup:
    """Draw a kind that this version does not know, as it came."""
    return render("unknown", row(read, "all"), richtext.inline(read.event.kind), jsontree.draw(read.event.body))


_FACES: dict[str, Face] = {
    "message": _message,
    "control": _control,
    "output": _output,
    "user_message": _user_message,
    "signal_send": _signal,
    "signal_recv": _signal,
    "log": _log,
    "conversation.opened": _opened,
    "agent.handoff": _handoff,
    "record.gap": _gap,
    "dead_letter": _dead_letter,
    "signal": _raised,
}


def render(template: str, *values: object) -> Markup:
    """Call the `draw` macro of an event's template."""
    return render_as(template, "draw", *values)


def render_as(template: str, name: str, *values: object) -> Markup:
    """Call another macro of an event's template."""
    return _macro(f"events/{template}.html", name, *values)


def _macro(template: str, name: str, *values: object) -> Markup:
    return cast(Markup, macro(template, name)(*values))


def agent(name: str | None) -> str:
    """Answer an agent as it is named on the wire; nobody for none."""
    return f"agent:{name.removeprefix('agent:')}" if name else ""


def line(value: object) -> str:
    """Answer what can stand in a line: texts and numbers of the body, clipped; anything else is empty."""
    return str(value)[:2000] if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _first_line(text: str) -> Markup:
    return richtext.inline(text.strip().split("\n", 1)[0][:160])


def _reason(read: Read) -> Markup | None:
    """Answer the reason a person gave for speaking, told by us."""
    metadata = read.body.get("metadata")
    reason = metadata.get("reason") if isinstance(metadata, dict) else None
    return richtext.inline(reason[:1000]) if isinstance(reason, str) and reason else None


def _changed(read: Read) -> Changed | None:
    """Answer what a message of ours was in the conversation that this one is a fork of."""
    metadata = read.body.get("metadata")
    told = metadata.get("changed") if isinstance(metadata, dict) else None
    if not isinstance(told, dict) or not principals.is_ours(read.event.principal):
        return None
    words, parent, seq = (told.get(name) for name in ("content", "conversation_id", "seq"))
    if not isinstance(words, str) or not isinstance(parent, str) or type(seq) is not int:
        return None
    if not 1 <= len(parent) <= envelopes.MAX_KEY or not 0 < seq < 1 << 53:
        return None
    return Changed(parent, seq, richtext.plain(words[:8000]), who(line(told.get("sender"))[:200]).name)


def usage(told: object) -> str:
    """Say what a model spent."""
    if not isinstance(told, dict):
        return ""
    spent, made = (told.get(f"{side}_tokens") for side in ("input", "output"))
    if type(spent) is int and type(made) is int:
        return f"{spent:,} tokens in, {made:,} out"
    total = told.get("total_tokens")
    return f"{total:,} tokens" if type(total) is int else ""
