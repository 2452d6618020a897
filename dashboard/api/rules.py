"""`/api/v1/approval-rules`: always rules listed, made, revoked."""

from datetime import UTC

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_http_methods, require_POST

from conversations import always_view, rights
from conversations.actions import granting
from conversations.actions import rules as actions
from conversations.actions.rules import Scope
from conversations.models import AlwaysRule
from dashboard.api import bodies
from dashboard.api.queries import limit_of
from dashboard.api.shapes_rules import ToMakeRule, WithReason
from dashboard.pages.allowed import takes


@require_http_methods(["GET", "HEAD", "POST"])
@takes("view")
def rules(request: HttpRequest) -> JsonResponse:
    """GET lists rules newest first: `?state=` live or ended, `?before=`, `?limit=`. POST makes one, and applies it to
    what waits: 201 with the rule and the questions that rules answered."""
    if request.method == "POST":
        rights.require(request.user, "decide")
        return _made(request, bodies.read(request, ToMakeRule))
    found, cursor = always_view.page(
        state=request.GET.get("state", "live"),
        before=request.GET.get("before", ""),
        limit=limit_of(request),
    )
    return JsonResponse({"items": [always_view.item(one) for one in found], "cursor": cursor})


@require_POST
@takes("decide")
def revocation(request: HttpRequest, id: str) -> JsonResponse:
    """Revoke a rule: 200 with it, or 409 when somebody did."""
    asked = bodies.read(request, WithReason)
    return JsonResponse(_item(actions.revoke_rule(request.user, id, reason=asked.reason)))


def _made(request: HttpRequest, asked: ToMakeRule) -> JsonResponse:
    until = asked.until
    scope = Scope(
        is_exact=asked.match == "exact",
        arguments=asked.arguments,
        any_agent=asked.any_agent,
        agent=asked.agent,
        tool=asked.tool,
        schema=asked.schema_hash,
        uses=asked.uses,
        until=int((until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() * 1e6) if until else None,
    )
    if asked.approval_id:
        made = actions.approve_always(request.user, asked.approval_id, scope, reason=asked.reason)
    else:
        made = actions.make_rule(request.user, scope, reason=asked.reason)
    applied = granting.approve_waiting()
    made.refresh_from_db()
    return JsonResponse(_item(made) | {"approved": applied}, status=201)


def _item(rule: AlwaysRule) -> dict[str, object]:
    (one,) = always_view.shown([rule])
    return always_view.item(one)
