"""Read the events that an outline lists: messages of people, takeovers, approvals, ends, failures. Keyset pages.

Called by the conversation page. A page reads the bodies of the listed events, within the usual byte limit.
"""

from typing import NamedTuple

from django.db import connection

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored
from conversations.events.log.sql import marks
from conversations.models.tool_call import FAILED

NEWEST = 10_000  # events looked at; what was before is not in an outline
PAGE = 300  # events of a page
KINDS = (
    *registry.names_with("outlined"),
    *registry.bad_run_ends(),
    *(kind for kind in registry.names() if kind.startswith(("approval.", "conversation."))),
)


class OutlinePage(NamedTuple):
    """Events to list, in order. `first` is the first event examined; earlier ones are not part of the page."""

    first: int
    events: list[Stored]
    has_earlier: bool
    has_later: bool


def around(conversation: int, key: str, head: int, seq: int) -> OutlinePage:
    """Read the page that contains an event: about half before it, half from it on."""
    least = max(1, head - NEWEST + 1)
    earlier = _read(conversation, key, ("seq>=%s AND seq<%s", least, seq), "seq DESC", PAGE // 2)
    later = _read(conversation, key, ("seq>=%s AND seq<=%s", seq, head), "seq", PAGE - len(earlier[0]))
    return OutlinePage(least, [*reversed(earlier[0]), *later[0]], earlier[1], later[1])


def after(conversation: int, key: str, head: int, seq: int) -> OutlinePage:
    """Read the page after an event."""
    least = max(1, head - NEWEST + 1)
    events, has_more = _read(conversation, key, ("seq>%s AND seq<=%s", max(seq, least - 1), head), "seq")
    return OutlinePage(least, events, seq >= least, has_more)


def before(conversation: int, key: str, head: int, seq: int) -> OutlinePage:
    """Read the page before an event."""
    least = max(1, head - NEWEST + 1)
    events, has_more = _read(conversation, key, ("seq>=%s AND seq<%s", least, seq), "seq DESC")
    return OutlinePage(least, events[::-1], has_more, seq <= head)


def _read(
    conversation: int, key: str, where: tuple[str, int, int], order: str, limit: int = PAGE
) -> tuple[list[Stored], bool]:
    """Read up to `limit` events, and whether there are more. A failed call is represented by the step that ended it."""
    condition, *values = where
    failed = (
        "SELECT finished_seq FROM conversations_toolcall WHERE conversation_id=%s AND finished_seq IS NOT NULL"
        f" AND status IN ({marks(len(FAILED))})"
    )
    source = (
        f"FROM conversations_event WHERE conversation_id=%s AND {condition} AND NOT kind='token'"
        f" AND (kind IN ({marks(len(KINDS))}) OR (kind='tool_step' AND seq IN ({failed})))"
    )
    parameters = [conversation, *values, *KINDS, conversation, *FAILED]
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, parameters, order=order, limit=limit + 1)
    is_cut = bounded_reads.size(rows) > bounded_reads.READ_BYTES
    events = [Stored(key, *row) for row in rows[:limit]]
    return events, len(rows) > limit or is_cut
