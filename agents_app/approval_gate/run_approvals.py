"""A run's approvals: ask for calls that wait, read what was decided, and tell the SDK and, as `Gatekeeper`, the gate.

Called by `AgentRun` and `ReplayRun`. The gatekeeper also reads the operators' rules, approves by auto-approval rule,
and records `policy.refused`.
"""

import json
from collections.abc import Sequence
from typing import Any

from agents import Agent, FunctionTool, RunState, ToolApprovalItem
from agents.tool_context import ToolContext

from agents_app.approval_gate import gate
from agents_app.approval_gate.gate import Decision, Refusal
from agents_app.model_providers.unique_call_ids import original
from agents_app.open_responses.request_tools import is_client_tool
from agents_app.recorded_values import mask_json_text, truncate_fields
from agents_app.run_scope import RunnerLane, current_lane, current_parent_call
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker.call_ids import APPROVAL_STATUSES, CallIdMap, EarlierCall
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.run_hooks import RecordingHooks, arguments, recorded_digests, requested_arguments
from agents_app.worker.saved_state import Incompatible, tool_of
from conversations.core.errors import Fenced
from conversations.core.ids import new_id, text_digest
from conversations.core.ttl_cache import Do
from conversations.models import Approval, Event
from conversations.runs.approvals import auto_approval, auto_approval_rules
from conversations.runs.approvals.request_terms import of_call
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared, PolicyRule, Rows

EXPIRED_MESSAGE = "Nobody decided in time, so the call was not made. Continue without it."


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
        about = _matching(rules, item.agent.name, item.qualified_name or item.name or "", tool)
        bodies.append(
            body | {"why": why(item.qualified_name or item.name or "", tool, about)} | of_call(about).request_fields()
        )
    return bodies


def _matching(rules: Rows, agent: str, name: str, tool: FunctionTool | None) -> list[PolicyRule]:
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


def decisions(run: str) -> dict[str, Decision]:
    """Return what was decided about a run's calls, by our ids. Sync."""
    decisions_by_call: dict[str, Decision] = {}
    for row in Approval.objects.filter(run=run, status="expired"):
        decisions_by_call[row.tool_call] = Decision("reject", EXPIRED_MESSAGE)
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


class Gatekeeper:
    """The gatekeeper of one attempt."""

    def __init__(self, event_writer: RunEventWriter, served: ServedTeam, do: Do, hooks: RecordingHooks) -> None:
        self._event_writer, self._served, self._do, self._hooks = event_writer, served, do, hooks
        self._calls_to_approve: set[tuple[RunnerLane, str]] = set()  # calls that would wait for a person

    async def rules(self) -> Rows:
        """Return the operators' rules: one query in half a second, of all runs of the worker."""
        return await evaluate.rows_in(self._do)

    def decision_before_start(self, context: ToolContext[Any], tool: FunctionTool) -> Decision | None:
        """Return what a person decided about a tool's call that the gate is about to check."""
        digests = recorded_digests(requested_arguments(context))
        our_id = self._hooks.calls.find_requested(context.tool_call_id, tool.name, digests)
        return self._hooks.decided.get(our_id) if our_id else None

    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is invoked now."""
        return self._hooks.decision_of_running(context)

    def record_replaced_output(self, context: ToolContext[Any], replacement: Any, output: Any) -> None:
        """Note that a model gets `replacement` instead of a tool's `output`: the record keeps the output."""
        self._hooks.record_replaced_output(context.tool_call_id, replacement, output)

    def mark_needs_approval(self, call_id: str) -> None:
        """Mark a call that needs a person's approval unless a rule approves it."""
        self._calls_to_approve.add((current_lane(), call_id))

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that has to wait; record that it did, and which. A query only where
        a rule is about the tool."""
        key = current_lane(), context.tool_call_id
        if key not in self._calls_to_approve:
            return False
        self._calls_to_approve.discard(key)
        rules = await auto_approval_rules.rules_in(self._do)
        if identity.identity_of(tool).lookup_key not in rules:
            return False
        return await self._approved(context, agent, tool)

    async def _approved(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        hooks, parent = self._hooks, current_parent_call()
        call_id, sent = context.tool_call_id, requested_arguments(context)
        if hooks.calls.find_requested(call_id, tool.name, recorded_digests(sent)) is not None:
            return False  # a person was asked already
        our_id = hooks.calls.new(call_id)
        request = build_request(agent.name, hooks.turns.current, our_id, call_id, sent, parent=parent)
        request |= of_tool(tool, context.tool_namespace, agent.name, self._served)
        about = _matching(evaluate.latest(), agent.name, tool.qualified_name, tool)
        request |= {"why": why(tool.qualified_name, tool, about)}
        try:
            rule = await self._do(auto_approval.approve_call, self._event_writer.claim, truncate_fields(request))
        except Fenced:
            self._event_writer.is_lost = True
            raise
        if rule is None:
            hooks.calls.give_back(call_id, our_id)
            return False
        call = EarlierCall(our_id, call_id, "approved", recorded_digests(sent)[-1], tool.name, parent)
        hooks.calls.approve(call, sent)
        by = f"an auto-approval rule by {rule.made_by}"
        hooks.decided = {**hooks.decided, our_id: Decision("approve", "", digest=text_digest(sent), by=by)}
        return True

    async def refuse(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, refusal: Refusal) -> None:
        """Commit that a call was refused; only then is the model told."""
        hooks, parent = self._hooks, current_parent_call()
        call_id = context.tool_call_id
        digests = recorded_digests(requested_arguments(context))
        our_id = hooks.calls.find_requested(call_id, tool.name, digests) or hooks.calls.new(call_id)
        body: Body = {"event": "policy.refused", "agent": agent.name, "turn": hooks.turns.current, "tool_call": our_id}
        body |= {"tool_call_id": original(call_id), "effect": self._served.effect(tool, agent.name)}
        body |= identity.layers(tool, context.tool_namespace)
        body |= arguments(mask_json_text(context.tool_arguments)) | ({"parent_call": parent} if parent else {})
        body |= {"reason": refusal.reason, "by": refusal.by}
        await self._event_writer.store(body | ({"rule": _rule(refusal.row)} if refusal.row else {}))


def _rule(row: PolicyRule) -> dict[str, str]:
    return {name: value for name, value in row._asdict().items() if value}
