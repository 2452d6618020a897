"""Read the newest runs of a conversation, the events that show which agent was active in each, and their results. Used
wherever a page or an action asks who is at work; the timeline takes only `KINDS`."""

import json
from collections.abc import Sequence

from django.db import connection

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored
from conversations.events.log.sql import marks
from conversations.events.projections.row_changes import RunRow
from conversations.models import Event, Run, ToolCall

MAX_EVENTS = 600  # events, or 4 MiB; a longer run is read from there on
LOOKED_AT = 8  # turns and handoffs in which the agent at work is looked for
RESULTS, RESULT_BYTES = 3, 4096  # of a run, and of each
KINDS = registry.names_with("holds_run")


def newest_runs(conversation: int, limit: int) -> list[Run]:
    """Return the newest runs, newest first, without runs whose message was delivered to another run."""
    runs = Run.objects.filter(conversation_id=conversation, parent_call=None).exclude(status="delivered")
    return list(runs.order_by("-queued_seq")[:limit])


def events_of_runs(conversation: int, key: str, runs: Sequence[Run]) -> list[Stored]:
    """Read the newest events that show which agent was active in these runs, in order, including teams' own stages."""
    if not runs:
        return []
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND NOT kind='token'"
        f" AND (kind IN ({marks(len(KINDS))}) OR kind LIKE %s) AND run IN ({marks(len(runs))})"
    )
    values = [conversation, min(r.queued_seq for r in runs), *KINDS, "%.stage", *(r.id for r in runs)]
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, values, order="seq DESC", limit=MAX_EVENTS)
    return [Stored(key, *row) for row in reversed(rows)]


def working_agent(conversation: int, run: Run | RunRow, upto: int = 1 << 62) -> str:
    """Return the active agent of a run, now or after event `upto`: the agent of its newest handoff or turn, or else its
    own."""
    sql = (
        "SELECT kind,body FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND seq<=%s"
        " AND NOT kind='token' AND kind IN ('agent.handoff','model.turn') AND run=%s ORDER BY seq DESC LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [conversation, run.queued_seq, upto, run.id, LOOKED_AT])
        for kind, body in cursor.fetchall():
            fields = json.loads(body)
            name = fields.get("to_agent" if kind == "agent.handoff" else "agent")
            if not fields.get("parent_call") and isinstance(name, str) and name:
                return name
    return run.agent


def results_of_run(conversation: int, key: str, run: str) -> list[Stored]:
    """Return the events that ended the newest calls of a run successfully, in order, if their output is short."""
    calls = ToolCall.objects.filter(run=run, conversation=conversation, status="done", output_bytes__lte=RESULT_BYTES)
    seqs = [seq for seq in calls.order_by("-finished_seq").values_list("finished_seq", flat=True)[:RESULTS] if seq]
    events = Event.objects.filter(conversation=conversation, seq__in=seqs).order_by("seq")
    return [Stored(key, *row) for row in events.values_list(*COLUMNS.split(","))]
