"""`/api/v1/approval-rules`: always rules listed, made, revoked."""

from django.http import HttpRequest, JsonResponse

from conversations.access import permissions
from conversations.core.micros import to_micros
from conversations.models import AlwaysRule
from conversations.runs.approvals import auto_approve, auto_rules_view
from conversations.runs.approvals import edit_auto_rules as actions
from conversations.runs.approvals.edit_auto_rules import Scope
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import LIMIT, limit_of, read_body
from dashboard.api.schemas import approval_rules
from dashboard.api.schemas.approval_rules import ToMakeRule, WithReason
from dashboard.pages.require_permission import require_permission


@endpoint(
    get=Operation(
        "List auto-approval rules, newest first; `live` ones can still approve calls.",
        {200: approval_rules.AlwaysRules},
        query={"state": one_of(auto_rules_view.STATES), "before": TEXT, "limit": LIMIT},
    ),
    post=Operation(
        "Create an auto-approval rule, on its own or while approving a request; approves waiting calls that match.",
        {201: approval_rules.MadeRule},
        body=ToMakeRule,
        errors=(404, 409),
    ),
)
@require_permission("view")
def rules(request: HttpRequest) -> JsonResponse:
    """GET lists rules newest first; `before` is a cursor. POST makes one, and applies it to what waits: 201 with the
    rule and the questions that rules answered."""
    if request.method == "POST":
        permissions.require(request.user, "decide")
        return _made(request, read_body(request, ToMakeRule))
    rows, cursor = auto_rules_view.page(
        state=request.GET.get("state", "live"),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
    )
    return JsonResponse({"items": [auto_rules_view.item(row) for row in rows], "cursor": cursor})


@endpoint(
    post=Operation(
        "Revoke an auto-approval rule; calls it approved stay approved.",
        {200: approval_rules.AlwaysRule},
        body=WithReason,
        errors=(409,),
    )
)
@require_permission("decide")
def revocation(request: HttpRequest, id: str) -> JsonResponse:
    """Revoke a rule: 200 with it, or 409 when somebody did."""
    body = read_body(request, WithReason)
    return JsonResponse(_item(actions.revoke_rule(request.user, id, reason=body.reason)))


def _made(request: HttpRequest, body: ToMakeRule) -> JsonResponse:
    until = body.until
    scope = Scope(
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
        rule = actions.approve_always(request.user, body.approval_id, scope, reason=body.reason)
    else:
        rule = actions.make_rule(request.user, scope, reason=body.reason)
    applied = auto_approve.approve_waiting()
    rule.refresh_from_db()
    return JsonResponse(_item(rule) | {"approved": applied}, status=201)


def _item(rule: AlwaysRule) -> dict[str, object]:
    (row,) = auto_rules_view.shown([rule])
    return auto_rules_view.item(row)
