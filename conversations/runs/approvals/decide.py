"""Decide approval requests: each is created by a waiting run and decided once, by a person or by an auto-approval rule
(law E). The last decision of a run queues it again, for a worker (`agents_app/worker/worker.py`)."""

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from conversations.access import four_eyes
from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.core.ids import new_id, text_digest
from conversations.core.micros import to_datetime
from conversations.core.principals import Principal
from conversations.events import log
from conversations.models import Approval, AutoApprovalRule, Conversation, Event, Run
from conversations.models.run import EXTERNAL
from conversations.runs.approvals import auto_approval_rules, external_approvals, input_authors, request_terms
from conversations.runs.budgets import budget_requests
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.replay import eligibility
from conversations.tool_calls.schemas import argument_check

DECISIONS = ("approve", "reject", "respond", "edit")
MAX_OUTPUT = 256 * 1024  # characters of an answer that a person gives
MAX_AT_ONCE = 200  # decisions of one request


class DecisionInput(NamedTuple):
    """A decision. `output` belongs to respond, `arguments` (an object, or its text) to edit."""

    decision: str
    message: str = ""
    reason: str = ""
    output: str | None = None
    arguments: dict[str, Any] | str | None = None


class DecisionOutcome(NamedTuple):
    """The result for one of several requests: the approval as `decided`, or the error."""

    approval: str
    decided: Approval | None
    error: SwitchboardError | None


def decide(by: Who, approval: str, decision: str, **more: Any) -> Approval:
    """Decide about a tool call; the run is queued again once nothing else is pending. `more` are the fields of
    `DecisionInput`.

    Raises `Conflict` if somebody else decided first (code already_decided) or the request has ended (cancelled,
    expired, run_over), `NotAllowed` without the permission or because of four eyes, `NotFound`, `Invalid`.
    """
    answer = DecisionInput(decision, **more)
    with audited_action(by, "decide", f"approval:{approval}", right="decide") as principal:
        row = apply_decision(principal, approval, answer)
    row.refresh_from_db()
    return row


def decide_each(by: Who, approvals: Collection[str], decision: str, **more: Any) -> list[DecisionOutcome]:
    """Decide several requests, each in a separate transaction: a failure does not affect the others."""
    if not 1 <= len(approvals) <= MAX_AT_ONCE:
        raise Invalid(f"must have 1 to {MAX_AT_ONCE} items; got {len(approvals):,}", field="approvals")
    if decision not in ("approve", "reject"):
        raise Invalid("must be approve or reject for several calls at once", field="decision")
    return [_outcome(by, approval, decision, **more) for approval in dict.fromkeys(approvals)]


def apply_decision(principal: Principal, approval: str, answer: DecisionInput, **beside: object) -> Approval:
    """Decide inside an action; `beside` is added to the event. Raises like `decide`."""
    row = Approval.objects.filter(id=approval).first()
    if row is None:
        raise NotFound(f"there is no approval {approval[:80]}")
    conversation = Conversation.objects.locked(row.conversation_id)
    row.refresh_from_db()
    if row.status != "pending":
        raise _closed_error(row)
    run = _require_waiting_run(row)
    request = request_body(row)
    if (ended_at := request_terms.expired_at(row, request)) is not None:  # a worker has yet to end it
        raise _expired_error(ended_at)
    _require_other_eyes(principal, run, request)
    eligibility.require_second_approver(principal, row, run)
    if budget_requests.is_budget(request):
        budget_requests.check(answer.decision)
    _require_accepted(request, answer.decision)
    body = _decision_body(row, answer, request) | beside
    store_decision(principal, row, conversation.key, run, body)
    if budget_requests.is_budget(request) and answer.decision == "approve":
        budget_requests.give(row, request)
    correlation = {"conversation": conversation.key, "run": run.id, "call": row.tool_call, "decision": answer.decision}
    before = chain.digest({"args_raw": request.get("args_raw")}) if answer.decision == "edit" else ""
    chain.add_entry(
        principal, "decide", f"approval:{approval}", reason=answer.reason, correlation=correlation, before=before,
        after=chain.digest({name: body[name] for name in ("decision", "output", "args_raw") if name in body}),
    )  # fmt: skip
    return row


def store_decision(principal: Principal, approval: Approval, key: str, run: Run, body: Body) -> None:
    """Store the decision of a request, with the conversation locked. Raises `Conflict` if it already has one."""
    # The conditional update only guards against a race; the fold of `approval.decided` sets the same status.
    if not Approval.objects.filter(id=approval.id, status="pending").update(status="decided"):
        approval.refresh_from_db()
        raise _closed_error(approval)
    _append_decision(principal, key, run, body)


def requeue_or_end_if_decided(writer: Principal, key: str, run: Run, fields: Body, reason: str) -> None:
    """Queue a run again whose last request is decided; a run that represents an external agent ends instead."""
    if Approval.objects.filter(run=run.id, status="pending").exists():
        return
    is_external = run.kind == EXTERNAL
    status = "done" if is_external else "queued"
    # As above: the update guards against a race, and the fold of the event sets the same status.
    if Run.objects.filter(id=run.id, status="waiting").update(status=status):
        ended: Body = {"event": "run.done", "run_kind": EXTERNAL}
        body: Body = ended if is_external else {"event": "run.resumed", "reason": reason}
        log.append([log.from_internal(key, {"id": new_id(), **fields, **body}, writer)])


def request_body(approval: Approval) -> Body:
    """Read the event that requested approval."""
    events = Event.objects.filter(conversation=approval.conversation_id, seq=approval.asked_seq)
    request: Body = json.loads(events.values_list("body", flat=True).get())
    return request


def authors(run: Run) -> set[str]:
    """Return the people behind the input of a run (`input_authors`)."""
    return input_authors.of_runs([run.id])[run.id]


def _outcome(by: Who, approval: str, decision: str, **more: Any) -> DecisionOutcome:
    try:
        return DecisionOutcome(approval, decide(by, approval, decision, **more), None)
    except SwitchboardError as error:
        return DecisionOutcome(approval, None, error)


def _require_waiting_run(approval: Approval) -> Run:
    run = Run.objects.get(id=approval.run)
    if run.status != "waiting":
        raise Conflict(f"the run is no longer waiting: it is {run.status}", code="run_over")
    external_approvals.require_external_lease(run)
    return run


def _require_other_eyes(principal: Principal, run: Run, request: Body) -> None:
    """Raise NotAllowed if the policy as it is now requires four eyes and this is one of the people behind the input."""
    call = auto_approval_rules.call_of(request)
    terms = request_terms.of_call(evaluate.about(call.agent, call.tool))
    if terms.four_eyes and four_eyes.is_among(str(principal), authors(run)):
        raise NotAllowed(
            f"{principal} wrote or sent the message behind this run, so someone else has to decide (four eyes)",
            code="four_eyes",
        )


def _decision_body(approval: Approval, answer: DecisionInput, request: Body) -> Body:
    """Return the body of `approval.decided`. Raises Invalid for an invalid decision."""
    body: Body = {"event": "approval.decided", "approval_id": approval.id, "tool_call": approval.tool_call}
    body["decision"] = answer.decision
    body |= {name: text for name in ("message", "reason") if (text := getattr(answer, name))}
    if answer.decision not in DECISIONS:
        raise Invalid(f"must be one of {', '.join(DECISIONS)}", field="decision")
    if answer.output is not None and answer.decision != "respond":
        raise Invalid("must only be given with the decision respond", field="output")
    if answer.arguments is not None and answer.decision != "edit":
        raise Invalid("must only be given with the decision edit", field="arguments")
    if answer.decision == "respond":
        return body | {"output": _output(answer.output)}
    if answer.decision == "edit":
        return body | _edited(request, answer.arguments)
    return body


def _output(output: str | None) -> str:
    if output is None:
        raise Invalid("must be the output to give the agent", field="output")
    if len(output) > MAX_OUTPUT:
        raise Invalid(f"must be at most {MAX_OUTPUT:,} characters", field="output")
    return output


def _edited(request: Body, arguments: dict[str, Any] | str | None) -> Body:
    if arguments is None:
        raise Invalid("must be the arguments to run with", field="arguments")
    read, text = argument_check.read(
        arguments, str(request.get("schema") or ""), drops_unknown=request.get("origin") == argument_check.FUNCTION
    )
    digest = text_digest(text)
    return {"args": read, "args_raw": text, "digest": digest}


def _append_decision(principal: Principal, key: str, run: Run, body: Body) -> None:
    """Append the decision and, if it was the last one that the run waited for, queue the run."""
    writer, by_whom = event_author(principal)
    fields: Body = {"run_id": run.id, "agent": run.agent, **by_whom}
    log.append([log.from_internal(key, {"id": new_id(), **fields} | body, writer)])
    requeue_or_end_if_decided(writer, key, run, fields, str(body["decision"]))


def _require_accepted(request: Body, decision: str) -> None:
    """Raise `Invalid` for a decision that the requester does not accept."""
    accepted = request.get("decisions")
    if isinstance(accepted, list) and decision not in accepted:
        raise Invalid(f"must be {' or '.join(map(str, accepted))} for this call", field="decision")


def _closed_error(approval: Approval) -> Conflict:
    at = _shown_time(approval.decided_at or 0)
    if approval.status == "cancelled":
        message = f"the approval request was withdrawn: {approval.decided_by} ended its run at {at}"
        return Conflict(message, code="cancelled")
    if approval.status == "expired":
        return _expired_error(approval.decided_at or 0)
    who = f"an auto-approval rule by {_maker(approval.rule)}" if approval.rule else approval.decided_by
    return Conflict(f"{who} already decided: {approval.decision}, at {at}", code="already_decided")


def _expired_error(at: int) -> Conflict:
    return Conflict(f"the approval request expired at {_shown_time(at)}", code="expired")


def _shown_time(at: int) -> str:
    return to_datetime(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def _maker(rule: str) -> str:
    return AutoApprovalRule.objects.filter(id=rule).values_list("made_by", flat=True).first() or "somebody"
