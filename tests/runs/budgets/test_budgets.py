"""Budgets set and removed by page and API, audited, refused to whom they are no business; the alarm of one passed."""

import json
from decimal import Decimal

import pytest
from django.urls import reverse

from conversations.alerts import conditions
from conversations.core.database_clock import database_now
from conversations.core.errors import Invalid, NotFound
from conversations.models import AlertRule, Approval, AuditEntry, AutoApprovalRule, BudgetLimit, BudgetRaise
from conversations.runs import claims
from conversations.runs.approvals import auto_approval, auto_approval_edit, decide
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from conversations.runs.budgets import budget_requests, edit_budgets
from conversations.runs.budgets.evaluate import BudgetRule, ReachedBudget
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db


def put(by, amount="20000", **more):
    return edit_budgets.set_budget(by, **({"scope": "run", "measure": "tokens", "amount": amount} | more))


def run_over_budget(by):
    """Have a run that has spent its budget."""
    teamwork.team()
    teamwork.say(by)
    claimed = teamwork.claim()
    budget = put(by)
    rule = BudgetRule(budget.id, "run", "", "tokens", budget.amount)
    reached = ReachedBudget(rule, claimed.run, Decimal(20_000), Decimal(20_000))
    claims.suspend(
        claimed, "approval", budget_requests.build_request(claimed, reached, "Dialogue", 1), **teamwork.SEALED
    )
    return Approval.objects.get()


def test_one_is_set_replaced_and_removed_and_each_is_audited(people):
    made = put(people["admin"], note="for all")
    again = put(people["admin"], "30,000")
    assert (made.id, BudgetLimit.objects.get().amount, again.note) == (again.id, Decimal(30_000), "")

    edit_budgets.remove_budget(people["admin"], made.id, reason="too little")
    assert not BudgetLimit.objects.exists()
    entries = AuditEntry.objects.filter(target="budget:run/*/tokens").order_by("seq")
    assert [entry.verb for entry in entries] == ["set_budget", "set_budget", "remove_budget"]
    assert json.loads(entries[1].correlation) == {"amount": "30000", "was": "20000"}
    with pytest.raises(NotFound):
        edit_budgets.remove_budget(people["admin"], made.id)


def test_no_rule_is_made_of_its_request(people):
    approval = run_over_budget(people["admin"])

    with pytest.raises(Invalid, match="no rule can match a budget: a person decides"):
        auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope())

    approval.refresh_from_db()
    assert (approval.status, AutoApprovalRule.objects.count()) == ("pending", 0)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"scope": "world"}, "scope"),
        ({"measure": "apples"}, "measure"),
        ({"amount": "much"}, "amount"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"amount": "NaN"}, "amount"),
        ({"amount": "Infinity"}, "amount"),
        ({"amount": "1.5"}, "amount"),
        ({"amount": "1e12"}, "amount"),
        ({"amount": "1_000"}, "amount"),
        ({"amount": "1.000"}, "amount"),
        ({"amount": "12,5"}, "amount"),
        ({"amount": "1,00,000"}, "amount"),
        ({"amount": "0,750"}, "amount"),
        ({"measure": "cost", "amount": "12,50"}, "amount"),
        ({"measure": "cost", "amount": "0,75"}, "amount"),
        ({"measure": "minutes", "amount": "1.000,5"}, "amount"),
        ({"measure": "cost", "amount": "0.00001"}, "amount"),
        ({"agent": "x" * 201}, "agent"),
        ({"note": "x" * 501}, "note"),
    ],
)
def test_what_does_not_fit_is_said_where(people, wrong, field):
    with pytest.raises(Invalid) as refused:
        put(people["admin"], **wrong)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("measure", "amount", "limit"),
    [
        ("tokens", "1,000,000", "1,000,000 tokens"), ("cost", "$1,250.00", "$1,250.00"), ("cost", "12.50", "$12.50"),
        ("cost", ".75", "$0.7500"), ("minutes", "1.5", "1.5 minutes of work"),
    ],
)  # fmt: skip
def test_the_notice_names_the_limit_as_stored(people, measure, amount, limit):
    form = {"scope": "conversation", "measure": measure, "amount": amount}

    page = client_of(people["admin"]).post(reverse("budgets"), form, follow=True)

    assert f"Its limit of {limit} per conversation applies" in text_of(page)


def test_an_approval_gives_as_much_again_once(people):
    request = run_over_budget(people["admin"])

    decide.decide(people["approver"], request.id, "approve")
    given = BudgetRaise.objects.get()
    assert (given.approval, given.amount) == (request.id, Decimal(20_000))
    assert given.place == request.run


def test_no_auto_approval_rule_gives_more(people):
    request = run_over_budget(people["admin"])

    waiting = auto_approval._WaitingRequest(request.id, request.conversation_id)
    assert not auto_approval._approve(waiting)
    assert Approval.objects.get().status == "pending"


def test_its_card_asks_in_words_and_offers_two_ways(people):
    request = run_over_budget(people["admin"])

    page = client_of(people["approver"]).get(reverse("approval", args=[request.id]))
    shown = text_of(page)
    assert "Budget reached: 20,000 of 20,000 tokens per run. Continue with 20,000 more tokens?" in shown
    assert "This run has spent its budget" in shown
    assert "Dialogue has spent" not in shown
    assert "Dialogue wants to call" not in shown
    assert "{&#34;budget&#34;" not in page.content.decode()
    assert "data-always" not in page.content.decode()
    assert "data-respond" not in page.content.decode()


@pytest.mark.parametrize(
    ("measure", "amount", "counted"),
    [
        ("calls", "1", "1 tool call"), ("calls", "2", "2 tool calls"), ("tokens", "1", "1 token"),
        ("minutes", "1", "1 minute of work"), ("minutes", "1.5", "1.5 minutes of work"), ("cost", "1", "$1.00"),
    ],
)  # fmt: skip
def test_an_amount_of_one_is_singular(measure, amount, counted):
    assert BudgetRule("b", "run", "", measure, Decimal(amount)).counted(Decimal(amount)) == counted


def test_lists_say_that_the_budget_is_spent(people):
    run_over_budget(people["admin"])
    approver = client_of(people["approver"])

    listed, inbox = (text_of(approver.get(reverse(page))) for page in ("conversations", "approvals"))
    assert "A budget is spent" in listed
    assert "Dialogue has spent" not in listed
    assert "continue_over_budget" not in listed
    assert inbox.count("Budget reached: 20,000 of 20,000 tokens per run.") == 3  # its row, the heading and its card
    assert "Select more budget by Dialogue" in inbox


def test_its_question_is_not_counted_as_a_tool_call(people):
    run_over_budget(people["admin"])

    panel = text_of(client_of(people["approver"]).get(reverse("conversation-panel", args=["flood"])))
    assert "Tool calls 0" in panel


def test_the_timeline_says_that_the_run_waits_for_more_budget(people):
    run_over_budget(people["admin"])

    shown = text_of(client_of(people["approver"]).get(reverse("conversation", args=["flood"]) + "?view=timeline"))
    assert shown.count("waiting for approval of more budget") == 2  # its row, and the run in the details


def test_an_alarm_about_its_request_says_that_the_budget_is_spent(people):
    run_over_budget(people["admin"])
    rule = AlertRule(kind="approval_waiting", after_s=0)

    (case,) = conditions.cases_of(rule, database_now() + 1_000_000).cases
    assert case.detail == "a budget is spent while Dialogue works"


def test_pages_and_the_api_list_set_and_remove_them(people):
    admin = client_of(people["admin"])
    form = {"scope": "conversation", "measure": "cost", "amount": "$2.50", "agent": "Dialogue", "note": "by day"}
    assert admin.post(reverse("budgets"), form).status_code == 302
    page = text_of(admin.get(reverse("budgets")))
    assert "$2.50 conversation Dialogue by day" in page
    assert "Must be a number such as 12.50" in text_of(admin.post(reverse("budgets"), form | {"amount": "x"}))

    body = {"scope": "agent", "measure": "minutes", "amount": "1.5"}
    made = admin.post(reverse("api-budgets"), body, content_type="application/json")
    assert (made.status_code, made.json()["amount"]) == (201, "1.5")
    listed = admin.get(reverse("api-budgets")).json()["items"]
    assert [(item["scope"], item["amount"]) for item in listed] == [("agent", "1.5"), ("conversation", "2.5")]
    gone = admin.post(reverse("api-budget-removal", args=[made.json()["id"]]), {}, content_type="application/json")
    assert gone.status_code == 200
    assert admin.post(reverse("budget-removals"), {"budget": listed[1]["id"]}).status_code == 302
    assert not BudgetLimit.objects.exists()
    assert client_of(people["viewer"]).get(reverse("budgets")).status_code == 403
    assert client_of(people["viewer"]).get(reverse("api-budgets")).status_code == 403


def test_one_that_is_passed_raises_an_alarm_until_it_is_decided(people):
    rule = AlertRule(kind="budget_passed", agent="", grouping="conversation")
    assert conditions.cases_of(rule, database_now()).cases == []

    request = run_over_budget(people["admin"])
    [case] = conditions.cases_of(rule, database_now()).cases
    assert (case.conversation, case.agent, case.detail) == (
        *("flood", "Dialogue", "a budget is spent while Dialogue works"),
    )
    decide.decide(people["approver"], request.id, "approve")
    assert conditions.cases_of(rule, database_now()).cases == []
