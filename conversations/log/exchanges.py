"""Who spoke to whom, handed over to whom, called what: read from the newest events. Called by the graph page."""

from collections import Counter
from typing import NamedTuple

from django.db import connection
from django.db.models import Count

from conversations.log.calls import COLUMNS
from conversations.log.events import Stored
from conversations.log.pages import READ_SIZE
from conversations.models import ToolCall

NEWEST = 2000  # events looked at; of those before nothing is counted
_STEP = 500  # events of one read


class Told(NamedTuple):
    """What was said and called from event `first` on: envelopes and handoffs in seq order, calls by (agent, tool)."""

    first: int
    events: list[Stored]
    calls: Counter[tuple[str, str]]


def exchanges(conversation: int, key: str, head: int) -> Told:
    """Read the newest 2,000 events up to `head`, fewer where they are more than 4 MiB."""
    first, events = _spoken(conversation, key, max(1, head - NEWEST + 1), head)
    rows = ToolCall.objects.filter(conversation_id=conversation, called_seq__gte=first, called_seq__lte=head)
    counted = rows.order_by().values_list("agent", "name").annotate(times=Count("pk"))
    return Told(first, events, Counter({(agent, name): times for agent, name, times in counted}))


def _spoken(conversation: int, key: str, least: int, head: int) -> tuple[int, list[Stored]]:
    """Read backwards until there is no more, or enough; answer from which event on, and the events in order."""
    found: list[Stored] = []
    size, before = 0, head + 1
    while size <= READ_SIZE:
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND seq<%s"
                " AND kind<>'token' AND kind IN ('message','agent.handoff') ORDER BY seq DESC LIMIT %s",
                [conversation, least, before, _STEP],
            )
            rows = [Stored(key, *row) for row in cursor.fetchall()]
        found += rows
        size += sum(len(row.body) for row in rows)
        if len(rows) < _STEP:
            return least, found[::-1]
        before = rows[-1].seq
    return before, found[::-1]
