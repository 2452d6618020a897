"""What a batch changes beside the events: the rows that the fold reads and writes. Plain values, no query.

The fields of a row, `FoldedCall` too, are the columns of its table that the fold writes, in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from conversations.core import recent_activity
from conversations.events.payload import ParsedPayload
from conversations.events.projections.open_calls import FoldedCall, OpenCalls


@dataclass(slots=True)
class ConversationHead:
    """A conversation's row while it is locked: where the history ends and what is folded so far."""

    id: int
    key: str
    head_seq: int = 0
    head_hash: str = ""
    last_at: int = 0
    last_sender: str = ""
    last_line: str = ""
    last_by: str = ""
    messages: int = 0
    repeatable: str = ""
    activity: str = ""  # `core.recent_activity`, without `fresh`
    tool_calls: int = 0
    errors: int = 0
    preview_after: int = 0
    title: str = ""
    handler: str = ""
    is_demo: bool = False
    state: str = "open"
    owner: str = ""
    paused_seq: int = 0
    owned_seq: int = 0
    opened_by: str = ""
    outside_seq: int = 0
    key_digest: str = ""
    seldom: tuple[Any, ...] = ()  # `sql.SELDOM` as stored
    identity: str = ""  # `hash_chain.identity_of` its final id, looked up once
    copied_seq: int = 0  # known while copies are folded; else 0, since nothing is appended among them
    was_repeatable: str = ""  # `repeatable` before the event that is folded
    says: ParsedPayload | None = None  # what was said last, until `settle`
    says_by: str = ""  # by which principal
    fresh: int = 0  # events in the span of the last one, until `settle`

    def count(self, at: int) -> None:
        """Count an event at a moment (µs UTC) among the recent ones."""
        if at == self.last_at:  # one more of a batch
            self.fresh += 1
            return
        if spans := recent_activity.spans_between(self.last_at, at):
            self.activity, self.fresh = recent_activity.moved_on(self.activity, self.fresh, spans), 0
        self.fresh += 1
        self.last_at = at

    def settle(self) -> None:
        """Make the caption of what was said last, and the counts: of a whole batch only the last ones show."""
        self.activity, self.fresh = recent_activity.moved_on(self.activity, self.fresh, 0), 0
        if self.says is not None:
            self.last_sender = self.says.speaker
            self.last_by = _behind(self.says_by, self.last_sender)
            self.last_line = " ".join(self.says.words[:400].split())[:200]
            self.says = None


def _behind(principal: str, speaker: str) -> str:
    """Name the person who spoke under another's name; empty for everybody else."""
    return principal[5:] if principal != speaker and principal.startswith("user:") else ""


class RunRow(msgspec.Struct, gc=False):
    """A run's row, as far as the fold writes it."""

    id: str
    conversation_id: int
    kind: str
    agent: str
    status: str
    reason: str
    parent_call: str | None
    input_seq: int
    queued_seq: int
    ended_seq: int | None = None
    attempt: int = 0
    at_next_step: bool = False
    delivered_to: str = ""


class RunStep(msgspec.Struct, gc=False):
    """What a batch changes of a run it did not make. `attempt` None: as it was."""

    status: str
    reason: str
    ended_seq: int | None
    attempt: int | None = None
    delivered_to: str = ""


class ApprovalRow(msgspec.Struct, gc=False):
    """An approval's row."""

    id: str
    conversation_id: int
    tool_call: str
    run: str
    asked_seq: int
    asked_at: int
    deadline: int | None = None
    status: str = "pending"
    decision: str | None = None
    decided_by: str | None = None
    decided_at: int | None = None
    decided_seq: int | None = None
    rule: str | None = None
    escalated_to: str = ""
    escalated_seq: int | None = None


class ApprovalEnd(msgspec.Struct, gc=False):
    """What ends an approval: a decision, or what came before one. `status`: decided, cancelled or expired."""

    status: str
    decision: str | None
    decided_by: str
    decided_at: int
    decided_seq: int
    rule: str | None = None


class ResponseRow(msgspec.Struct, gc=False):
    """A response's row, as its run.queued tells it."""

    id: str
    conversation_id: int
    previous: str | None
    run: str
    in_seq: int
    store: bool
    socket: str
    out_seq: int | None = None
    status: str = ""


class TurnRow(msgspec.Struct, gc=False):
    """What one answer of a model spent, ours or as an external agent tells it."""

    conversation_id: int
    seq: int
    at: int
    agent: str
    model: str
    is_demo: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    run: str | None
    worked_ms: int


class UsageRow(msgspec.Struct, gc=False):
    """What an agent has spent in a conversation by one model, or with its tools: of one batch, or of all its events."""

    conversation_id: int
    key: str
    agent: str
    model: str
    is_demo: bool
    turns: int = 0
    unknown_turns: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    worked_ms: int = 0


class AnnotationRow(msgspec.Struct, gc=False):
    """What a person said about an event, without the words."""

    conversation_id: int
    seq: int
    about: int
    author: str
    thumb: str
    speaker: str
    at: int


class AlarmCauseRow(msgspec.Struct, gc=False):
    """An event that raises an alarm, noted for `conversations.alerts`."""

    conversation_id: int
    seq: int
    kind: str  # of the alarm
    at: int
    run: str | None


class RowChanges(msgspec.Struct):
    """What a batch changes beside the heads. `open_calls` holds stored calls that this batch may end."""

    is_whole: bool = False  # folded from the first event on: what the database holds may be of later
    participants: dict[tuple[int, str], str] = msgspec.field(default_factory=dict)
    named: set[tuple[int, str]] = msgspec.field(default_factory=set)  # participants whom somebody else spoke to
    reachable: set[tuple[int, str]] = msgspec.field(default_factory=set)  # who spoke from outside, or was spoken to
    # Persons to whom an agent spoke, and when first; no answer since.
    asked_at: dict[tuple[int, str], int] = msgspec.field(default_factory=dict)
    answered_by: set[tuple[int, str]] = msgspec.field(default_factory=set)  # persons who spoke before that, if any did
    met: set[tuple[Any, ...]] = msgspec.field(
        default_factory=set
    )  # who spoke to whom: folded once, however often it is
    new_calls: dict[str, FoldedCall] = msgspec.field(default_factory=dict)
    changed_calls: dict[str, FoldedCall] = msgspec.field(default_factory=dict)
    open_calls: defaultdict[int, OpenCalls] = msgspec.field(default_factory=lambda: defaultdict(OpenCalls))
    # Of observed calls, by conversation and seq, whose conversation's id was erased.
    call_ids: dict[tuple[int, int], str] = msgspec.field(default_factory=dict)
    uses: dict[tuple[int, str | None, str], int] = msgspec.field(default_factory=dict)
    runs: dict[tuple[int, str], RunRow] = msgspec.field(default_factory=dict)
    run_steps: dict[tuple[int, str], RunStep] = msgspec.field(default_factory=dict)
    approvals: dict[tuple[int, str], ApprovalRow] = msgspec.field(default_factory=dict)
    decisions: dict[tuple[int, str], ApprovalEnd] = msgspec.field(default_factory=dict)
    escalations: dict[tuple[int, str], tuple[str, int]] = msgspec.field(default_factory=dict)  # asked before: role, seq
    turns: list[TurnRow] = msgspec.field(default_factory=list)
    annotations: list[AnnotationRow] = msgspec.field(default_factory=list)
    usages: dict[tuple[int, str], UsageRow] = msgspec.field(default_factory=dict)  # what is added to the rows
    responses: dict[tuple[int, str], ResponseRow] = msgspec.field(default_factory=dict)
    answered: dict[tuple[int, str], tuple[int, str]] = msgspec.field(
        default_factory=dict
    )  # made before: out_seq, status
    deleted: set[tuple[int, str]] = msgspec.field(default_factory=set)  # responses that are reached no more
    token_agents: dict[str, str | None] = msgspec.field(default_factory=dict)  # looked up by `token_access`
    hosts: dict[str, bool] = msgspec.field(default_factory=dict)  # principals, and whether they let in (`token_access`)
    known_named: set[tuple[int, str]] = msgspec.field(
        default_factory=set
    )  # agents whom rows name, looked up by `token_access`
    forks: dict[int, tuple[str, int, int]] = msgspec.field(
        default_factory=dict
    )  # its parent's key, forked_at, copied_seq
    alarm_causes: list[AlarmCauseRow] = msgspec.field(default_factory=list)


Fold = Callable[[RowChanges, ConversationHead, "EventFacts"], None]


class EventFacts(msgspec.Struct, gc=False):
    """One event as the fold sees it: head.head_seq is already its seq."""

    payload: ParsedPayload
    at: int
    principal: str
    run: str | None
    body: str
