"""Draw what passes on the bus beside messages, and what was lost there. Called by `event_renderer`."""

from markupsafe import Markup

from conversations.core.html_escape import safe
from conversations.rendering import event_rows, message_body, richtext, timestamps
from conversations.rendering.event_rows import Body, ParsedEvent, Repeat, view


@view
def signal_passed(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a signal that an agent sent or received."""
    topic = read.body.get("topic")
    is_sent = read.event.kind == "signal_send"
    extra = message_body.more(read.body, message_body.ENVELOPE | {"topic"})
    return event_rows.render("signal", event_rows.row(read), is_sent, richtext.inline(event_rows.line(topic)), extra)


@view
def log(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw an agent's log line."""
    level = event_rows.line(read.body.get("level")).lower()
    component = richtext.inline(event_rows.line(read.body.get("component")))
    details = read.body.get("message")
    text = richtext.plain(details if isinstance(details, str) else read.payload.words)
    extra = message_body.more(read.body, message_body.ENVELOPE | {"level", "component", "message"})
    fields = event_rows.row(read, state="failed" if level in ("error", "critical", "fatal") else "")
    return event_rows.render("log", fields, richtext.inline(level), component, text, extra)


@view
def record_gap(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a gap in the record."""
    body = read.body
    since, until = timestamps.moment(body.get("since")), timestamps.moment(body.get("until"))
    why = richtext.inline(event_rows.line(body.get("why")) or event_rows.line(body.get("reason")))
    topic, is_single = richtext.inline(event_rows.line(body.get("topic"))), body.get("reason") == "quarantined"
    return event_rows.render("record_gap", event_rows.row(read), _missing(body), since, until, why, topic, is_single)


@view
def dead_letter(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a message that an agent gave up on."""
    error, envelope = read.body.get("error"), read.body.get("envelope")
    trace = error if isinstance(error, str) else ""
    last = next((entry for entry in reversed(trace.splitlines()) if entry.strip()), "")
    letter = message_body.tree(envelope) if isinstance(envelope, dict) and envelope else None
    payload = envelope.get("content") if isinstance(envelope, dict) else None
    extra = message_body.more(read.body, message_body.ENVELOPE | {"envelope"} | ({"error"} if trace else set()))
    text = richtext.plain(payload[:2000]) if isinstance(payload, str) and payload else None
    fields = event_rows.row(read, state=event_rows.state_of(read.event.kind))
    return event_rows.render(
        "dead_letter",
        fields,
        richtext.inline(last[:300]),
        text,
        richtext.plain(trace) if trace else None,
        letter,
        extra,
    )


@view
def signal_raised(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a signal that names the conversation."""
    extra = message_body.more(read.body, message_body.ENVELOPE)
    return event_rows.render("signal_raised", event_rows.row(read), extra)


def _missing(body: Body) -> Markup:
    """Return what is missing: how many, as far as it is known."""
    if body.get("reason") == "quarantined":
        return safe("One entry could not be stored; it is in quarantine.")
    lost = body.get("lost")
    if type(lost) is int:
        return safe("One entry is missing here." if lost == 1 else f"{lost:,} entries are missing here.")
    return safe("Entries may be missing here." if "lost" in body else "Entries are missing here.")
