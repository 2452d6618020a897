"""Read a response from the record: the request, the progress of its run, and its end. Sync; used by the endpoint of
`/v1/responses/{id}` and by deletion and cancellation."""

import json
from typing import Any, NamedTuple

from conversations.events.log.records import Stored
from conversations.events.response_ids import DELETED
from conversations.models import Event, Response, Run

ERASED: dict[str, Any] = {  # what is read of a request whose words were redacted
    "model": "", "previous_response_id": None, "instructions": None, "input": [], "tools": [], "tool_choice": "auto",
    "allowed_tools": None, "params": {}, "store": True, "stream": False,
}  # fmt: skip


class StoredResponse(NamedTuple):
    """A response. `run_status` and `run_reason` show its progress while there is no `end`."""

    id: str
    conversation: str
    run: str
    asked_by: str
    """the principal, as the record names it"""
    is_stored: bool
    seq: int
    """its run.queued's: all that comes of it follows"""
    at: int
    """µs UTC, when it was asked for"""
    body: dict[str, Any]
    """of its response.received"""
    must_wait: bool
    run_status: str
    run_reason: str
    end: Stored | None
    """what ended it: its response.completed, else its run's end"""


def row_of(response: str) -> Response | None:
    """Find the row of a response that is not deleted."""
    return Response.objects.exclude(status=DELETED).filter(id=response).select_related("conversation").first()


def asker_of(row: Response) -> str:
    """Return the principal that requested a response; empty if it is not recorded."""
    events = Event.objects.filter(conversation=row.conversation_id, seq=row.in_seq)
    return events.values_list("principal", flat=True).first() or ""


def find(response: str) -> StoredResponse | None:
    """Read a response; None if it does not exist or was deleted."""
    row = row_of(response)
    run = Run.objects.filter(id=row.run).first() if row is not None else None
    if row is None or run is None:
        return None
    end_seq = row.out_seq or run.ended_seq
    events = {event.seq: event for event in _events(row, [row.in_seq, row.in_seq + 1, end_seq or 0])}
    if (received := events.get(row.in_seq)) is None:
        return None
    queued = events.get(row.in_seq + 1)
    return StoredResponse(
        row.id,
        row.conversation.key,
        row.run,
        received.principal,
        row.store,
        row.in_seq + 1,
        received.at,
        ERASED | json.loads(received.body),
        queued is not None and json.loads(queued.body).get("must_wait") is True,
        run.status,
        run.reason,
        events.get(end_seq) if end_seq else None,
    )


def _events(row: Response, seqs: list[int]) -> list[Stored]:
    names = ("seq", "kind", "at", "principal", "run", "turn", "event_id", "body")
    rows = Event.objects.filter(conversation=row.conversation_id, seq__in=seqs).values_list(*names)
    return [Stored(row.conversation.key, *event) for event in rows]
