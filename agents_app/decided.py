"""A person's decision about a call, where the call runs: what runs instead, or what a person answered (design 8).

    answerable(tool)      # at load, by the gate; done again it changes nothing

A tool's function is reached through here: an edited call runs with the arguments that a person wrote, which the gate
has put in place for the tool's guardrails before; a call that a person answers never reaches the function.
"""

import functools
from typing import Any, NamedTuple

from agents import FunctionTool
from agents.tool_context import ToolContext

from agents_app.nesting import current


class Decided(NamedTuple):
    """A decision. `digest` is of the arguments that were decided about, as they run."""

    decision: str
    message: str
    digest: str = ""
    arguments: str | None = None
    """what runs instead of what was asked for, of an edit"""
    output: str = ""
    """what a person answered, of a response"""
    by: str = ""
    server: str = ""
    """the MCP server of the call's tool"""


def answerable(tool: FunctionTool) -> None:
    """Have a tool's function heed what a person decided about the call.

    The SDK's own invoker stays: it looks at arguments before a person is asked, and handles what the function raises.
    """
    invoker: Any = tool.on_invoke_tool  # Any: the SDK's invoker is private
    inside = getattr(invoker, "_invoke_tool_impl", None)
    if inside is None:
        tool.on_invoke_tool = _heeding(invoker)
    else:
        invoker._invoke_tool_impl = _heeding(inside)


def _heeding(inner: Any) -> Any:
    if getattr(inner, "heeds_decisions", False):
        return inner

    async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
        scope = current()
        keeper = scope.keeper if scope is not None else None
        decided = keeper.decision_of_running(ctx) if keeper is not None else None
        if keeper is None or decided is None or decided.decision not in ("respond", "edit"):
            return await inner(ctx, arguments)
        if decided.decision == "respond":
            return decided.output
        ctx._function_tool_arguments = None  # what the SDK had read of the arguments that were asked for
        given = await inner(ctx, decided.arguments or "{}")
        said = _with_note(given, decided, ctx)
        keeper.tell(ctx, said, given)
        return said

    functools.update_wrapper(invoke, inner, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    del invoke.__dict__["__wrapped__"]  # the SDK reads the signature: ours takes the whole context
    invoke.heeds_decisions = True  # type: ignore[attr-defined]  # a mark on a function
    return invoke


def _with_note(given: Any, decided: Decided, ctx: ToolContext[Any]) -> Any:
    """Tell the model what ran, unless the tool's output is the run's answer."""
    if getattr(ctx.agent, "tool_use_behavior", "run_llm_again") != "run_llm_again":
        return given
    note = f"A person changed the arguments of this call before it ran. It ran with: {decided.arguments}"
    return f"{note}\n\nIt gave: {given}"
