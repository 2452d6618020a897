"""Refuse runs whose input was redacted."""

from conversations.core.errors import Conflict
from conversations.events.redacted_events import has_redacted
from conversations.models import Event

REDACTED = "event {}, which the run would answer, was redacted"


def require_unredacted(conversation: int, seq: int) -> None:
    """Raise Conflict if an event that a run would answer was redacted."""
    if has_redacted(Event.objects.filter(conversation=conversation, seq=seq)):
        raise Conflict(REDACTED.format(seq), code="redacted")
