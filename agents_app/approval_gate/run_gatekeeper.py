"""The worker's side of the gate: read the operators' rules, approve by auto-approval rule, record `policy.refused`.

Created by `AgentRun` and `ReplayRun`.
"""

from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext

from agents_app.approval_gate import sdk_approvals
from agents_app.approval_gate.gatekeeper_protocol import Decision, Refusal
from agents_app.approval_gate.run_scope import current_parent_call
from agents_app.model_providers.unique_call_ids import original
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker.call_ids import EarlierCall
from agents_app.worker.event_writer import RunEventWriter, mask, truncate_fields
from agents_app.worker.run_hooks import Do, RecordingHooks, arguments, digest, recorded_digests, requested_arguments
from conversations.core.errors import Fenced
from conversations.runs.approvals import auto_approval, auto_approval_rules
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import PolicyRule, Rows


class Gatekeeper:
    """The gatekeeper of one attempt. `hooks` returns its hooks: a resumed run has new ones."""

    def __init__(
        self, event_writer: RunEventWriter, served: ServedTeam, do: Do, hooks: Callable[[], RecordingHooks]
    ) -> None:
        self._event_writer, self._served, self._do, self._hooks = event_writer, served, do, hooks
        self._calls_to_approve: set[tuple[str | None, str]] = set()  # calls that would wait for a person

    async def rules(self) -> Rows:
        """Return the operators' rules: one query in half a second, of all runs of the worker."""
        rows = evaluate.cached_rows()
        return rows if rows is not None else await self._read()

    def decision(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is about to be checked."""
        return self._hooks().decision(context.tool_call_id, requested_arguments(context))

    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is invoked now."""
        return self._hooks().decision_of_running(context.tool_call_id)

    def record_replaced_output(self, context: ToolContext[Any], replacement: Any, output: Any) -> None:
        """Note that a model gets `replacement` instead of a tool's `output`: the record keeps the output."""
        self._hooks().record_replaced_output(context.tool_call_id, replacement, output)

    def mark_needs_approval(self, call_id: str) -> None:
        """Mark a call that needs a person's approval unless a rule approves it."""
        self._calls_to_approve.add((current_parent_call(), call_id))

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that has to wait; record that it did, and which. A query only where
        a rule is about the tool."""
        key = current_parent_call(), context.tool_call_id
        if key not in self._calls_to_approve:
            return False
        self._calls_to_approve.discard(key)
        cached = auto_approval_rules.cached_rules()
        rules = cached if cached is not None else await self._do(auto_approval_rules.rules)
        if identity.identity_of(tool).lookup_key not in rules:
            return False
        return await self._approved(context, agent, tool)

    async def _approved(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        hooks, parent, call_id, sent = (
            self._hooks(),
            current_parent_call(),
            context.tool_call_id,
            requested_arguments(context),
        )
        if hooks.calls.find_requested(call_id, recorded_digests(sent)) is not None:
            return False  # a person was asked already
        our_id = hooks.calls.new(call_id)
        request = sdk_approvals.build_request(agent.name, hooks.turns.current, our_id, call_id, sent, parent=parent)
        request |= sdk_approvals.of_tool(tool, context.tool_namespace, agent.name, self._served)
        about = evaluate.matching(evaluate.latest(), agent.name, tool.qualified_name)
        request |= {"why": sdk_approvals.why(tool.qualified_name, tool, about)}
        try:
            rule = await self._do(auto_approval.approve_call, self._event_writer.claim, truncate_fields(request))
        except Fenced:
            self._event_writer.is_lost = True
            raise
        if rule is None:
            hooks.calls.give_back(call_id, our_id)
            return False
        hooks.calls.approve(EarlierCall(our_id, call_id, "approved", recorded_digests(sent)[-1], parent), sent)
        by = f"an auto-approval rule by {rule.made_by}"
        hooks.decided = {**hooks.decided, our_id: Decision("approve", "", digest=digest(sent), by=by)}
        return True

    async def refuse(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, refusal: Refusal) -> None:
        """Commit that a call was refused; only then is the model told."""
        hooks, parent = self._hooks(), current_parent_call()
        call_id = context.tool_call_id
        digests = recorded_digests(requested_arguments(context))
        our_id = hooks.calls.find_requested(call_id, digests) or hooks.calls.new(call_id)
        body: Body = {"event": "policy.refused", "agent": agent.name, "turn": hooks.turns.current, "tool_call": our_id}
        body |= {"tool_call_id": original(call_id), "effect": self._served.effect(tool, agent.name)}
        body |= identity.layers(tool, context.tool_namespace)
        body |= arguments(mask(context.tool_arguments)) | ({"parent_call": parent} if parent else {})
        body |= {"reason": refusal.reason, "by": refusal.by}
        await self._event_writer.store(body | ({"rule": _rule(refusal.row)} if refusal.row else {}))

    async def _read(self) -> Rows:
        rows: Rows = await self._do(evaluate.rows)
        return rows


def _rule(row: PolicyRule) -> dict[str, str]:
    return {name: value for name, value in row._asdict().items() if value}
