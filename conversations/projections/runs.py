"""Run and approval events → row deltas (law I). Only ours change anything; a claim from outside is stored and shown.

| event, ours | run | tool call | else |
|---|---|---|---|
| run.queued | a row, queued | | |
| run.started | running, attempt | | |
| run.waiting | waiting, reason | | |
| run.resumed | queued | | |
| run.done | done, ended | | |
| run.cancelled, incompatible, interrupted | that status, ended | its `calls`: unknown; never entered ones: blocked | |
| run.failed | failed, reason, ended | as above | errors +1 |
| approval.requested | | a row, waiting | an approval, pending |
| approval.decided | | approved, or rejected and ended | the approval, decided |
| approval.cancelled, expired | | blocked and ended, where it still waits | the approval, that status |
| approval.escalated | | | whom it was told to; it stays pending |
| policy.refused | | blocked and ended | |
| replay.requested | | a row, called | |
| conversation.handler | | | the handler |

`log.append` itself adds an approval.cancelled for each question that is open when its run ends (`log/closing.py`). The
call is `blocked`, not `rejected`: nobody said no to it; its run ended, or its time was up, before it could be entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import msgspec

from conversations import principals
from conversations.projections.calls import change, end, start_call
from conversations.projections.state import ApprovalRow, CallRow, Decision, Facts, Fold, Head, Rule, RunRow, RunStep


class Told(msgspec.Struct, kw_only=True):
    """What the fold reads of these events; written by us alone, so strictly."""

    agent: str = ""
    run_kind: str = "agent"
    input_seq: int = 0
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

_decoder = msgspec.json.Decoder(Told)


def read(body: str) -> Told:
    """Read one of ours."""
    return _decoder.decode(body)


def of_ours(rule: Callable[[Fold, Head, Facts, Told], None]) -> Rule:
    """Make a rule that passes over claims (law I)."""

    def apply(changes: Fold, head: Head, facts: Facts) -> None:
        if principals.is_ours(facts.principal):
            rule(changes, head, facts, read(facts.body))

    return apply


@of_ours
def _queued(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    if facts.run is None:
        return
    changes.run_steps.pop((head.id, facts.run), None)
    changes.runs[facts.run] = RunRow(
        id=facts.run,
        conversation_id=head.id,
        kind=told.run_kind[:10],
        agent=told.agent[:200],
        status="queued",
        reason="",
        parent_call=told.parent_call,
        input_seq=told.input_seq,
        queued_seq=head.head_seq,
    )


def _step(status: str, *, is_end: bool = False) -> Rule:
    return of_ours(partial(_apply, status, is_end))


def _apply(status: str, is_end: bool, changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    if facts.run is None:
        return
    ended_seq = head.head_seq if is_end else None
    attempt = told.attempt or None
    row = changes.runs.get(facts.run)
    reason = (told.reason or "")[:200]
    if row is not None:
        row.status, row.reason, row.ended_seq, row.attempt = status, reason, ended_seq, attempt or row.attempt
    else:
        before = changes.run_steps.get((head.id, facts.run))
        kept = attempt or (before.attempt if before else None)
        changes.run_steps[head.id, facts.run] = RunStep(status, reason, ended_seq, kept)
    head.errors += status == "failed"
    for call in _open_calls(changes, head, facts.run) if is_end and status != "done" else ():
        if call.id in told.calls:
            end(changes, head, call, "unknown")
        elif call.status in NEVER_ENTERED:
            end(changes, head, call, "blocked")


@of_ours
def _asked(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    if facts.run is None or not told.approval_id:
        return
    call = next((c for c in _open_calls(changes, head, facts.run) if c.id == told.tool_call), None)
    if call is None:
        call = start_call(changes, head, facts)
    change(changes, call, "waiting")
    changes.approvals[told.approval_id] = ApprovalRow(
        told.approval_id[:64], head.id, call.id, facts.run, head.head_seq, facts.at, _moment(told.deadline)
    )


@of_ours
def _decided(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    by = (told.by or facts.principal)[:160]
    rule = told.rule[:64] if isinstance(told.rule, str) else None
    _settle(changes, told, Decision("decided", told.decision[:10], by, facts.at, head.head_seq, rule))
    call = next((c for c in changes.open_calls.get(head.id, ()) if c.id == told.tool_call), None)
    if call is None:
        return
    call.approver = by
    if told.decision == "reject":
        end(changes, head, call, "rejected")
    else:
        change(changes, call, "approved")


def _closed(status: str) -> Rule:
    return of_ours(partial(_close, status))


def _close(status: str, changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    _settle(changes, told, Decision(status, None, facts.principal, facts.at, head.head_seq))
    call = next((c for c in changes.open_calls.get(head.id, ()) if c.id == told.tool_call), None)
    if call is not None and call.status == "waiting":
        end(changes, head, call, "blocked")


def _settle(changes: Fold, told: Told, decision: Decision) -> None:
    row = changes.approvals.get(told.approval_id)
    if row is None:
        changes.decisions[told.approval_id] = decision
        return
    row.status, row.decision, row.decided_by = decision.status, decision.decision, decision.decided_by
    row.decided_at, row.decided_seq, row.rule = decision.decided_at, decision.decided_seq, decision.rule


@of_ours
def _escalated(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    row, to = changes.approvals.get(told.approval_id), told.to[:20]
    if row is None:
        changes.escalations[told.approval_id] = to, head.head_seq
    else:
        row.escalated_to, row.escalated_seq = to, head.head_seq


@of_ours
def _refused(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    call = next((c for c in _open_calls(changes, head, facts.run) if c.id == told.tool_call), None)
    if facts.run is not None:
        end(changes, head, call or start_call(changes, head, facts), "blocked")


@of_ours
def _replay(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    if facts.run is not None and told.tool_call:
        start_call(changes, head, facts)


@of_ours
def _handler(changes: Fold, head: Head, facts: Facts, told: Told) -> None:
    head.handler = told.handler[:200]


def _moment(text: str | None) -> int | None:
    """Read a deadline, µs UTC; one that is none counts as none."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * 1_000_000 + at.microsecond


def _open_calls(changes: Fold, head: Head, run: str | None) -> Iterator[CallRow]:
    return (call for call in list(changes.open_calls.get(head.id, ())) if call.run == run)


RULES: dict[str, Rule] = {
    "run.queued": _queued,
    "run.started": _step("running"),
    "run.waiting": _step("waiting"),
    "run.resumed": _step("queued"),
    "run.done": _step("done", is_end=True),
    "run.failed": _step("failed", is_end=True),
    "run.cancelled": _step("cancelled", is_end=True),
    "run.interrupted": _step("interrupted", is_end=True),
    "run.incompatible": _step("incompatible", is_end=True),
    "approval.requested": _asked,
    "approval.decided": _decided,
    "approval.escalated": _escalated,
    "approval.cancelled": _closed("cancelled"),
    "approval.expired": _closed("expired"),
    "policy.refused": _refused,
    "replay.requested": _replay,
    "conversation.handler": _handler,
}
