"""A run's approvals: request them for calls that wait, and tell the SDK what was decided.

Called by `AgentRun`, `ReplayRun` and `RunGatekeeper`.
"""

from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, RunState, ToolApprovalItem

from agents_app.approval_gate import gate
from agents_app.call_decisions import Decision
from agents_app.model_providers.unique_call_ids import original
from agents_app.open_responses.request_tools import is_client_tool
from agents_app.recorded_values import mask_json_text, recorded_digests
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker.call_ids import APPROVAL_STATUSES, CallIdMap
from agents_app.worker.run_hooks import arguments
from agents_app.worker.saved_state import Incompatible, tool_of
from conversations.core.ids import new_id, text_digest
from conversations.runs.approvals.request_terms import of_call
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared, PolicyRule, Rows


def pending_requests(
    items: Sequence[ToolApprovalItem], calls: CallIdMap, served: ServedTeam, turn: int, rules: Rows
) -> list[Body]:
    """Return an `approval.requested` for each call that has not been asked about yet."""
    bodies: list[Body] = []
    seen_ids: set[str] = set()
    for item in items:
        call_id, sent, tool = item.call_id or "", item.arguments or "", tool_of(item)
        if our_id := calls.find_requested(call_id, _name(item), recorded_digests(sent), besides=seen_ids):
            seen_ids.add(our_id)
            continue
        our_id = calls.new(call_id)
        body = build_request(
            item.agent.name, turn, our_id, item.call_id, sent, parent=calls.take_parent_call(call_id, sent)
        )
        body |= {"name": item.name} | (of_tool(tool, item.tool_namespace, item.agent.name, served) if tool else {})
        about = matching_rules(rules, item.agent.name, item.qualified_name or item.name or "", tool)
        bodies.append(
            body | {"why": why(item.qualified_name or item.name or "", tool, about)} | of_call(about).request_fields()
        )
    return bodies


def matching_rules(rules: Rows, agent: str, name: str, tool: FunctionTool | None) -> list[PolicyRule]:
    """Return the operators' rules that match a call, the most specific first."""
    guarded = gate.gate_of(tool)
    return guarded.matching(rules, agent) if guarded is not None else evaluate.matching(rules, agent, name)


def build_request(agent: str, turn: int, our_id: str, call_id: str | None, sent: str, *, parent: str | None) -> Body:
    """Make an `approval.requested`, apart from what the tool tells; `sent` are the arguments as the model sent them."""
    body: Body = {"event": "approval.requested", "approval_id": new_id(), "tool_call": our_id, "agent": agent}
    own = original(call_id) if call_id is not None else None
    body |= {"turn": turn, "tool_call_id": own, **arguments(mask_json_text(sent)), "digest": text_digest(sent)}
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


def apply_to_state(state: RunState[Any, Any], calls: CallIdMap, decided: dict[str, Decision]) -> None:
    """Tell the SDK's state what was decided. Raises Incompatible when a call in it was never asked about."""
    seen_ids: set[str] = set()
    for item in reversed(state.get_interruptions()):  # the newest requests are theirs, in their order
        if is_client_tool(item):
            continue  # its client's to answer, and nobody's here to decide
        our_id = calls.find_requested(
            item.call_id or "", _name(item), recorded_digests(item.arguments or ""),
            besides=seen_ids, statuses=(*APPROVAL_STATUSES, "blocked"), newest=True,  # blocked: its time was up
        )  # fmt: skip
        seen_ids.add(our_id or "")
        decision = decided.get(our_id or "")
        if decision is None:
            raise Incompatible(f"there is no decision about {item.qualified_name or item.name}")
        if decision.decision == "reject":
            state.reject(item, rejection_message=decision.message or None)
        else:
            state.approve(item)
    calls.forget_refused()


def _name(item: ToolApprovalItem) -> str:
    """Return the public name of the tool for which a call waits, as the record has it."""
    tool = tool_of(item)
    return tool.name if tool is not None else item.name or ""
