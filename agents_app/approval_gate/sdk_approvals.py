"""Calls that wait for a person: what is asked when a run stops for them, and what was decided when it goes on."""

import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, RunState, ToolApprovalItem

from agents_app.approval_gate import gate
from agents_app.approval_gate.gatekeeper_protocol import Decision
from agents_app.model_providers.unique_call_ids import original
from agents_app.open_responses.request_tools import is_external
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker.call_ids import APPROVAL_STATUSES, CallIdMap
from agents_app.worker.event_writer import mask
from agents_app.worker.run_hooks import arguments, digest, recorded_digests
from agents_app.worker.saved_state import Incompatible, tool_of
from conversations.core.ids import new_id
from conversations.models import Approval, Event
from conversations.runs.approvals.terms import of_call
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared, PolicyRule, Rows

EXPIRED = "Nobody decided in time, so the call was not made. Continue without it."


def pending_requests(
    items: Sequence[ToolApprovalItem], calls: CallIdMap, served: ServedTeam, turn: int, rules: Rows
) -> list[Body]:
    """Return an `approval.requested` for each call that has not been asked about yet."""
    bodies: list[Body] = []
    seen_ids: set[str] = set()
    for item in items:
        call_id, sent = item.call_id or "", item.arguments or ""
        if our_id := calls.find_requested(call_id, recorded_digests(sent), besides=seen_ids):
            seen_ids.add(our_id)
            continue
        tool, our_id = tool_of(item), calls.new(call_id)
        body = build_request(
            item.agent.name, turn, our_id, item.call_id, sent, parent=calls.take_parent_call(call_id, sent)
        )
        body |= {"name": item.name} | (of_tool(tool, item.tool_namespace, item.agent.name, served) if tool else {})
        about = evaluate.matching(rules, item.agent.name, item.qualified_name or item.name or "")
        bodies.append(
            body | {"why": why(item.qualified_name or item.name or "", tool, about)} | of_call(about).request_fields()
        )
    return bodies


def build_request(agent: str, turn: int, our_id: str, call_id: str | None, sent: str, *, parent: str | None) -> Body:
    """Make an `approval.requested`, apart from what the tool tells; `sent` are the arguments as the model sent them."""
    body: Body = {"event": "approval.requested", "approval_id": new_id(), "tool_call": our_id, "agent": agent}
    own = original(call_id) if call_id is not None else None
    body |= {"turn": turn, "tool_call_id": own, **arguments(mask(sent)), "digest": digest(sent)}
    return body | ({"parent_call": parent} if parent else {})


def of_tool(tool: FunctionTool, called_as: str | None, agent: str, served: ServedTeam) -> Body:
    """Return the fields of an approval request that describe its tool."""
    return identity.layers(tool, called_as) | {"effect": served.effect(tool, agent)}


def why(name: str, tool: FunctionTool | None, about: list[PolicyRule]) -> str:
    """Return who wants a call to wait: the operators' policy, or the tool's code."""
    guarded = gate.gate_of(tool)
    declared = Declared("ask" if guarded is not None and guarded.declared_needs_approval is True else "allow")
    row = evaluate.effective(declared, about).by
    return (
        gate.why(row)
        if row is not None and row.rule == "ask"
        else f"{name} requires approval, as set in the team's code"
    )


def decisions(run: str) -> dict[str, Decision]:
    """Return what was decided about a run's calls, by our ids. Sync."""
    decisions_by_call: dict[str, Decision] = {}
    for row in Approval.objects.filter(run=run, status="expired"):
        decisions_by_call[row.tool_call] = Decision("reject", EXPIRED)
    for row in Approval.objects.filter(run=run, status="decided"):
        both = Event.objects.filter(conversation=row.conversation_id, seq__in=(row.asked_seq, row.decided_seq or 0))
        request_body, decision_body = (json.loads(body) for body in both.order_by("seq").values_list("body", flat=True))
        decisions_by_call[row.tool_call] = Decision(
            row.decision or "",
            decision_body.get("message") or "",
            digest=decision_body.get("digest") or request_body.get("digest") or "",
            arguments=decision_body.get("args_raw"),
            output=decision_body.get("output") or "",
            by=row.decided_by or "",
            server=request_body.get("mcp_server") or "",
        )
    return decisions_by_call


def apply_to_state(state: RunState[Any, Any], calls: CallIdMap, decided: dict[str, Decision]) -> None:
    """Tell the SDK's state what was decided. Raises Incompatible when a call in it was never asked about."""
    seen_ids: set[str] = set()
    for item in state.get_interruptions():
        if is_external(item):
            continue  # its client's to answer, and nobody's here to decide
        sent = recorded_digests(item.arguments or "")
        our_id = calls.find_requested(
            item.call_id or "", sent, besides=seen_ids, statuses=(*APPROVAL_STATUSES, "blocked")
        )  # its time was up
        seen_ids.add(our_id or "")
        decision = decided.get(our_id or "")
        if decision is None:
            raise Incompatible(f"there is no decision about {item.qualified_name or item.name}")
        if decision.decision == "reject":
            state.reject(item, rejection_message=decision.message or None)
        else:
            state.approve(item)
