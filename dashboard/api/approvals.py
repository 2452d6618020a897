"""Approval requests listed, read and decided: `/api/v1/approvals/…` (§3.6). The form of the pages posts to
`dashboard/pages/approvals.py` instead."""

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from conversations.core.errors import Conflict
from conversations.core.micros import to_datetime
from conversations.events import recorded_arguments
from conversations.models import Approval
from conversations.runs.approvals import decide, inbox, request_terms
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import LIMIT, limit_of, read_body
from dashboard.api.schemas import core
from dashboard.api.schemas.auto_approvals import DecidedMany, ToDecideMany
from dashboard.api.schemas.core import ToDecide
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation(
        "List approval requests, newest first; `pending` ones can be decided.",
        {200: core.Approvals},
        query={"status": one_of(inbox.STATUSES), "before": TEXT, "limit": LIMIT},
    )
)
@require_permission("view")
def approvals(request: HttpRequest) -> JsonResponse:
    """Return approval requests newest first; `before` is a cursor."""
    rows, cursor = inbox.page(
        status=request.GET.get("status", ""),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
    )
    return JsonResponse({"items": [_item(row) for row in rows], "cursor": cursor})


@endpoint(get=Operation("Read one approval request.", {200: core.Approval}))
@require_permission("view")
def approval(request: HttpRequest, id: str) -> JsonResponse:
    """Return one approval request."""
    return JsonResponse(_item(inbox.find(id)))


@endpoint(
    post=Operation("Decide an approval request, once.", {200: core.Decided, 409: core.AlreadyDecided}, body=ToDecide)
)
@require_permission("decide")
def decision(request: HttpRequest, id: str) -> JsonResponse:
    """Decide an approval request: 200 with the decision, its author and time, or 409 with the same fields:
    `already_decided`, or `cancelled` or `expired` if the request has ended."""
    body = read_body(request, ToDecide)
    try:
        approval = decide.decide(request.user, id, **body.model_dump())
    except Conflict as error:
        first = Approval.objects.filter(id=id).exclude(status="pending").first()
        if error.code not in ("already_decided", "cancelled", "expired") or first is None:
            raise
        return JsonResponse({"error": error.as_dict() | _decision_item(first)}, status=error.status)
    return JsonResponse({"approval_id": approval.id, "run_id": approval.run, **_decision_item(approval)})


@endpoint(
    post=Operation("Decide several approval requests; each has its own result.", {200: DecidedMany}, body=ToDecideMany)
)
@require_permission("decide")
def decisions(request: HttpRequest) -> JsonResponse:
    """Decide several requests: 200 with a result for each, in order; a failure does not affect the others."""
    body = read_body(request, ToDecideMany)
    more = {"message": body.message, "reason": body.reason}
    done = decide.decide_each(request.user, body.approvals, body.decision, **more)
    return JsonResponse({"items": [_outcome_item(outcome) for outcome in done]})


def _item(card: inbox.ApprovalCard) -> dict[str, object]:
    row, request = card.row, card.request
    at = to_datetime(row.decided_at).isoformat() if row.decided_at else None
    layers = ("name", "namespace", "qualified_name", "lookup_key", "origin", "mcp_server", "schema")
    return {
        "approval_id": row.id,
        "conversation_id": card.key,
        "run_id": row.run,
        "tool_call": row.tool_call,
        "tool_call_id": request.get("tool_call_id"),
        "agent": request.get("agent"),
        **{name: request.get(name) for name in layers},
        "arguments": request.get("args"),
        "args_raw": request.get("args_raw"),
        "ran_with": request.get("args") if card.edited is None else recorded_arguments.value_of(card.edited),
        "changed_by": None if card.edited is None else row.decided_by,
        "why": request.get("why"),
        "effect": card.effect,
        "decisions": sorted(card.decisions),
        "asked_seq": row.asked_seq,
        "asked_at": card.asked_at.isoformat(),
        "deadline": card.deadline.isoformat() if card.deadline else None,
        "on_expiry": card.on_expiry,
        "notify": request_terms.terms_of_request(request)[1] if card.on_expiry == "notify" else None,
        "escalated_to": row.escalated_to or None,
        "four_eyes": card.terms.four_eyes,
        "status": row.status,
        "decision": row.decision,
        "by": row.decided_by,
        "at": at,
        "rule": row.rule,
        "version": card.version,
        "url": reverse("approval", args=[row.id]),
    }


def _outcome_item(outcome: decide.DecisionOutcome) -> dict[str, object]:
    if outcome.error is None:
        return {"approval_id": outcome.approval, "status": 200}
    first = Approval.objects.filter(id=outcome.approval).exclude(status="pending").first()
    fields = _decision_item(first) if first is not None and isinstance(outcome.error, Conflict) else {}
    return {"approval_id": outcome.approval, "status": outcome.error.status, "error": outcome.error.as_dict() | fields}


def _decision_item(approval: Approval) -> dict[str, str]:
    at = to_datetime(approval.decided_at or 0).isoformat()
    return {"by": approval.decided_by or "", "at": at, "decision": approval.decision or "", "status": approval.status}
