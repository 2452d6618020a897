"""The newest runs of a conversation and the events that tell who held each of them. Read by the timeline."""

from collections.abc import Sequence

from django.db import connection

from conversations.log.calls import COLUMNS
from conversations.log.events import Stored
from conversations.log.rows import marks
from conversations.models import Run

MOST = 600  # events; a longer run is told from there on
KINDS = (
    "run.queued", "run.started", "run.waiting", "run.resumed", "run.done", "run.failed", "run.cancelled",
    "run.interrupted", "run.incompatible", "agent.handoff", "model.turn", "approval.requested",
)  # fmt: skip


def newest_runs(conversation: int, limit: int) -> list[Run]:
    """Answer the newest runs, newest first."""
    return list(Run.objects.filter(conversation_id=conversation, parent_call=None).order_by("-queued_seq")[:limit])


def of_runs(conversation: int, key: str, runs: Sequence[Run]) -> list[Stored]:
    """Read the newest of these runs' events that tell who held them, in order; teams' own stages among them."""
    if not runs:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND kind<>'token'"
            f" AND (kind IN ({marks(len(KINDS))}) OR kind LIKE %s) AND run IN ({marks(len(runs))})"
            " ORDER BY seq DESC LIMIT %s",
            [conversation, min(r.queued_seq for r in runs), *KINDS, "%.stage", *(r.id for r in runs), MOST],
        )
        return [Stored(key, *row) for row in cursor.fetchall()][::-1]
