"""What people are told of a tool beside its schema: layers, effect, approval rule, guardrails, limits, and what is
injected into it, which no model sees. Called by the register; pages read what it writes."""

import inspect
from collections.abc import Sequence
from typing import Any, get_args, get_origin, get_type_hints

from agents import Agent, FunctionTool, RunContextWrapper, Tool
from agents.tool_context import ToolContext

from agents_app import gate, identity, tool_outputs

Facts = dict[str, Any]  # JSON


def facts_of(tool: Tool, siblings: Sequence[Tool], effect: str) -> Facts:
    """Answer the facts of a tool as an agent is offered it beside `siblings`."""
    one = identity.identity_of(tool, siblings)
    facts: Facts = {
        "name": one.qualified_name,
        "public_name": one.name,
        "namespace": one.namespace,
        "lookup_key": one.lookup_key,
        "approval_keys": list(one.approval_keys),
        "trace_name": one.trace_name,
        "origin": one.origin,
        "mcp_server": one.mcp_server,
        "name_there": one.name_there,
        "schema": identity.schema_of(tool).hash,
        "effect": effect,
        "needs_approval": bool(gate.code_of(tool)) if isinstance(tool, FunctionTool) else False,
    }
    return facts | (_of_function(tool) if isinstance(tool, FunctionTool) else {"runs_at": "provider"})


def injected(tool: FunctionTool) -> str | None:
    """Name the type of the context that a tool is handed beside its arguments; None when it takes none, or when what
    it calls cannot be seen."""
    first = next(iter(_parameters(tool)), None)
    return tool_outputs.type_name(first) if _is_context(first) else None


def in_arguments(tool: FunctionTool) -> bool:
    """Tell whether a context is hidden inside an argument's type: its schema, and a model's answer, would have it."""
    given = _parameters(tool)
    return any(map(_mentions_context, given[1:] if given and _is_context(given[0]) else given))


def function_of(tool: FunctionTool) -> Any:
    """Answer the callable that a decorated tool was made of, also under wrappers that tell `__wrapped__`; else None."""
    invoke: Any = tool.on_invoke_tool
    while not hasattr(invoke, "_get_wrapped_callable") and hasattr(invoke, "__wrapped__"):
        invoke = invoke.__wrapped__
    found = invoke._get_wrapped_callable() if hasattr(invoke, "_get_wrapped_callable") else None
    return found if callable(found) else None


def body_of(function: Any) -> Any:
    """Answer what runs when a callable is called: itself, or an object's `__call__`."""
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def agent_inside(tool: Tool) -> Agent[Any] | None:
    """Answer the agent that runs inside a call of an agent used as a tool."""
    found = getattr(tool, "_agent_instance", None)
    return found if isinstance(found, Agent) else None


def called(rule: object) -> str:
    """Name a function of a team that decides something: an approval, a guardrail, whether a tool is offered."""
    named = getattr(rule, "name", None) or getattr(rule, "__name__", None)
    return str(named or type(rule).__name__)[:200]


def _of_function(tool: FunctionTool) -> Facts:
    inside = agent_inside(tool)
    return {
        "approval": _rule(gate.code_of(tool)),
        "enabled": _rule(tool.is_enabled),
        "guardrails": {
            "input": [called(_guard(one)) for one in gate.guardrails_of(tool)],
            "output": [called(_guard(one)) for one in tool.tool_output_guardrails or ()],
        },
        "timeout_s": tool.timeout_seconds,
        "timeout_ends_run": tool.timeout_behavior == "raise_exception",
        "is_deferred": tool.defer_loading,
        "injected": injected(tool),
        "returns": _returns(tool),
        "agent_inside": inside.name if inside else None,
    }


def _rule(given: object) -> str:
    """Say when: always, never, or the name of the function that decides."""
    return ("always" if given else "never") if isinstance(given, bool) else called(given)


def _guard(guardrail: Any) -> Any:
    return guardrail if guardrail.name else guardrail.guardrail_function


def _returns(tool: FunctionTool) -> str | None:
    function = function_of(tool)
    hints = _hints(function) if function is not None else {}
    return tool_outputs.type_name(hints["return"]) if "return" in hints else None


def _parameters(tool: FunctionTool) -> list[Any]:
    """Answer the types of what a tool's function takes, in order; None where there is no annotation."""
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
    """Answer a callable's annotations; those that cannot be resolved here are left out."""
    try:
        return get_type_hints(body_of(function))
    except (NameError, TypeError):
        return {}
