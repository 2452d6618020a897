"""Control actions as thin lines: who did what, and why. Called by `event_renderer`."""

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.rendering import event_rows, message_body
from conversations.rendering.event_rows import ParsedEvent, Repeat, view
from conversations.rendering.run_rows import RunLine

_FIELDS = message_body.ENVELOPE | frozenset({"by", "reason", "owner", "how"})
_HOW = {
    "stop": "asked a run to stop after its turn",
    "cancel": "asked a run to stop",
    "abort": "aborted a run",
}


@view
def control_action(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw a control action on a conversation."""
    row = event_rows.row_of(read.event.kind)
    line = RunLine(row.glyph, row.words)
    owner = event_rows.line(read.body.get("owner"))
    if owner and owner != event_rows.author(read):
        line = line._replace(facts=(f"{_name(owner)} had taken over",))
    return _line(read, line)


@view
def run_stopping(read: ParsedEvent, group: str | None, repeat: Repeat) -> Markup:
    """Draw the request to stop a run."""
    text = _HOW.get(event_rows.line(read.body.get("how")), "asked a run to stop")
    return _line(read, RunLine("stop", text))


def _line(read: ParsedEvent, line: RunLine) -> Markup:
    """Draw a line with its author in front. A claim from outside says that it is one; it changed nothing."""
    claims = event_rows.is_claim(read)
    line = line._replace(detail=event_rows.drawn_field(read, "reason"), tag=event_rows.CLAIM if claims else "")
    by = None if claims else event_rows.author(read)
    fields = event_rows.row(read, sender=by, principal=by)
    return event_rows.render("run", fields, line, message_body.more(read.body, _FIELDS))


def _name(principal: str) -> str:
    return hidden_characters.spelled_out(principal.removeprefix("user:"))[:160]
