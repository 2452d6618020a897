"""Create approval requests for budgets: they wait, are decided once and are audited like those for tool calls.

An approval adds the same amount again, in the transaction of the decision; otherwise the run ends. The worker closes
the call that represents the request when the run continues: `settle`.
"""

import json
from decimal import Decimal

from conversations.core.database_clock import database_now
from conversations.core.errors import Invalid
from conversations.core.ids import new_id, text_digest
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import Approval, BudgetRaise, Conversation, ToolCall
from conversations.runs.approvals import request_terms
from conversations.runs.budgets.evaluate import ORIGIN, ReachedBudget
from conversations.runs.claims import Body, Claim, our_call_id

NAME = "continue_over_budget"
DECISIONS = ("approve", "reject")


def build_request(claimed: Claim, reached: ReachedBudget, agent: str, turn: int) -> Body:
    """Return the `approval.requested` of a budget that a run has reached."""
    rule, approval = reached.rule, new_id()
    call = f"budget-{approval}"
    given: dict[str, str] = {"budget": rule.id, "per": rule.scope, "place": reached.place, "measure": rule.measure}
    given |= {
        "used": f"{reached.used.normalize():f}",
        "limit": f"{reached.allowed.normalize():f}",
        "more": f"{rule.amount.normalize():f}",
    }
    text = json.dumps(given, ensure_ascii=False)
    body: Body = {"event": "approval.requested", "approval_id": approval, "agent": agent, "turn": turn}
    body |= {"tool_call": our_call_id(claimed.run, call, 1), "tool_call_id": call, "name": NAME, "origin": ORIGIN}
    body |= {"args": given, "args_raw": text, "digest": text_digest(text)}
    return body | {"effect": "unsafe", "why": reached.words} | request_terms.of_call([]).request_fields()


def is_budget(request: Body) -> bool:
    """Return whether an `approval.requested` is for a budget."""
    return request.get("origin") == ORIGIN


def count(conversation: int) -> int:
    """Return how many calls of a conversation (a row id) stand for such requests."""
    return ToolCall.objects.filter(conversation=conversation, origin=ORIGIN, run__isnull=False).count()


def check(decision: str) -> None:
    """Raise `Invalid` for a decision that a budget's request cannot have."""
    if decision not in DECISIONS:
        raise Invalid("must be approve or reject: a budget has no arguments and no output", field="decision")


def give(approval: Approval, request: Body) -> None:
    """Add the approved amount, inside the transaction of the decision."""
    given = request["args"]
    assert isinstance(given, dict)
    more = Decimal(str(given["more"]))
    fields = {"budget": given["budget"], "place": given["place"], "amount": more, "at": database_now()}
    BudgetRaise.objects.create(approval=approval.id, **fields)


def settle(claimed: Claim) -> str:
    """Close the request of a run that continues; return why it may not, or an empty text if it may. Raises `Fenced`."""
    calls = ToolCall.objects.filter(run=claimed.run, origin=ORIGIN)
    statuses = set(calls.values_list("status", flat=True))
    if statuses & {"rejected", "blocked"}:
        return "a budget was reached, and no more was approved"
    if "approved" not in statuses:
        return ""
    with write_transaction():
        Conversation.objects.locked(key=claimed.conversation)
        steps: list[Body] = []
        for call in calls.filter(status="approved").order_by("called_seq"):
            step: Body = {"event": "tool_step", "name": NAME, "origin": ORIGIN, "agent": call.agent}
            step |= {"tool_call": call.id, "tool_call_id": call.call_id}
            steps += [step | {"status": "start"}, step | {"status": "success", "output": "continues"}]
        log.append([claimed.event(step) for step in steps])
    return ""
