"""The newest runs of a conversation and the events that tell who held each of them. Read by the timeline."""

from collections.abc import Sequence

from django.db import connection

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.records import Stored
from conversations.events.log.sql import marks
from conversations.events.log.tool_calls import COLUMNS
from conversations.models import Run

MAX_ITEMS = 600  # events, or 4 MiB; a longer run is told from there on
KINDS = registry.names_with("holds_run")


def newest_runs(conversation: int, limit: int) -> list[Run]:
    """Return the newest runs, newest first."""
    return list(Run.objects.filter(conversation_id=conversation, parent_call=None).order_by("-queued_seq")[:limit])


def events_of_runs(conversation: int, key: str, runs: Sequence[Run]) -> list[Stored]:
    """Read the newest of these runs' events that tell who held them, in order; teams' own stages among them."""
    if not runs:
        return []
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND kind<>'token'"
        f" AND (kind IN ({marks(len(KINDS))}) OR kind LIKE %s) AND run IN ({marks(len(runs))})"
    )
    values = [conversation, min(r.queued_seq for r in runs), *KINDS, "%.stage", *(r.id for r in runs)]
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, values, order="seq DESC", limit=MAX_ITEMS)
    return [Stored(key, *row) for row in reversed(rows)]
