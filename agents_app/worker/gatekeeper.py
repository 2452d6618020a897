"""The gatekeeper of a run: tells the gate the operators' rules and people's decisions, approves by auto-approval rule,
and records `policy.refused`. Created by `AgentRun` and `ReplayRun`, which put it in the run's scope.
"""

from typing import Any

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext

from agents_app.call_decisions import Decision, Refusal
from agents_app.model_providers.unique_call_ids import original
from agents_app.recorded_values import mask_json_text, recorded_digests, truncate_fields
from agents_app.run_scope import RunnerId, current_parent_call, current_runner
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker import run_approvals
from agents_app.worker.call_ids import EarlierCall
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.run_hooks import RecordingHooks, arguments, requested_arguments
from conversations.core.db_threads import RunInThread
from conversations.core.errors import Fenced
from conversations.core.ids import text_digest
from conversations.runs.approvals import auto_approval, auto_approval_rules
from conversations.runs.claims import Body
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import PolicyRule, Rows


class RunGatekeeper:
    """The gatekeeper of one attempt."""

    def __init__(
        self, event_writer: RunEventWriter, served: ServedTeam, do: RunInThread, hooks: RecordingHooks
    ) -> None:
        self._event_writer, self._served, self._do, self._hooks = event_writer, served, do, hooks
        self._calls_to_approve: set[tuple[RunnerId, str]] = set()  # calls that would wait for a person

    async def rules(self) -> Rows:
        """Return the operators' rules: one query in half a second, of all runs of the worker."""
        return await evaluate.rows_in(self._do)

    def decision_before_start(self, context: ToolContext[Any], tool: FunctionTool) -> Decision | None:
        """Return what a person decided about a tool's call that the gate is about to check."""
        digests = recorded_digests(requested_arguments(context))
        our_id = self._hooks.calls.find_requested(context.tool_call_id, tool.name, digests)
        return self._hooks.decided.get(our_id) if our_id else None

    def mark_needs_approval(self, call_id: str) -> None:
        """Mark a call that needs a person's approval unless a rule approves it."""
        self._calls_to_approve.add((current_runner(), call_id))

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that has to wait; record that it did, and which. A query only where
        a rule is about the tool."""
        key = current_runner(), context.tool_call_id
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
        request = run_approvals.build_request(agent.name, hooks.turns.current, our_id, call_id, sent, parent=parent)
        request |= run_approvals.of_tool(tool, context.tool_namespace, agent.name, self._served)
        about = run_approvals.matching_rules(evaluate.latest(), agent.name, tool.qualified_name, tool)
        request |= {"why": run_approvals.why(tool.qualified_name, tool, about)}
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
