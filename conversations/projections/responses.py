"""Response events → row deltas (law I): what was asked for by a client, and what came of it.

A response's row is made from its `run.queued`, which is ours; `response.received` carries the asker's own words, so it
moves the caption and the participants only.
"""

from __future__ import annotations

import msgspec

from conversations import envelopes, principals
from conversations.projections import runs
from conversations.projections.participants import take_part
from conversations.projections.state import Facts, Fold, Head, ResponseRow, Rule
from conversations.responses import words_of

LINE = 400  # characters looked at for a caption


class Queued(msgspec.Struct, kw_only=True):
    """What the fold reads of a run that answers a response."""

    response_id: str | None = None
    previous_response_id: str | None = None
    input_seq: int = 0
    store: bool = True
    socket: str = ""


class Completed(msgspec.Struct, kw_only=True):
    """What the fold reads of a response's end."""

    response_id: str = ""
    status: str = ""


_queued = msgspec.json.Decoder(Queued)
_completed = msgspec.json.Decoder(Completed)


def queued(changes: Fold, head: Head, facts: Facts) -> None:
    """Make the run's row, and the response's when it answers one."""
    runs.RULES["run.queued"](changes, head, facts)
    if facts.run is None or not principals.is_ours(facts.principal):
        return
    told = _queued.decode(facts.body)
    response = (told.response_id or "")[:64]
    if response:
        changes.answered.pop((head.id, response), None)
        changes.responses[response] = ResponseRow(
            id=response,
            conversation_id=head.id,
            previous=told.previous_response_id and told.previous_response_id[:64],
            run=facts.run,
            in_seq=told.input_seq,
            store=told.store,
            socket=told.socket[:64],
        )


def completed(changes: Fold, head: Head, facts: Facts) -> None:
    """End a response; a claim from outside ends none."""
    if facts.run is None or not principals.is_ours(facts.principal):
        return
    told = _completed.decode(facts.body)
    response, end = told.response_id[:64], (head.head_seq, told.status[:12])
    row = changes.responses.get(response)
    if row is not None:
        row.out_seq, row.status = end
    elif response:
        changes.answered[head.id, response] = end


def received(changes: Fold, head: Head, facts: Facts) -> None:
    """Take note of who asked whom, and of their last words for the list's line."""
    take_part(changes, head, facts.said)
    try:
        body = msgspec.json.decode(facts.body)
    except msgspec.DecodeError:
        body = {}
    line = envelopes.fit(words_of(body.get("input"))[:LINE]) if isinstance(body, dict) else ""
    if line:
        head.says = msgspec.structs.replace(facts.said, content=None, text=line)
        head.says_by = facts.principal


RULES: dict[str, Rule] = {"run.queued": queued, "response.received": received, "response.completed": completed}
