"""`/api/v1/alert-rules`, `/alarms`, `/alert-deliveries` and `/alerts`: alert rules, their alarms and deliveries."""

from django.http import HttpRequest, JsonResponse

from conversations.alerts import edit_rules, handle_alarms, view
from conversations.alerts.rule_fields import RuleFields
from conversations.core.errors import NotFound
from conversations.core.micros import to_datetime
from conversations.core.url_converters import whole_number
from conversations.models import AlertRule
from dashboard.api.openapi.operations import TEXT, Operation, endpoint, one_of
from dashboard.api.request_input import LIMIT, limit_of, read_body
from dashboard.api.schemas import alerts as schemas
from dashboard.api.schemas.alerts import ToChangeAlertRule, ToSetAlertRule, ToShelve, ToUnshelve
from dashboard.api.schemas.auto_approvals import WithReason
from dashboard.require_permission import require_permission

MAX_ID = 2**63 - 1


@endpoint(
    get=Operation("List alert rules.", {200: schemas.AlertRules}),
    post=Operation(
        "Create an alert rule.", {201: schemas.MadeAlertRule}, body=ToSetAlertRule, errors=(409,),
    ),
)  # fmt: skip
@require_permission("alerts")
def rules(request: HttpRequest) -> JsonResponse:
    """List rules by name (GET), or create one (POST): 201 with its secret."""
    if request.method == "POST":
        body = read_body(request, ToSetAlertRule)
        rule = edit_rules.make_rule(request.user, _fields(body), reason=body.reason)
        return JsonResponse(_item(rule) | {"secret": rule.secret}, status=201)
    return JsonResponse({"items": [view.rule_item(shown) for shown in view.rules()], "cursor": None})


@endpoint(put=Operation("Change an alert rule.", {200: schemas.AlertRule}, body=ToChangeAlertRule, errors=(404, 409)))
@require_permission("alerts")
def rule(request: HttpRequest, number: int) -> JsonResponse:
    """Change a rule, unless it has changed since it was read."""
    body = read_body(request, ToChangeAlertRule)
    changed = edit_rules.change_rule(request.user, number, _fields(body), version=body.version, reason=body.reason)
    return JsonResponse(_item(changed))


@endpoint(post=Operation("Remove an alert rule.", {200: schemas.AlertId}, body=WithReason, errors=(404,)))
@require_permission("alerts")
def removal(request: HttpRequest, number: int) -> JsonResponse:
    """Remove a rule."""
    edit_rules.remove_rule(request.user, number, reason=read_body(request, WithReason).reason)
    return JsonResponse({"id": number})


@endpoint(post=Operation("Send a test alert.", {202: schemas.AlertDelivery}, errors=(404,)))
@require_permission("alerts")
def test(request: HttpRequest, number: int) -> JsonResponse:
    """Queue a test delivery: 202 with the delivery."""
    return JsonResponse(view.delivery_item(edit_rules.send_test(request.user, number)), status=202)


@endpoint(post=Operation("Replace the secret of an alert rule.", {200: schemas.AlertSecret}, errors=(404,)))
@require_permission("alerts")
def secret(request: HttpRequest, number: int) -> JsonResponse:
    """Replace a rule's secret; the new one is returned only here."""
    return JsonResponse({"secret": edit_rules.renew_secret(request.user, number).secret})


@endpoint(post=Operation("Shelve an alert rule or an alarm.", {200: schemas.Shelved}, body=ToShelve, errors=(404,)))
@require_permission("alerts")
def shelf(request: HttpRequest, number: int) -> JsonResponse:
    """Shelve a rule or an alarm: send nothing for a time."""
    body = read_body(request, ToShelve)
    shelf = handle_alarms.shelve(request.user, number, body.for_s, alarm=body.alarm_id, reason=body.reason)
    return JsonResponse({"until": to_datetime(shelf.until).isoformat()})


@endpoint(
    post=Operation("Unshelve an alert rule or an alarm.", {200: schemas.Shelved}, body=ToUnshelve, errors=(404, 409))
)
@require_permission("alerts")
def unshelving(request: HttpRequest, number: int) -> JsonResponse:
    """Unshelve it."""
    handle_alarms.unshelve(request.user, number, alarm=read_body(request, ToUnshelve).alarm_id)
    return JsonResponse({"until": None})


@endpoint(
    get=Operation(
        "List alarms, newest first.", {200: schemas.Alarms},
        query={"state": one_of(view.STATES), "before": TEXT, "limit": LIMIT},
    )
)  # fmt: skip
@require_permission("alerts")
def alarms(request: HttpRequest) -> JsonResponse:
    """List alarms: open ones unless `state=closed`."""
    state = request.GET.get("state", "open")
    if state not in view.STATES:
        raise NotFound("there is no such list")
    before = whole_number(request.GET["before"], "before", 1, MAX_ID) if request.GET.get("before") else None
    rows, cursor = view.alarms(state=state, before=before, limit=limit_of(request))
    return JsonResponse({"items": [view.alarm_item(row) for row in rows], "cursor": cursor})


@endpoint(post=Operation("Close an alarm.", {200: schemas.AlertId}, body=WithReason, errors=(404, 409)))
@require_permission("alerts")
def alarm_end(request: HttpRequest, number: int) -> JsonResponse:
    """Close an alarm that was raised by events."""
    handle_alarms.end_alarm(request.user, number, reason=read_body(request, WithReason).reason)
    return JsonResponse({"id": number})


@endpoint(
    get=Operation(
        "List deliveries; failed ones are dead letters.", {200: schemas.AlertDeliveries},
        query={"status": one_of(view.STATUSES), "limit": LIMIT},
    )
)  # fmt: skip
@require_permission("alerts")
def deliveries(request: HttpRequest) -> JsonResponse:
    """List deliveries of a status: dead letters by default."""
    status = request.GET.get("status", "failed")
    if status not in view.STATUSES:
        raise NotFound("there is no such list")
    rows = view.deliveries(status, limit_of(request))
    return JsonResponse({"items": [view.delivery_item(row) for row in rows], "cursor": None})


@endpoint(post=Operation("Send a dead letter again.", {200: schemas.DeliveryId}, errors=(404, 409)))
@require_permission("alerts")
def retry(request: HttpRequest, id: str) -> JsonResponse:
    """Retry a delivery, with the same id."""
    handle_alarms.retry_delivery(request.user, id)
    return JsonResponse({"id": id})


@endpoint(post=Operation("Discard a dead letter.", {200: schemas.DeliveryId}, errors=(404, 409)))
@require_permission("alerts")
def discard(request: HttpRequest, id: str) -> JsonResponse:
    """Discard a dead letter."""
    handle_alarms.discard_delivery(request.user, id)
    return JsonResponse({"id": id})


@endpoint(get=Operation("Read the alarm rate.", {200: schemas.AlertFigures}))
@require_permission("alerts")
def figures(request: HttpRequest) -> JsonResponse:
    """Return the alarm rate."""
    return JsonResponse(view.figures()._asdict())


def _fields(body: ToSetAlertRule) -> RuleFields:
    return RuleFields(**body.model_dump(include=set(RuleFields._fields)))


def _item(rule: AlertRule) -> dict[str, object]:
    return view.rule_item(view.shown_rule(rule))
