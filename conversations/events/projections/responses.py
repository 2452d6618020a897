"""Response events → row deltas (law I): what was asked for by a client, and what came of it.

A response's row is made from its `run.queued`, which is ours; `response.received` carries the asker's own words, so it
moves the caption and the participants only.
"""

from __future__ import annotations

import msgspec

from conversations.events import payload
from conversations.events.projections import captions, runs
from conversations.events.projections.participants import add_participants
from conversations.events.projections.row_changes import ConversationHead, EventFacts, ResponseRow, RowChanges
from conversations.events.projections.token_access import may_let_in
from conversations.events.response_ids import DELETED, words_of

LINE = 400  # characters looked at for a caption


class Queued(msgspec.Struct, kw_only=True):
    """What the fold reads of a run that answers a response."""

    response_id: str | None = None
    previous_response_id: str | None = None
    input_seq: int = 0
    store: bool = True
    socket: str = ""


class Deleted(msgspec.Struct, kw_only=True):
    """What the fold reads of a response's deletion."""

    response_id: str = ""


class Completed(msgspec.Struct, kw_only=True):
    """What the fold reads of a response's end."""

    response_id: str = ""
    status: str = ""


_queued = msgspec.json.Decoder(Queued)
_completed = msgspec.json.Decoder(Completed)
_deleted = msgspec.json.Decoder(Deleted)


def queued(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Make the run's row, and the response's when it answers one."""
    runs.queued(changes, head, event)
    if event.run is None:
        return
    fields = _queued.decode(event.body)
    response = (fields.response_id or "")[:64]
    if response:
        changes.answered.pop((head.id, response), None)
        changes.deleted.discard((head.id, response))
        changes.responses[head.id, response] = ResponseRow(
            id=response,
            conversation_id=head.id,
            previous=fields.previous_response_id and fields.previous_response_id[:64],
            run=event.run,
            in_seq=fields.input_seq,
            store=fields.store,
            socket=fields.socket[:64],
        )


def completed(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """End a response."""
    if event.run is None:
        return
    fields = _completed.decode(event.body)
    response, end = fields.response_id[:64], (head.head_seq, fields.status[:12])
    row = changes.responses.get((head.id, response))
    if row is not None:
        row.out_seq, row.status = end[0], DELETED if row.status == DELETED else end[1]
    elif response:
        changes.answered[head.id, response] = end


def deleted(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Have a response reached no more."""
    if response := _deleted.decode(event.body).response_id[:64]:
        if (row := changes.responses.get((head.id, response))) is not None:
            row.status = DELETED
        else:
            changes.deleted.add((head.id, response))


def received(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Take note of who asked whom, and of their last words for the list's line."""
    add_participants(changes, head, event, lets_in=may_let_in(changes, head, event))
    try:
        body = msgspec.json.decode(event.body)
    except msgspec.DecodeError:
        body = {}
    line = payload.clean_text(words_of(body.get("input"))[:LINE]) if isinstance(body, dict) else ""
    if line:
        captions.speak(head, msgspec.structs.replace(event.payload, content=None, text=line), event.principal)
