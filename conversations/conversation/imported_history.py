"""Which imported conversations are history: what they tell happened long before it was stored. Used by the list and by
a conversation's page.

A session that is followed or played while it happens is imported too, but its times are those of now.
"""

from collections.abc import Iterable
from typing import NamedTuple

from conversations.core import principals
from conversations.events import original_times
from conversations.events.log import imported_times

LIVE_FOR = 300  # seconds after its last event for which a conversation counts as live
LOOKED_AT = 5  # the newest events: the last one of a recording often has no time


class ConversationEnd(NamedTuple):
    """A conversation's row id, who opened it, and its last event: seq and commit time (µs UTC)."""

    id: int
    opened_by: str
    head_seq: int
    last_at: int


def history_among(ends: Iterable[ConversationEnd]) -> set[int]:
    """Return the ids of those whose newest event was imported and happened long before, or has no time at all."""
    imported = [end for end in ends if end.head_seq and principals.is_imported(end.opened_by)]
    if not imported:
        return set()
    times = imported_times.read([(end.id, seq) for end in imported for seq in _newest(end)])
    return {end.id for end in imported if (end.id, end.head_seq) in times and not _is_recent(end, times)}


def _newest(end: ConversationEnd) -> range:
    return range(max(1, end.head_seq - LOOKED_AT + 1), end.head_seq + 1)


def _is_recent(end: ConversationEnd, times: dict[tuple[int, int], int | None]) -> bool:
    return any(original_times.is_followed(end.last_at, times.get((end.id, seq))) for seq in _newest(end))
