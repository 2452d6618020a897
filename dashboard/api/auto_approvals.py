"""`/api/v1/approval-rules`: list, create and revoke auto-approval rules."""

from django.http import HttpRequest, JsonResponse

from conversations.access import permissions
from conversations.core.micros import to_micros
from conversations.models import AutoApprovalRule
from conversations.runs.approvals import auto_approval, auto_approval_edit, auto_approval_view
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import LIMIT, limit_of, read_body
from dashboard.api.schemas import auto_approvals
from dashboard.api.schemas.auto_approvals import ToMakeAutoApprovalRule, WithReason
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation(
        "List auto-approval rules, newest first; `live` ones can still approve calls.",
        {200: auto_approvals.AutoApprovalRules},
        query={"state": one_of(auto_approval_view.STATES), "before": TEXT, "limit": LIMIT},
    ),
    post=Operation(
        "Create an auto-approval rule, on its own or while approving a request; approves waiting calls that match.",
        {201: auto_approvals.MadeAutoApprovalRule},
        body=ToMakeAutoApprovalRule,
        errors=(404, 409),
    ),
)
@require_permission("view")
def rules(request: HttpRequest) -> JsonResponse:
    """List rules newest first (GET; `before` is a cursor), or create one (POST) and apply it to waiting requests: 201
    with the rule and the requests that rules approved."""
    if request.method == "POST":
        permissions.require(request.user, "decide")
        return _create(request, read_body(request, ToMakeAutoApprovalRule))
    rows, cursor = auto_approval_view.page(
        state=request.GET.get("state", "live"),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
    )
    return JsonResponse({"items": [auto_approval_view.item(row) for row in rows], "cursor": cursor})


@endpoint(
    post=Operation(
        "Revoke an auto-approval rule; calls it approved stay approved.",
        {200: auto_approvals.AutoApprovalRule},
        body=WithReason,
        errors=(409,),
    )
)
@require_permission("decide")
def revocation(request: HttpRequest, id: str) -> JsonResponse:
    """Revoke a rule: 200 with the rule, or 409 if it is already revoked."""
    body = read_body(request, WithReason)
    return JsonResponse(_item(auto_approval_edit.revoke_rule(request.user, id, reason=body.reason)))


def _create(request: HttpRequest, body: ToMakeAutoApprovalRule) -> JsonResponse:
    until = body.until
    scope = AutoApprovalScope(
        is_exact=body.match == "exact",
        arguments=body.arguments,
        any_agent=body.any_agent,
        agent=body.agent,
        tool=body.tool,
        schema=body.schema_hash,
        uses=body.uses,
        until=to_micros(until) if until else None,
    )
    if body.approval_id:
        rule = auto_approval_edit.approve_and_make_rule(request.user, body.approval_id, scope, reason=body.reason)
    else:
        rule = auto_approval_edit.make_rule(request.user, scope, reason=body.reason)
    applied = auto_approval.approve_waiting()
    rule.refresh_from_db()
    return JsonResponse(_item(rule) | {"approved": applied}, status=201)


def _item(rule: AutoApprovalRule) -> dict[str, object]:
    (row,) = auto_approval_view.shown([rule])
    return auto_approval_view.item(row)
