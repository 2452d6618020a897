"""What an event's card in the lanes says. The outline and text exports say the same."""

from conversations.events.event_type import Lane
from conversations.models.approval import DECISION_WORDS
from conversations.models.run import EXTERNAL
from conversations.rendering.event_rows import ParsedEvent, line

THUMBS = {"up": "thumbs up", "down": "thumbs down", "": "withdrew a thumb"}  # of an annotation
ANSWERED = "has its answer"
REASONS = frozenset(("reason", "error", "why", "decision"))  # fields of people's or programs' own words


def is_withdrawal(read: ParsedEvent) -> bool:
    """Return whether an external agent's request was withdrawn: the run that stood for it ended."""
    return (read.event.kind, read.body.get("run_kind")) == ("run.cancelled", EXTERNAL) and read.event.run is not None


def is_answered(read: ParsedEvent) -> bool:
    """Return whether an external agent's request was decided: the run that stood for it ended, its agent goes on."""
    return (read.event.kind, read.body.get("run_kind")) == ("run.done", EXTERNAL) and read.event.run is not None


def is_for_budget(read: ParsedEvent) -> bool:
    """Return whether an approval is requested to exceed a budget, not for a tool call."""
    return (read.event.kind, read.body.get("origin")) == ("approval.requested", "budget")


def verb(read: ParsedEvent, lane: Lane) -> str:
    """Return what happened."""
    if is_withdrawal(read):
        return "no longer waits"
    if is_answered(read):
        return ANSWERED
    if is_for_budget(read):
        return "requested more budget"
    if read.event.kind == "approval.decided":
        return DECISION_WORDS.get(line(read.body.get("decision")), lane.verb)
    thumb = read.body.get("thumb") if read.event.kind == "event.annotated" else None
    return THUMBS.get(thumb, lane.verb) if isinstance(thumb, str) else lane.verb


def text(read: ParsedEvent, lane: Lane) -> str:
    """Return the text that is shown of an event: the lane's field, else what was said."""
    if is_for_budget(read):
        return ""
    if read.event.kind == "approval.decided":
        return " · ".join(filter(None, (line(read.body.get(name)) for name in ("message", "output"))))
    return line(read.body.get(lane.field)) if lane.field else read.payload.words


def sentence(read: ParsedEvent, lane: Lane) -> str:
    """Return both: a reason stands behind a colon."""
    action, words = verb(read, lane), text(read, lane) if lane.field else ""
    return f"{action}{':' if words and lane.field in REASONS else ''} {words}".rstrip()
