"""A person's decision about a call, where the call runs: what runs instead, or what a person answered (§8).

    apply_decisions(tool)      # at load, by the gate; done again it changes nothing

A tool's function is reached through here: an edited call runs with the arguments that a person wrote, which the gate
has put in place for the tool's guardrails before; a call that a person answers never reaches the function.
"""

import functools
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from agents_app.approval_gate.edited_outputs import with_change
from agents_app.approval_gate.gatekeeper_protocol import Decision
from agents_app.approval_gate.run_scope import current_scope


def apply_decisions(tool: FunctionTool) -> None:
    """Have a tool's function heed what a person decided about the call.

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
        gatekeeper = scope.gatekeeper if scope is not None else None
        decided = gatekeeper.decision_of_running(ctx) if gatekeeper is not None else None
        if gatekeeper is None or decided is None or decided.decision not in ("respond", "edit"):
            return await inner(ctx, arguments)
        if decided.decision == "respond":
            return decided.output
        ctx._function_tool_arguments = None  # what the SDK had read of the arguments that were asked for
        output = await inner(ctx, decided.arguments or "{}")
        requested_args = ctx.tool_call.arguments if ctx.tool_call is not None else arguments
        replacement = _with_note(output, decided, ctx, requested_args)
        gatekeeper.record_replaced_output(ctx, replacement, output)
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
