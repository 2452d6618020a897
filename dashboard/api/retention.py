"""`/api/v1/holds` and `/api/v1/retention-rules`: what must not be redacted, and what is redacted after some time."""

from django.http import HttpRequest, JsonResponse

from conversations.core.errors import NotFound
from conversations.core.micros import to_datetime
from conversations.models import LegalHold, RetentionRule
from conversations.redaction import expiry, legal_holds, requests, retention_rules
from conversations.redaction.retention_rules import RetentionTerms
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas import redaction as schemas
from dashboard.api.schemas.redaction import ToHold, ToRelease, ToRemoveRetention, ToRetain
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation("List the legal holds in force.", {200: schemas.LegalHolds}),
    post=Operation("Place a legal hold.", {201: schemas.LegalHold}, body=ToHold, errors=(404,)),
)
@require_permission("hold")
def holds(request: HttpRequest) -> JsonResponse:
    """List holds (GET), or place one (POST): 201 with the hold."""
    if request.method == "POST":
        body = read_body(request, ToHold)
        made = legal_holds.place(request.user, body.conversation_id, body.reason, is_regulated=body.regulated)
        return JsonResponse(_hold(made), status=201)
    return JsonResponse({"items": [_hold(hold) for hold in legal_holds.in_force()], "cursor": None})


@endpoint(post=Operation("Release a legal hold.", {200: schemas.HoldId}, body=ToRelease, errors=(404, 409)))
@require_permission("hold")
def release(request: HttpRequest, number: int) -> JsonResponse:
    """Release a hold."""
    legal_holds.release(request.user, number, read_body(request, ToRelease).reason)
    return JsonResponse({"id": number})


@endpoint(
    get=Operation("List the retention rules.", {200: schemas.RetentionRules}),
    post=Operation(
        "Set a retention rule.",
        {201: schemas.RetentionRule, 202: schemas.RetentionRequested},
        body=ToRetain,
        errors=(409,),
    ),
)
@require_permission("redact")
def rules(request: HttpRequest) -> JsonResponse:
    """List rules (GET), or set one (POST): 201 with the rule, 202 if a second person has to confirm it."""
    if request.method == "POST":
        body = read_body(request, ToRetain)
        terms = RetentionTerms(body.days, body.kind, body.team, body.conversation_id)
        made = requests.submit_rule(request.user, terms, body.reason)
        if isinstance(made, RetentionRule):
            return JsonResponse(_rule(made), status=201)
        return JsonResponse({"request": made.pk}, status=202)
    return JsonResponse({"items": [_rule(rule) for rule in retention_rules.rules()], "cursor": None})


@endpoint(post=Operation("Remove a retention rule.", {200: schemas.RetentionId}, body=ToRemoveRetention, errors=(404,)))
@require_permission("redact")
def removal(request: HttpRequest, number: int) -> JsonResponse:
    """Remove a rule."""
    retention_rules.remove_rule(request.user, number, read_body(request, ToRemoveRetention).reason)
    return JsonResponse({"id": number})


@endpoint(
    get=Operation(
        "Preview a retention rule: count the events it would redact now.",
        {200: schemas.RetentionPreview},
        errors=(404,),
    )
)
@require_permission("redact")
def preview(request: HttpRequest, number: int) -> JsonResponse:
    """Return what a rule would redact, without changing anything."""
    rule = retention_rules.rules().filter(pk=number).first()
    if rule is None:
        raise NotFound("this rule no longer exists")
    kinds, held = expiry.preview(retention_rules.selector(rule))
    return JsonResponse({"kinds": dict(sorted(kinds.items())), "events": kinds.total(), "held_back": held})


def _hold(hold: LegalHold) -> dict[str, object]:
    return {
        "id": hold.pk,
        "conversation_id": hold.conversation.key if hold.conversation else legal_holds.EVERYTHING,
        "regulated": hold.is_regulated,
        "reason": hold.reason,
        "placed_by": hold.placed_by,
        "placed_at": to_datetime(hold.placed_at).isoformat(),
    }


def _rule(rule: RetentionRule) -> dict[str, object]:
    same = ("id", "days", "kind", "team", "reason", "made_by", "redacted")
    return {name: getattr(rule, name) for name in same} | {
        "held_back": rule.held,
        "conversation_id": rule.conversation,
        "made_at": to_datetime(rule.made_at).isoformat(),
        "ran_at": to_datetime(rule.ran_at).isoformat() if rule.ran_at else None,
    }
