"""The budgets page, for admins: how much runs, conversations and agents may spend before a person is asked."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.core import hidden_characters
from conversations.core.errors import SwitchboardError
from conversations.core.micros import to_datetime
from conversations.models import Agent, BudgetLimit
from conversations.runs.budgets import edit_budgets
from conversations.runs.budgets.evaluate import MAX_BUDGETS, MEASURES, SCOPES, BudgetRule
from dashboard.pages import form_error
from dashboard.require_permission import require_permission

ENTERED = ("scope", "measure", "amount", "agent", "note", "reason")  # fields of the form


@require_permission("policies")
@require_http_methods(["GET", "HEAD", "POST"])
def budgets(request: HttpRequest) -> HttpResponse:
    """List the budgets. A POST sets one."""
    if request.method != "POST":
        return _draw(request, entered={})
    entered = {field: request.POST.get(field, "").strip()[:2000] for field in ENTERED}
    try:
        saved = edit_budgets.set_budget(request.user, **entered)
    except SwitchboardError as error:
        return _draw(request, error, entered=entered)
    return _back("set", saved.id)


@require_permission("policies")
@require_POST
def removals(request: HttpRequest) -> HttpResponse:
    """Remove a budget."""
    try:
        edit_budgets.remove_budget(request.user, request.POST.get("budget", ""))
    except SwitchboardError as error:
        return _draw(request, error, entered={})
    return _back("removed")


def _back(done: str, budget: str = "") -> HttpResponse:
    return HttpResponseRedirect(reverse("budgets", query={"done": done} | ({"budget": budget} if budget else {})))


def _draw(request: HttpRequest, error: SwitchboardError | None = None, *, entered: dict[str, str]) -> HttpResponse:
    rows = [_row(budget) for budget in BudgetLimit.objects.order_by("scope", "measure", "agent")[:MAX_BUDGETS]]
    agents = Agent.objects.order_by("name").values_list("name", flat=True)[:MAX_BUDGETS]
    return form_error.draw(
        request,
        "budgets.html",
        error,
        entered=entered,
        fields=ENTERED,
        rows=rows,
        saved=next((row for row in rows if row["id"] == request.GET.get("budget")), None),
        scopes=SCOPES,
        measures=MEASURES,
        agents=sorted(name for name in set(agents) if hidden_characters.is_clean(name)),
    )


def _row(budget: BudgetLimit) -> dict[str, Any]:
    rule = BudgetRule(budget.id, budget.scope, budget.agent, budget.measure, budget.amount)
    return {
        "id": budget.id,
        "limit": rule.counted(budget.amount),
        "scope": SCOPES[budget.scope],
        "agent": hidden_characters.spelled_out(budget.agent),
        "note": hidden_characters.spelled_out(budget.note),
        "made_by": hidden_characters.spelled_out(budget.made_by.removeprefix("user:")),
        "made_at": to_datetime(budget.made_at),
    }
