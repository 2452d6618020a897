"""Run events → row deltas (law I). Only ours change anything; a claim from outside is stored and shown.

| event, ours | run | tool call | else |
|---|---|---|---|
| run.queued | a row, queued | | |
| run.started | running, attempt | | |
| run.waiting | waiting, reason | | |
| run.resumed | queued | | |
| run.done | done, ended | | |
| run.delivered | delivered, ended: it never began | | |
| run.cancelled, incompatible, interrupted | that status, ended | its `calls`: unknown; never entered ones: blocked | |
| run.failed | failed, reason, ended | as above | errors +1 |
| policy.refused | | blocked and ended | |
| replay.requested | | a row, called (`tool_calls.replay_requested`) | |
| conversation.handler | | | the handler |

The folds of approvals are in `approvals.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from conversations.core import principals
from conversations.events.payload import clean_text
from conversations.events.projections.open_calls import FoldedCall
from conversations.events.projections.row_changes import ConversationHead, EventFacts, Fold, RowChanges, RunRow, RunStep
from conversations.events.projections.tool_calls import end, start_call


class RunEventFields(msgspec.Struct, kw_only=True):
    """What the fold reads of these events; written by us alone, so strictly."""

    agent: str = ""
    run_kind: str = "agent"
    input_seq: int = 0
    at_next_step: bool = False
    into: str = ""
    parent_call: str | None = None
    attempt: int = 0
    reason: str | None = None
    approval_id: str = ""
    tool_call: str = ""
    decision: str = ""
    handler: str = ""
    calls: list[str] = []
    by: str = ""
    deadline: str | None = None
    rule: str | dict[str, object] | None = None  # an id of approval.decided; of policy.refused a row
    to: str = ""


NEVER_ENTERED = ("called", "waiting", "approved")

_decoder = msgspec.json.Decoder(RunEventFields)


def read(body: str) -> RunEventFields:
    """Read one of ours."""
    return _decoder.decode(body)


def with_fields(fold: Callable[[RowChanges, ConversationHead, EventFacts, RunEventFields], None]) -> Fold:
    """Make a fold of a function that is also given the event's fields."""

    def apply(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
        fold(changes, head, event, read(event.body))

    return apply


def doer_of(event: EventFacts, fields: RunEventFields) -> str:
    """Return who did it: the event's principal. Only the system writes for others: for a token, which `by` names."""
    return principals.doer(event.principal, fields.by)[:160]


@with_fields
def queued(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Make the run's row."""
    if event.run is None:
        return
    changes.run_steps.pop((head.id, event.run), None)
    changes.runs[head.id, event.run] = RunRow(
        id=event.run,
        conversation_id=head.id,
        kind=fields.run_kind[:10],
        agent=fields.agent[:200],
        status="queued",
        reason="",
        parent_call=fields.parent_call,
        input_seq=fields.input_seq,
        queued_seq=head.head_seq,
        at_next_step=fields.at_next_step,
    )


def step(status: str, *, is_end: bool = False) -> Fold:
    """Return the fold of a step that a run takes."""
    return with_fields(partial(_apply, status, is_end))


def _apply(
    status: str, is_end: bool, changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields
) -> None:
    if event.run is None:
        return
    ended_seq = head.head_seq if is_end else None
    attempt = fields.attempt or None
    row = changes.runs.get((head.id, event.run))
    reason = clean_text((fields.reason or "")[:200])
    if row is not None:
        row.status, row.reason, row.ended_seq, row.attempt = status, reason, ended_seq, attempt or row.attempt
        row.delivered_to = fields.into[:64]
    else:
        before = changes.run_steps.get((head.id, event.run))
        last_attempt = attempt or (before.attempt if before else None)
        changes.run_steps[head.id, event.run] = RunStep(status, reason, ended_seq, last_attempt, fields.into[:64])
    head.errors += status == "failed"
    for call in changes.open_calls[head.id].of_run(event.run) if is_end and status != "done" else ():
        if call.id in fields.calls:
            end(changes, head, call, "unknown")
        elif call.status in NEVER_ENTERED:
            end(changes, head, call, "blocked")


@with_fields
def refused(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Block a call that a rule stopped."""
    call = _open_call(changes, head, event.run, fields.tool_call)
    if event.run is not None:
        end(changes, head, call or start_call(changes, head, event), "blocked")


@with_fields
def handler(changes: RowChanges, head: ConversationHead, event: EventFacts, fields: RunEventFields) -> None:
    """Note who answers from now on."""
    head.handler = fields.handler[:200]


def _open_call(changes: RowChanges, head: ConversationHead, run: str | None, id_: str) -> FoldedCall | None:
    call = changes.open_calls[head.id].find(id_)
    return call if call is not None and call.run == run else None
