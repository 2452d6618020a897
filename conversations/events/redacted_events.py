"""Tell whether an event lost what it said, so that nothing is done about what is left. Called before runs, replays,
deliveries and outputs."""

from django.db.models import Q, QuerySet

from conversations.core import principals
from conversations.core.errors import Conflict
from conversations.events import payload
from conversations.events.types.redaction import LEFT
from conversations.models import Event

REDACTED = "event {}, which the run would answer, was redacted"


def require_unredacted(conversation: int, seq: int) -> None:
    """Raise Conflict if an event that a run would answer was redacted."""
    if has_redacted(Event.objects.filter(conversation=conversation, seq=seq)):
        raise Conflict(REDACTED.format(seq), code="redacted")


def has_redacted(events: QuerySet[Event]) -> bool:
    """Return whether one of these events lost all or some of what it said, so that nothing is to be called with what is
    left. A conversation's id that was erased does not count: its new id stands there."""
    erased = events.filter(Q(erased_by__isnull=False) | Q(principal__startswith=principals.IMPORTED))
    return any(is_redacted(*row) for row in erased.values_list("body", "erased_by", "principal"))


def is_redacted(body: str, erased_by: str | None, principal: str) -> bool:
    """Return whether an event lost all or some of what it said, by its row's columns. An import has the tombstone of
    another record as its text, and erased nothing itself."""
    if erased_by is None:
        return principals.is_imported(principal) and '"redacted"' in body and _is_tombstone(body)
    return LEFT in body or _is_tombstone(body)


def _is_tombstone(body: str) -> bool:
    return payload.decoded(body).get("redacted") is True
