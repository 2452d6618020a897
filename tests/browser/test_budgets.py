"""Budgets and costs in a real browser: one is set, a run that reached it asks on a card, and what it cost is told."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, renewed, work
from tests.support.live import Server

SPENT = """
from decimal import Decimal
from conversations.events import log
from conversations.models import BudgetLimit
from conversations.runs import claims
from conversations.runs.budgets import budget_requests
from conversations.runs.budgets.evaluate import BudgetRule, ReachedBudget
t.say(o, "spent", content="Flood on Elm Street")
c = t.claim("spent")
usage = {"input_tokens": 15_000, "output_tokens": 5_000, "total_tokens": 20_000, "cached_tokens": 5_000}
turn = {"event": "model.turn", "turn": 1, "model": "gpt-4o", "tools": [], "duration_ms": 9, "usage": usage}
log.append([c.event(turn)])
b = BudgetLimit.objects.get()
reached = ReachedBudget(BudgetRule(b.id, "run", "", "tokens", b.amount), c.run, Decimal(20_000), Decimal(20_000))
claims.suspend(c, "approval", budget_requests.build_request(c, reached, "Dialogue", 1), **t.SEALED)
"""


@pytest.mark.thorough
def test_a_budget_is_set_and_a_run_that_reached_it_asks_and_tells_its_cost(served: Server, window: Page) -> None:
    window.goto("/policies/")
    window.get_by_role("link", name="Budgets").click()
    window.locator("summary", has_text="Set budget").click()
    window.get_by_label("Limit").fill("20000")
    assert in_every_look(window, "budget-form") == {}
    window.get_by_role("button", name="Set budget").click()
    expect(window.get_by_text("Budget saved.")).to_be_visible()
    expect(window.get_by_role("row", name=re.compile("20,000 tokens"))).to_be_visible()
    assert in_every_look(window, "budgets") == {}

    work(served, SPENT)
    window.goto("/conversations/spent/")
    card = window.get_by_role("group", name="Approval request")
    words = "Budget reached: 20,000 of 20,000 tokens per run. Continue with 20,000 more tokens?"
    expect(card.get_by_text(words)).to_be_visible()
    expect(card.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    expect(card.get_by_text("Respond without running…")).to_have_count(0)
    assert in_every_look(window, "budget-card") == {}
    window.set_viewport_size({"width": 1440, "height": 900})
    window.reload()
    expect(window.get_by_text(re.compile(r"15,000 in \(5,000 cached\), 5,000 out"))).to_be_attached()
    expect(window.locator("dd", has_text="$0.0812")).to_be_attached()

    window.goto("/")
    expect(window.locator(".conversation", has_text="Water").locator(".counts[title='Cost: $0.0812']")).to_have_count(1)
    window.goto("/approvals/")
    with renewed(served):
        window.get_by_role("button", name="Approve", exact=True).first.click()
        expect(window.get_by_text(re.compile("approved ?by owner")).first).to_be_visible()
    assert work(served, "print(BudgetRaise.objects.get().amount)").strip().endswith("20000.0000")
