"""What a run would answer, once that was redacted: nothing is to be done about the text that stands in its place."""

from conversations.core.errors import Conflict
from conversations.events.recorded_arguments import has_redacted
from conversations.models import Event


def redacted_input(conversation: int, seq: int) -> str | None:
    """Return why no run can answer an event, as text for people; None if one can."""
    if has_redacted(Event.objects.filter(conversation=conversation, seq=seq)):
        return f"event {seq}, which the run would answer, was redacted"
    return None


def require_unredacted(conversation: int, seq: int) -> None:
    """Raise Conflict if an event that a run would answer was redacted."""
    if (reason := redacted_input(conversation, seq)) is not None:
        raise Conflict(reason, code="redacted")
