"""Event → row deltas (law I). The same fold serves `log.append` and `rebuild`.

| event | messages | tool_calls | errors | else |
|---|---|---|---|---|
| message | +1, unless it repeats an output (§3.1) | | | participants, last line |
| output | +1 | | | last line, unless it is of a run inside a call; without a run it ends the preview |
| tool_step that starts a call, or ends one that never started | | +1 | | a tool call row |
| tool_step with an error | | | +1 | the call's end |
| the first that says something, not the system's | | | | title, where none is given (`captions`) |
| conversation.opened, ours or an import's | | | | title; ours: handler, demo, parent |
| conversation.paused, resumed, taken_over, handed_back, by a person or the system | | | | state, owner (`control`) |
| response.received | | | | participants, last line |
| model.turn, ours; an output without a run that tells what it spent | | | | a turn's row, sums (`turns`, `usage`) |
| response.completed, ours | | | | its response row's end (`responses`) |
| response.deleted, by a person or the system | | | | its response row is reached no more (`responses`) |
| run.failed, run.interrupted, run.incompatible, record.gap, ours | | | | a cause of an alarm, when first stored |
| conversation.forked | | | | title, handler, parent, which events are copies (`forks`) |
| a fork's copy of the above: only what the first two lines, response.received and event.annotated fold | | | | |
| event.annotated, by a person | | | | an annotation's row (`event_annotations`) |
| run.*, conversation.handler, ours | | | failed: +1 | a run's row, the handler (`runs`) |
| approval.*, policy.refused, replay.requested, ours | | | | rows of approvals and calls (`approvals`, `tool_calls`) |
| model.call of an external agent, with an error | | | +1 | |
| anything else (no redaction) | | | | last_at, recent activity; whether one from outside has spoken (`token_access`) |

Claims (principals not ours) change counters, participants and observed calls, never a run, a state or a call of ours.
An import names the conversations it makes: a title is a caption, no state.
"""

from __future__ import annotations

from conversations.core import principals
from conversations.events.event_type import TYPES
from conversations.events.projections import token_access
from conversations.events.projections.messages import (
    ECHO_WITHIN,
    ECHOING,
    SpokenMessages,
    mark_output,
    repeats_message,
    repeats_output,
)
from conversations.events.projections.open_calls import FoldedCall
from conversations.events.projections.participants import kind_of
from conversations.events.projections.row_changes import (
    AlarmCauseRow,
    AnnotationRow,
    ApprovalEnd,
    ApprovalRow,
    ConversationHead,
    EventFacts,
    ResponseRow,
    RowChanges,
    RunRow,
    RunStep,
    TurnRow,
    UsageRow,
)
from conversations.events.projections.tool_calls import is_call_start

__all__ = [
    "ECHOING",
    "ECHO_WITHIN",
    "AlarmCauseRow",
    "AnnotationRow",
    "ApprovalEnd",
    "ApprovalRow",
    "ConversationHead",
    "EventFacts",
    "FoldedCall",
    "ResponseRow",
    "RowChanges",
    "RunRow",
    "RunStep",
    "SpokenMessages",
    "TurnRow",
    "UsageRow",
    "fold",
    "is_call_start",
    "kind_of",
    "mark_output",
    "repeats_message",
    "repeats_output",
]


def fold(changes: RowChanges, head: ConversationHead, kind: str, event: EventFacts) -> None:
    """Fold one event into its conversation's head and the batch's changes. `head.head_seq` is its seq already."""
    head.was_repeatable, head.repeatable = head.repeatable, ""
    event_type, principal = TYPES.get(kind), event.principal
    has_effect = event_type is None or event_type.authority is None or event_type.may_be_said_by(principal)
    if event_type is None or event_type.is_activity or not has_effect:
        head.count(event.at)
    if head.head_seq == 1 or not (head.outside_seq or changes.hosts.get(principal)):
        token_access.take_in(changes, head, event)
    if head.head_seq <= head.copied_seq and (event_type is None or not event_type.is_copied):
        _fold_copy(changes, head, event)
        return
    if event_type is None:
        return
    if event_type.alarm and not changes.is_whole and principals.is_ours(principal):
        changes.alarm_causes.append(AlarmCauseRow(head.id, head.head_seq, event_type.alarm, event.at, event.run))
    if has_effect and event_type.fold is not None:
        event_type.fold(changes, head, event)


def _fold_copy(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Fold a fork's copy that says nothing: of what was done there only who took part is counted here."""
    if event.payload.event == "tool_step" and event.payload.speaker:
        changes.participants[head.id, event.payload.speaker] = kind_of(event.payload.speaker)
