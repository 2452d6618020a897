"""The gate: every call of a team's function tools passes it before anything of the tool runs, and reaches the tool's
function through it (§8). Called by the SDK; it asks the run's `Gatekeeper` for rules and decisions,
and its hooks for the decision about a call that is invoked.

    guard_agent(agent)      # at load; every function tool that the agent can come to is guarded, once

A guarded tool reads the operators' rules (at most half a second old) and the run's own restriction from the run's scope
(`current_scope()`). The result is one of:

- The call runs.
- The call waits for a person. If an auto-approval rule matches, it is approved at once; this is checked after the
  tool's own guardrails, so that a call that they reject does not use up the rule (`AutoApprovalGuardrail`).
- The call is refused: the tool's function is never entered, `policy.refused` is stored, and the model gets the reason
  as the tool's output, so that it can continue.

The SDK decides with `needs_approval` whether a call waits, and with the input guardrails whether it is refused. It does
not call `needs_approval` if the arguments are no JSON object, but treats the call as one that waits. A worker's runs
therefore also run the guardrails before the wait (`GUARDED_CALLS`): the gate then passes such a call on to the tool's
own error unless code or policy requires approval. So a team's own input guardrails run before a person is asked, and
again afterwards. Outside a worker there are no rules.

In this module, the decision is read at two places: `PolicyGuardrail._check_call` puts a person's arguments in place for
the guardrails after it and for the record, and `_wrap_invoker` calls the function with them.
"""

import copy
import functools
import inspect
import json
from collections.abc import Iterator
from typing import Any, cast

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    RunContextWrapper,
    ToolApprovalItem,
    ToolExecutionConfig,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)
from agents.tool_context import ToolContext

from agents_app.approval_gate.output_after_edit import with_change
from agents_app.call_decisions import Decision, Refusal
from agents_app.run_scope import RunScope, current_scope
from agents_app.tools import identity
from conversations.core.json_values import refuse_constant
from conversations.runs.policy.evaluate import RULES, Declared, Effective, PolicyRule, Rows, effective, matching
from conversations.runs.policy.file_format import describe_target

GUARDED_CALLS = ToolExecutionConfig(pre_approval_tool_input_guardrails=True)
"""What a run config needs for calls to be refused before a person is asked."""


def guard_agent(agent: Agent[Any]) -> None:
    """Have every function tool that an agent can come to pass the gate: its own, and those of the agents that it hands
    over to or that its tools are made of. Done again it changes nothing."""
    seen: set[int] = set()
    todo = [agent]
    while todo:
        current = todo.pop()
        if id(current) not in seen:
            seen.add(id(current))
            guard_tools(current)
            todo += _reached(current)


def guard_tools(agent: Agent[Any], *, is_made_at_run: bool = False) -> None:
    """Guard an agent's own function tools. A tool that several agents share becomes one object for each. For an agent
    that is made at run time, maybe as a clone, the rules about the agents whose tools it has hold as well."""
    tools = [_guarded(tool, agent.name, is_made_at_run=is_made_at_run) for tool in agent.tools]
    if any(new is not old for new, old in zip(tools, agent.tools, strict=True)):
        agent.tools = tools


def gate_of(tool: Any) -> "PolicyGuardrail | None":
    """Find a tool's gate; None of one that is not guarded."""
    guardrails = getattr(tool, "tool_input_guardrails", None) or ()
    return next((guardrail for guardrail in guardrails if isinstance(guardrail, PolicyGuardrail)), None)


def declared_needs_approval_of(tool: FunctionTool) -> Any:
    """Return a tool's own `needs_approval`: True, False or a function."""
    gate = gate_of(tool)
    return tool.needs_approval if gate is None else gate.declared_needs_approval


def guardrails_of(tool: FunctionTool) -> list[ToolInputGuardrail[Any]]:
    """Return a tool's own input guardrails."""
    return [
        guardrail
        for guardrail in tool.tool_input_guardrails or ()
        if not isinstance(guardrail, PolicyGuardrail | AutoApprovalGuardrail)
    ]


class PolicyGuardrail(ToolInputGuardrail[Any]):
    """The gate of one tool of one agent. `declared_needs_approval` is the tool's own `needs_approval`; `origins` are
    the agents from which the tool was taken over at run time."""

    def __init__(self, tool: FunctionTool, agent: str, origins: tuple[str, ...] = ()) -> None:
        super().__init__(guardrail_function=self._check_call, name="policy")
        self.agent, self.tool, self.declared_needs_approval = agent, tool, tool.needs_approval
        self.origins = origins

    async def verdict(self, agent: str = "") -> Effective:
        """Return what code and policy say of a call now; `agent` is who calls it, where that is known."""
        scope = current_scope()
        rows = await scope.gatekeeper.rules() if scope is not None and scope.gatekeeper is not None else {}
        declared = Declared("ask" if self.declared_needs_approval is True else "allow")
        return effective(declared, self.matching(rows, agent))

    def matching(self, rows: Rows, agent: str = "") -> list[PolicyRule]:
        """Return the rules that match a call, of the agent that has the strictest; the most specific first."""
        names = (agent or self.agent, self.agent, *self.origins)
        by_agent = [matching(rows, name, self.tool.qualified_name) for name in dict.fromkeys(names)]
        return max(by_agent, key=lambda rules: RULES.index(effective(Declared("allow"), rules).rule))

    def refusal(self, verdict: Effective) -> Refusal | None:
        """Return why a call would not go on, whatever a person says."""
        return _restricted(current_scope(), self.tool.qualified_name) or _denied(verdict, self)

    async def _check_call(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Put edited arguments in place; refuse the call if the policy or the run's restriction forbids it."""
        scope = current_scope()
        decided = (
            scope.gatekeeper.decision_before_start(data.context, self.tool)
            if scope is not None and scope.gatekeeper is not None
            else None
        )
        if decided is not None and decided.decision == "respond":
            return ToolGuardrailFunctionOutput.allow()  # nothing of the tool runs
        if decided is not None and decided.arguments is not None:
            data.context.tool_arguments = decided.arguments  # for the guardrails after this one, and for the record
        verdict = await self.verdict(data.agent.name)
        if (refusal := self.refusal(verdict)) is not None:
            if scope is not None and scope.gatekeeper is not None:
                await scope.gatekeeper.refuse(data.context, data.agent, self.tool, refusal)
            return ToolGuardrailFunctionOutput.reject_content(refusal.model_message)
        if self.declared_needs_approval is False and verdict.rule == "allow":
            self._approve_unreadable(data)
        return ToolGuardrailFunctionOutput.allow()

    def _approve_unreadable(self, data: ToolInputGuardrailData) -> None:
        """Let a call go on that nobody asks about: the SDK would have a person look at arguments it cannot read."""
        if not _is_object(data.context.tool_arguments):
            self.approve(data)

    def approve(self, data: ToolInputGuardrailData) -> None:
        """Tell the SDK that a call is approved."""
        context = data.context
        if context.tool_call is None:
            return
        item = ToolApprovalItem(
            agent=data.agent, raw_item=context.tool_call, tool_name=self.tool.name,
            tool_namespace=context.tool_namespace, tool_lookup_key=identity.key_of(self.tool),
        )  # fmt: skip
        context.approve_tool(item)


class AutoApprovalGuardrail(ToolInputGuardrail[Any]):
    """The last guardrail of a guarded tool: a call that would wait for a person is approved by an auto-approval rule.

    The SDK runs the guardrails before the waiting (`GUARDED_CALLS`) and looks afterwards whether the call is approved.
    """

    def __init__(self, gate: PolicyGuardrail) -> None:
        super().__init__(guardrail_function=self._approve_by_rule, name="auto_approval")
        self._gate = gate

    async def _approve_by_rule(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        scope = current_scope()
        gatekeeper = scope.gatekeeper if scope is not None else None
        if gatekeeper is not None and await gatekeeper.apply_auto_approval(data.context, data.agent, self._gate.tool):
            self._gate.approve(data)
        return ToolGuardrailFunctionOutput.allow()


class NeedsApproval:
    """`needs_approval` of a guarded tool. True in a condition as the code's own would be."""

    def __init__(self, gate: PolicyGuardrail) -> None:
        self._gate = gate

    def __bool__(self) -> bool:
        return bool(self._gate.declared_needs_approval)

    async def __call__(self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        """Return whether a call waits for a person. One that is refused does not: nobody is asked in vain."""
        verdict = await self._gate.verdict()
        if self._gate.refusal(verdict) is not None:
            return False
        waits = verdict.rule == "ask" or await self._declared_as_needed(context, arguments, call_id)
        scope = current_scope()
        if waits and scope is not None and scope.gatekeeper is not None:
            scope.gatekeeper.mark_needs_approval(call_id)
        return waits

    async def _declared_as_needed(
        self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        declared = self._gate.declared_needs_approval
        needs_approval = declared(context, arguments, call_id) if callable(declared) else declared
        return bool(await needs_approval) if inspect.isawaitable(needs_approval) else bool(needs_approval)


def _guarded(tool: Any, agent: str, *, is_made_at_run: bool) -> Any:
    if not isinstance(tool, FunctionTool):
        return tool  # it runs at the model's provider
    existing = gate_of(tool)
    if existing is not None and existing.agent == agent:
        return tool
    origins = (existing.agent, *existing.origins) if existing is not None and is_made_at_run else ()
    if existing is not None:
        tool = copy.copy(tool)
        tool.tool_input_guardrails = guardrails_of(tool)
        tool.needs_approval = existing.declared_needs_approval
    gate = PolicyGuardrail(tool, agent, origins)
    if isinstance(gate.declared_needs_approval, bool) and hasattr(tool.on_invoke_tool, "prepare_arguments"):
        # With a function to ask, the SDK has a person look at every call whose arguments are models or are converted.
        # That protects a team's own function from what it cannot see; where the code says yes or no it would change it.
        cast(Any, tool.on_invoke_tool).prepare_arguments = _nothing_prepared
    tool.tool_input_guardrails = [gate, *(tool.tool_input_guardrails or ()), AutoApprovalGuardrail(gate)]
    tool.needs_approval = NeedsApproval(gate)
    _heed_decisions(tool)
    return tool


def _nothing_prepared(arguments: str, tool: str) -> None:
    """Tell the SDK that the arguments are read when the tool is invoked."""


def _heed_decisions(tool: FunctionTool) -> None:
    """Have a tool's function heed what a person decided about the call: an edited call runs with the arguments that a
    person wrote, and one that a person answers never reaches the function.

    The SDK's own invoker stays: it looks at arguments before a person is asked, and handles what the function raises.
    """
    invoker: Any = tool.on_invoke_tool  # Any: the SDK's invoker is private
    inside = getattr(invoker, "_invoke_tool_impl", None)
    if inside is None:
        tool.on_invoke_tool = _wrap_invoker(invoker)
    else:
        invoker._invoke_tool_impl = _wrap_invoker(inside)


def _wrap_invoker(inner: Any) -> Any:
    if getattr(inner, "heeds_decisions", False):
        return inner

    async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
        scope = current_scope()
        hooks = scope.hooks if scope is not None else None
        decided = hooks.decision_of_running(ctx) if hooks is not None else None
        if hooks is None or decided is None or decided.decision not in ("respond", "edit"):
            return await inner(ctx, arguments)
        if decided.decision == "respond":
            return decided.output
        ctx._function_tool_arguments = None  # what the SDK had read of the arguments that were asked for
        output = await inner(ctx, decided.arguments or "{}")
        requested_args = ctx.tool_call.arguments if ctx.tool_call is not None else arguments
        replacement = _with_note(output, decided, ctx, requested_args)
        hooks.record_replaced_output(ctx.tool_call_id, replacement, output)
        return replacement

    functools.update_wrapper(invoke, inner, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del invoke.__dict__["__wrapped__"]  # the SDK reads the signature: ours takes the whole context
    invoke.heeds_decisions = True  # type: ignore[attr-defined]  # a mark on a function
    return invoke


def _with_note(output: Any, decided: Decision, ctx: ToolContext[Any], requested_args: str) -> Any:
    """Tell the model what ran, unless the tool's output is the run's answer."""
    if getattr(ctx.agent, "tool_use_behavior", "run_llm_again") != "run_llm_again":
        return output
    return with_change(output, requested=requested_args, ran=decided.arguments or "{}")


def _reached(agent: Agent[Any]) -> Iterator[Agent[Any]]:
    for handoff in agent.handoffs:
        agent_ref = getattr(handoff, "_agent_ref", None) if isinstance(handoff, Handoff) else None
        target = agent_ref() if callable(agent_ref) else handoff
        if isinstance(target, Agent):
            yield target
    for tool in agent.tools:
        inner = getattr(tool, "_agent_instance", None)  # of an agent as a tool
        if isinstance(inner, Agent):
            yield inner


def _restricted(scope: RunScope | None, name: str) -> Refusal | None:
    if scope is None or scope.parent_call is not None:
        return None
    limits = scope.restriction
    if limits.none:
        message = f"This request allows no tool calls: {name} was not called. Answer without tools."
        return Refusal("tool_choice", "the request allows no tool calls (tool_choice: none)", message)
    if not limits.allowed or name in limits.allowed:
        return None
    names = ", ".join(sorted(limits.allowed))
    message = f"{name} was not called: this request allows {names} only. Continue with those, or without a tool."
    return Refusal("allowed_tools", f"the request allows {names} only (allowed_tools)", message)


def _denied(verdict: Effective, gate: PolicyGuardrail) -> Refusal | None:
    if verdict.rule != "deny" or verdict.by is None:
        return None
    message = (
        f"{gate.tool.qualified_name} was not called: the operators of this system do not allow it. Continue without it."
    )
    return Refusal("policy", why(verdict.by), message, verdict.by)


def why(row: PolicyRule) -> str:
    """Name the rule that a call was stopped or held by, and who set it."""
    note = f": {row.note}" if row.note else ""
    verb = {"deny": "denies", "ask": "requires approval for"}.get(row.rule, "allows")
    return f"policy {verb} {describe_target(row)} (set by {row.updated_by}){note}"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, parse_constant=refuse_constant), dict)
    except (ValueError, RecursionError):
        return False
