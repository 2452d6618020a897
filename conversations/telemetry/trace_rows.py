"""Keep what is known of traces in the database, for other processes and after a restart. Called by the telemetry
endpoint: before a request is read, and once its events are stored."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from conversations.core.ids import text_digest
from conversations.events import log
from conversations.events.log.sql import marks, rows_of
from conversations.events.log.sql_blocks import execute_rows
from conversations.telemetry.intake import Memory, Trace

BLOCK = 500  # rows of one query
_ROWS = """SELECT t.key,c.key,c.is_staged,t.counted FROM conversations_telemetrytrace t
JOIN conversations_conversation c ON c.id=t.conversation_id WHERE t.key IN"""
_PLACES = "SELECT key,id FROM conversations_conversation WHERE NOT is_staged AND key IN"
_SAVE = """INSERT INTO conversations_telemetrytrace(key,conversation_id,counted) VALUES %s
ON CONFLICT(key) DO UPDATE SET conversation_id=excluded.conversation_id,counted=excluded.counted"""


class TraceRow(NamedTuple):
    """A row to write: its key, the conversation's, and what is counted as JSON."""

    key: str
    conversation: str
    counted: str


def load(memory: Memory, sender: str, trace_ids: Sequence[str]) -> None:
    """Add to the memory what any process has stored of these traces."""
    traces = {_key(sender, trace_id): memory.trace(sender, trace_id) for trace_id in trace_ids}
    keys = list(traces)
    with connection.cursor() as cursor:
        for at in range(0, len(keys), BLOCK):
            block = keys[at : at + BLOCK]
            for key, conversation, is_hidden, counted in rows_of(cursor, f"{_ROWS} ({marks(len(block))})", block):
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
        keys = sorted({row.conversation for row in block})
        with log.write_transaction(), connection.cursor() as cursor:
            ids = dict(rows_of(cursor, f"{_PLACES} ({marks(len(keys))})", keys))
            values: list[str | int] = []
            for row in block:
                if row.conversation in ids:
                    values += (row.key, ids[row.conversation], row.counted)
            execute_rows(cursor, _SAVE, 3, values)


def _key(sender: str, trace_id: str) -> str:
    return text_digest(f"{sender}\n{trace_id}")
