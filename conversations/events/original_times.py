"""When an event first happened that its sender tells later: the commit time of its row is that of the import, or of a
batch of spans."""

from collections.abc import Mapping
from typing import Any

from conversations.core import principals
from conversations.core.micros import read_micros

FOLLOWED_WITHIN_US = 300_000_000  # from when an event happened until it is stored, in a session that is followed


def is_followed(at: int, first: int | None) -> bool:
    """Return whether an imported event was stored (µs UTC) while its session went on, by when it first happened; not so
    if that is unknown."""
    return first is not None and at - first <= FOLLOWED_WITHIN_US


def of_imported(body: Mapping[str, Any]) -> int | None:
    """Return when an imported event first happened, µs UTC: as its record says, else its sender; None if neither."""
    imported = body.get("imported")
    first = read_micros(imported.get("at")) if isinstance(imported, dict) else None
    return first if first is not None else read_micros(body.get("created_at"))


def of_span(body: Mapping[str, Any]) -> int | None:
    """Return when what an event tells of a span happened, µs UTC: at its start or end; None for what is of no span."""
    is_of_span = isinstance(body.get("span_id"), str) and isinstance(body.get("trace_id"), str)
    return read_micros(body.get("created_at")) if is_of_span else None


def of_event(principal: str, body: Mapping[str, Any]) -> int | None:
    """Return when an event from outside first happened, µs UTC; None where its commit time says it."""
    if principals.is_ours(principal):
        return None
    return of_imported(body) if principals.is_imported(principal) else of_span(body)
