"""Count messages, handoffs and tool calls between participants in the newest events. Called by the graph page."""

from collections.abc import Collection
from typing import NamedTuple

from django.db import connection
from django.db.models import Count, Max, Q

from conversations.events import registry
from conversations.events.log import bounded_reads
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.records import Stored
from conversations.events.log.sql import marks
from conversations.models import ToolCall

_KINDS = (*registry.names_with("speech"), "agent.handoff")
NEWEST = 2000  # events looked at; of those before nothing is counted


class CallCount(NamedTuple):
    """The number of calls of a tool by an agent; the newest is at event `seq`."""

    agent: str
    tool: str
    times: int
    seq: int


class Interactions(NamedTuple):
    """What happened from event `first` on: what was said, and handoffs, in seq order; calls by agent and tool."""

    first: int
    events: list[Stored]
    calls: list[CallCount]


def interactions(conversation: int, key: str, head: int) -> Interactions:
    """Read the newest 2,000 events up to `head`, fewer if they exceed 4 MiB."""
    first, events = _spoken(conversation, key, max(1, head - NEWEST + 1), head)
    rows = ToolCall.objects.filter(conversation_id=conversation, called_seq__gte=first, called_seq__lte=head)
    counted = rows.order_by("agent", "name").values_list("agent", "name").annotate(Count("pk"), Max("called_seq"))
    return Interactions(first, events, [CallCount(*row) for row in counted])


def caller_at(conversation: int, seq: int) -> tuple[str, str] | None:
    """Return the agent and the tool of the call that began or ended with an event."""
    of_event = Q(called_seq=seq) | Q(finished_seq=seq)
    return ToolCall.objects.filter(of_event, conversation_id=conversation).values_list("agent", "name").first()


def callers_at(conversation: int, seqs: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return the agents and the tools of the calls that began or ended with these events, by event."""
    of_events = Q(called_seq__in=seqs) | Q(finished_seq__in=seqs)
    rows = ToolCall.objects.filter(of_events, conversation_id=conversation) if seqs else ToolCall.objects.none()
    calls = rows.values_list("called_seq", "finished_seq", "agent", "name")
    return {seq: (agent, tool) for *ends, agent, tool in calls for seq in ends if seq is not None and seq in seqs}


def _spoken(conversation: int, key: str, least: int, head: int) -> tuple[int, list[Stored]]:
    """Read backwards until the limit or the beginning; return the first event read, and the events in order."""
    source = (
        "FROM conversations_event WHERE conversation_id=%s AND seq>=%s AND seq<=%s"
        f" AND NOT kind='token' AND kind IN ({marks(len(_KINDS))})"
    )
    values = [conversation, least, head, *_KINDS]
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, values, order="seq DESC", most=bounded_reads.READ_BYTES)
    events = [Stored(key, *row) for row in reversed(rows)]
    return events[0].seq if bounded_reads.size(rows) > bounded_reads.READ_BYTES else least, events
