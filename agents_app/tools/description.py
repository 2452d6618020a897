"""What people see of a tool beside its schema: layers, effect, approval rule, guardrails, limits, and what is
injected into it, which no model sees. Called by the register; pages read what it writes."""

import inspect
from collections.abc import Sequence
from typing import Any, get_args, get_origin, get_type_hints

from agents import Agent, FunctionTool, RunContextWrapper, Tool
from agents.tool_context import ToolContext

from agents_app.approval_gate import gate
from agents_app.tools import identity, output_types

Facts = dict[str, Any]  # JSON


def facts_of(tool: Tool, siblings: Sequence[Tool], effect: str) -> Facts:
    """Return the facts of a tool as an agent is offered it beside `siblings`."""
    tool_identity = identity.identity_of(tool, siblings)
    fields: Facts = {
        "name": tool_identity.qualified_name,
        "public_name": tool_identity.name,
        "namespace": tool_identity.namespace,
        "lookup_key": tool_identity.lookup_key,
        "approval_keys": list(tool_identity.approval_keys),
        "trace_name": tool_identity.trace_name,
        "origin": tool_identity.origin,
        "mcp_server": tool_identity.mcp_server,
        "name_there": tool_identity.name_there,
        "schema": identity.schema_of(tool).hash,
        "effect": effect,
        "needs_approval": bool(gate.declared_needs_approval_of(tool)) if isinstance(tool, FunctionTool) else False,
    }
    return fields | (_of_function(tool) if isinstance(tool, FunctionTool) else {"runs_at": "provider"})


def injected(tool: FunctionTool) -> str | None:
    """Name the type of the context that a tool is handed beside its arguments; None when it takes none, or when what
    it calls cannot be seen."""
    first = next(iter(_parameters(tool)), None)
    return output_types.type_name(first) if _is_context(first) else None


def in_arguments(tool: FunctionTool) -> bool:
    """Return whether a context is hidden inside an argument's type: its schema, and a model's answer, would have it."""
    parameters = _parameters(tool)
    return any(map(_mentions_context, parameters[1:] if parameters and _is_context(parameters[0]) else parameters))


def function_of(tool: FunctionTool) -> Any:
    """Return the callable that a decorated tool was made of, also under wrappers that tell `__wrapped__`; else None."""
    invoke: Any = tool.on_invoke_tool
    while not hasattr(invoke, "_get_wrapped_callable") and hasattr(invoke, "__wrapped__"):
        invoke = invoke.__wrapped__
    function = invoke._get_wrapped_callable() if hasattr(invoke, "_get_wrapped_callable") else None
    return function if callable(function) else None


def body_of(function: Any) -> Any:
    """Return what runs when a callable is called: itself, or an object's `__call__`."""
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def agent_inside(tool: Tool) -> Agent[Any] | None:
    """Return the agent that runs inside a call of an agent used as a tool."""
    inner = getattr(tool, "_agent_instance", None)
    return inner if isinstance(inner, Agent) else None


def called(rule: object) -> str:
    """Name a function of a team that decides something: an approval, a guardrail, whether a tool is offered."""
    named = getattr(rule, "name", None) or getattr(rule, "__name__", None)
    return str(named or type(rule).__name__)[:200]


def _of_function(tool: FunctionTool) -> Facts:
    inside = agent_inside(tool)
    return {
        "approval": _rule(gate.declared_needs_approval_of(tool)),
        "enabled": _rule(tool.is_enabled),
        "guardrails": {
            "input": [called(_guard(guardrail)) for guardrail in gate.guardrails_of(tool)],
            "output": [called(_guard(guardrail)) for guardrail in tool.tool_output_guardrails or ()],
        },
        "timeout_s": tool.timeout_seconds,
        "timeout_ends_run": tool.timeout_behavior == "raise_exception",
        "is_deferred": tool.defer_loading,
        "injected": injected(tool),
        "returns": _returns(tool),
        "agent_inside": inside.name if inside else None,
    }


def _rule(condition: object) -> str:
    """Return when: always, never, or the name of the function that decides."""
    return ("always" if condition else "never") if isinstance(condition, bool) else called(condition)


def _guard(guardrail: Any) -> Any:
    return guardrail if guardrail.name else guardrail.guardrail_function


def _returns(tool: FunctionTool) -> str | None:
    function = function_of(tool)
    hints = _hints(function) if function is not None else {}
    return output_types.type_name(hints["return"]) if "return" in hints else None


def _parameters(tool: FunctionTool) -> list[Any]:
    """Return the types of what a tool's function takes, in order; None where there is no annotation."""
    function = function_of(tool)
    if function is None:
        return []
    hints = _hints(function)
    return [hints.get(name) for name in inspect.signature(function).parameters]


def _is_context(kind: Any) -> bool:
    return (get_origin(kind) or kind) in (RunContextWrapper, ToolContext)


def _mentions_context(kind: Any) -> bool:
    return _is_context(kind) or any(map(_mentions_context, get_args(kind)))


def _hints(function: Any) -> dict[str, Any]:
    """Return a callable's annotations; those that cannot be resolved here are left out."""
    try:
        return get_type_hints(body_of(function))
    except (NameError, TypeError):
        return {}
