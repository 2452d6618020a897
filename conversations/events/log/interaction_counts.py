"""Who spoke to whom, handed over to whom, called what: read from the newest events. Called by the graph page."""

from collections import Counter
from typing import NamedTuple

from django.db import connection
from django.db.models import Count

from conversations.events.log import bounded_reads
from conversations.events.log.records import Stored
from conversations.events.log.tool_calls import COLUMNS
from conversations.models import ToolCall

NEWEST = 2000  # events looked at; of those before nothing is counted


class Interactions(NamedTuple):
    """What was said and called from event `first` on: envelopes and handoffs in seq order, calls by (agent, tool)."""

    first: int
    events: list[Stored]
    calls: Counter[tuple[str, str]]


def interactions(conversation: int, key: str, head: int) -> Interactions:
    """Read the newest 2,000 events up to `head`, fewer where they are more than 4 MiB."""
    first, events = _spoken(conversation, key, max(1, head - NEWEST + 1), head)
    rows = ToolCall.objects.filter(conversation_id=conversation, called_seq__gte=first, called_seq__lte=head)
    counted = rows.order_by().values_list("agent", "name").annotate(times=Count("pk"))
    return Interactions(first, events, Counter({(agent, name): times for agent, name, times in counted}))


def _spoken(conversation: int, key: str, least: int, head: int) -> tuple[int, list[Stored]]:
    """Read backwards until there is no more, or enough; answer from which event on, and the events in order."""
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND seq<=%s"
        " AND kind<>'token' AND kind IN ('message','agent.handoff')"
    )
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(
            cursor, COLUMNS, source, [conversation, least, head], order="seq DESC", most=bounded_reads.READ_BYTES
        )
    events = [Stored(key, *row) for row in reversed(rows)]
    return events[0].seq if bounded_reads.size(rows) > bounded_reads.READ_BYTES else least, events
