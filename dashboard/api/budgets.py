"""`/api/v1/budgets`: how much runs, conversations and agents may spend before approval is required."""

from django.http import HttpRequest, JsonResponse

from conversations.core.micros import to_datetime
from conversations.models import BudgetLimit
from conversations.runs.budgets import edit_budgets
from conversations.runs.budgets.evaluate import MAX_BUDGETS
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas import budgets as schemas
from dashboard.api.schemas.auto_approvals import WithReason
from dashboard.api.schemas.budgets import ToSetBudget
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation("List the budgets.", {200: schemas.Budgets}),
    post=Operation(
        "Set a budget; the same scope, agent and measure again replaces it.", {201: schemas.Budget}, body=ToSetBudget
    ),
)
@require_permission("policies")
def budgets(request: HttpRequest) -> JsonResponse:
    """List budgets (GET), or set one (POST): 201 with the budget."""
    if request.method == "POST":
        body = read_body(request, ToSetBudget)
        return JsonResponse(_item(edit_budgets.set_budget(request.user, **body.model_dump())), status=201)
    rows = BudgetLimit.objects.order_by("scope", "measure", "agent")[:MAX_BUDGETS]
    return JsonResponse({"items": [_item(row) for row in rows], "cursor": None})


@endpoint(post=Operation("Remove a budget.", {200: schemas.BudgetId}, body=WithReason, errors=(404,)))
@require_permission("policies")
def removal(request: HttpRequest, id: str) -> JsonResponse:
    """Remove a budget."""
    edit_budgets.remove_budget(request.user, id, reason=read_body(request, WithReason).reason)
    return JsonResponse({"id": id})


def _item(row: BudgetLimit) -> dict[str, object]:
    named = {name: getattr(row, name) for name in ("id", "scope", "measure", "agent", "note", "made_by")}
    return named | {"amount": f"{row.amount.normalize():f}", "made_at": to_datetime(row.made_at).isoformat()}
