"""Keep what is known of traces in the database, for other processes and after a restart. Called by the telemetry
endpoint: before a request is read, and once its events are stored."""

from collections.abc import Sequence
from typing import NamedTuple

from conversations.core.ids import text_digest
from conversations.events import log
from conversations.models import Conversation, TelemetryTrace
from conversations.telemetry.intake import Memory, Trace

BLOCK = 500  # rows of one query


class TraceRow(NamedTuple):
    """A row to write: its key, the conversation's, and what is counted as JSON."""

    key: str
    conversation: str
    counted: str


def load(memory: Memory, sender: str, trace_ids: Sequence[str]) -> None:
    """Add to the memory what any process has stored of these traces."""
    traces = {_key(sender, trace_id): memory.trace(sender, trace_id) for trace_id in trace_ids}
    keys = list(traces)
    for at in range(0, len(keys), BLOCK):
        rows = TelemetryTrace.objects.filter(key__in=keys[at : at + BLOCK])
        fields = rows.values_list("key", "conversation__key", "conversation__is_staged", "counted")
        for key, conversation, is_hidden, counted in fields:
            _take_over(traces[key], "" if is_hidden else conversation, counted)


def _take_over(trace: Trace, conversation: str, counted: str) -> None:
    if not trace.conversation and conversation != trace.own_key:
        trace.conversation = conversation
    if trace.stored != (conversation, counted):
        trace.counted.add(counted)
        trace.stored = conversation, counted


def changed(memory: Memory, sender: str, trace_ids: Sequence[str]) -> list[TraceRow]:
    """Return the rows of those traces of which something is known that is not stored, in the order of their keys."""
    rows: list[TraceRow] = []
    for trace_id in trace_ids:
        trace = memory.trace(sender, trace_id)
        if not (trace.conversation or trace.counted.within or trace.counted.around):
            continue  # most traces: they are not agents'
        row = TraceRow(_key(sender, trace_id), trace.conversation or trace.own_key, trace.counted.as_json())
        if row[1:] != trace.stored:
            rows.append(row)
    return sorted(rows)  # so that no two processes wait for each other


def save(rows: Sequence[TraceRow]) -> None:
    """Write the rows of traces of which events are stored."""
    for at in range(0, len(rows), BLOCK):
        block = rows[at : at + BLOCK]
        with log.write_transaction():
            conversations = Conversation.objects.filter(key__in={row.conversation for row in block}, is_staged=False)
            ids = dict(conversations.values_list("key", "pk"))
            made = [
                TelemetryTrace(key=row.key, conversation_id=ids[row.conversation], counted=row.counted)
                for row in block
                if row.conversation in ids
            ]
            TelemetryTrace.objects.bulk_create(
                made, update_conflicts=True, unique_fields=["key"], update_fields=["conversation", "counted"]
            )


def _key(sender: str, trace_id: str) -> str:
    return text_digest(f"{sender}\n{trace_id}")
