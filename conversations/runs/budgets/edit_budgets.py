"""Set and remove budgets, with audit entries. Called by the page and the API."""

import re
from decimal import Decimal

from django.db import transaction

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.database_clock import database_now
from conversations.core.errors import Invalid, NotFound
from conversations.core.ids import new_id
from conversations.core.write_transaction import lock_actions
from conversations.events.payload import clean_text
from conversations.models import BudgetLimit
from conversations.runs.budgets import evaluate
from conversations.runs.budgets.evaluate import MAX_BUDGETS, MEASURES, SCOPES

MAX_AMOUNT = Decimal(10) ** 11
WHOLE = ("tokens", "calls")
_AMOUNT = re.compile(r"([0-9]+|[1-9][0-9]{0,2}(?:,[0-9]{3})+|(?=\.[0-9]))(\.[0-9]*)?")  # whole part, fraction


def set_budget(
    by: Who, *, scope: str, measure: str, amount: str, agent: str = "", note: str = "", reason: str = ""
) -> BudgetLimit:
    """Set a budget; the same scope, agent and measure replace an earlier one, and amounts added by approvals are kept.
    Raises `Invalid` with the field."""
    agent, note = agent.strip(), note.strip()
    with audited_action(by, "set_budget", target_of(scope, agent, measure), right="policies") as principal:
        limit = _checked(scope, measure, amount, agent, note)
        lock_actions()
        before = BudgetLimit.objects.filter(scope=scope, agent=agent, measure=measure).first()
        if before is None and BudgetLimit.objects.count() >= MAX_BUDGETS:
            raise Invalid(f"there are already {MAX_BUDGETS} budgets; remove one first")
        made = {"amount": limit, "note": note, "made_by": str(principal), "made_at": database_now()}
        row, _ = BudgetLimit.objects.update_or_create(
            scope=scope, agent=agent, measure=measure, defaults=made, create_defaults={"id": new_id(), **made}
        )
        correlation = {"amount": f"{limit.normalize():f}"} | (
            {"was": f"{before.amount.normalize():f}"} if before else {}
        )
        chain.add_entry(
            principal, "set_budget", target_of(scope, agent, measure), reason=reason, correlation=correlation
        )
        transaction.on_commit(evaluate.forget)
    return row


def remove_budget(by: Who, budget: str, *, reason: str = "") -> None:
    """Remove a budget. Raises `NotFound`."""
    row = BudgetLimit.objects.filter(id=budget[:64]).first()
    target = target_of(row.scope, row.agent, row.measure) if row else f"budget:{budget[:64]}"
    with audited_action(by, "remove_budget", target, right="policies") as principal:
        if row is None or not BudgetLimit.objects.filter(id=row.id).delete()[0]:
            raise NotFound("this budget no longer exists")
        chain.add_entry(principal, "remove_budget", target, reason=reason)
        transaction.on_commit(evaluate.forget)


def _checked(scope: str, measure: str, amount: str, agent: str, note: str) -> Decimal:
    if scope not in SCOPES:
        raise Invalid(f"must be one of {', '.join(SCOPES)}", field="scope")
    if measure not in MEASURES:
        raise Invalid(f"must be one of {', '.join(MEASURES)}", field="measure")
    if len(agent) > 200 or clean_text(agent) != agent:
        raise Invalid("must be at most 200 characters", field="agent")
    if len(note) > 500:
        raise Invalid("must be at most 500 characters", field="note")
    number = _AMOUNT.fullmatch(amount.strip().removeprefix("$").strip())
    if number is None:
        raise Invalid("must be a number such as 12.50 or 1,250 (a comma separates thousands)", field="amount")
    if measure in WHOLE and number[2]:
        raise Invalid("must be a whole number such as 20,000", field="amount")
    limit = Decimal(number[0].replace(",", ""))
    if not 0 < limit <= MAX_AMOUNT:
        raise Invalid(f"must be more than 0 and at most {MAX_AMOUNT:,}", field="amount")
    if limit != round(limit, 4):
        raise Invalid("must have at most 4 decimal places", field="amount")
    return limit


def target_of(scope: str, agent: str, measure: str) -> str:
    """Return the name of a budget in the audit log."""
    return f"budget:{scope[:12]}/{agent or '*'}/{measure[:8]}"
