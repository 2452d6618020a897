"""What an event's card in the lanes says. The outline and text exports say the same."""

from conversations.events.event_type import Lane
from conversations.models.run import EXTERNAL
from conversations.rendering.event_rows import ParsedEvent, line

THUMBS = {"up": "thumbs up", "down": "thumbs down", "": "withdrew a thumb"}  # of an annotation


def is_withdrawal(read: ParsedEvent) -> bool:
    """Return whether an external agent's request was withdrawn: the run that stood for it ended."""
    return (read.event.kind, read.body.get("run_kind")) == ("run.cancelled", EXTERNAL) and read.event.run is not None


def verb(read: ParsedEvent, lane: Lane) -> str:
    """Return what happened."""
    if is_withdrawal(read):
        return "no longer waits"
    thumb = read.body.get("thumb") if read.event.kind == "event.annotated" else None
    return THUMBS.get(thumb, lane.verb) if isinstance(thumb, str) else lane.verb


def text(read: ParsedEvent, lane: Lane) -> str:
    """Return the text that is shown of an event: the lane's field, else what was said."""
    return line(read.body.get(lane.field)) if lane.field else read.payload.words
