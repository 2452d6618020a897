"""The tools of a request: those of its client, whose call ends the run, and hosted ones, which run here.

A hosted tool is registered by name in a team's `hosted_tools`; whoever names it in a request is given it, an agent of
any team or a plain model. It reads `agents_app.nesting.current().response_id`, or its context's field of that name.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agents import FunctionTool, ToolApprovalItem, UserError
from agents.tool_context import ToolContext

from agents_app.identity import MARK
from agents_app.nesting import current
from agents_app.pen import reason_of
from agents_app.responding.asked import Item
from agents_app.teams import Effect, Team
from conversations.errors import Fenced
from conversations.responses import EXTERNAL

HOSTED = "hosted"
NOTHING: Item = {"type": "object", "properties": {}}


class External(FunctionTool):
    """A tool of the client's. It always asks for an approval that nobody gives, so a call of it stops the run after the
    calls beside it, and before a hand-off beside it; the call is the answer."""

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[no-untyped-call]  # the SDK's has no annotation
        setattr(self, MARK, EXTERNAL)


class Hosted(NamedTuple):
    """A tool that runs here, and what it does to the world."""

    tool: FunctionTool
    effect: Effect


def hosted_by(teams: Iterable[Team]) -> dict[str, Hosted]:
    """Answer the hosted tools of all teams by name."""
    found: dict[str, Hosted] = {}
    for team in teams:
        for tool in team.hosted_tools:
            found[tool.qualified_name] = Hosted(outspoken(tool), team.effect(tool.qualified_name))
    return found


def tools_of(specs: Sequence[Item], hosted: Mapping[str, Hosted]) -> dict[str, FunctionTool]:
    """Answer a request's tools by name, each once; the last of one name counts."""
    made: dict[str, FunctionTool] = {}
    for spec in specs:
        name = str(spec.get("name") or str(spec.get("type") or "").rpartition(":")[2])
        made[name] = hosted[name].tool if name in hosted else external(name, spec)
    return made


def external(name: str, spec: Item) -> External:
    """Make a tool of the client's. Its schema goes to the model as it came, or, where it says `strict`, made strict."""
    facts: dict[str, Any] = {"name": name, "description": str(spec.get("description") or "")}
    facts |= {"on_invoke_tool": _never, "needs_approval": True}
    schema = spec.get("parameters")
    facts["params_json_schema"] = schema if isinstance(schema, dict) and schema else dict(NOTHING)
    try:
        return External(**facts, strict_json_schema=spec.get("strict") is True)
    except UserError:  # a schema that cannot be strict is offered as one that is not
        return External(**facts, strict_json_schema=False)


def is_external(item: ToolApprovalItem) -> bool:
    """Tell whether a call that stopped the run is the client's to answer."""
    name = item.qualified_name or item.name
    tools = (tool for tool in item.agent.tools if isinstance(tool, FunctionTool))
    return isinstance(next((tool for tool in tools if tool.qualified_name == name), None), External)


def outspoken(tool: FunctionTool) -> FunctionTool:
    """Answer a tool whose every failure is told to the model, as what went wrong, and ends no run."""
    made = copy.copy(tool)
    setattr(made, MARK, HOSTED)
    made.timeout_behavior = "error_as_result"
    if made._use_default_failure_error_function:
        made._use_default_failure_error_function, made._failure_error_function = False, None
    invoke = made.on_invoke_tool

    async def told(context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await invoke(context, arguments)
        except Fenced:
            raise
        except Exception as error:  # whatever a team's tool raises: the model goes on without it
            scope = current()
            if scope is not None and hasattr(scope.hooks, "failed"):
                scope.hooks.failed(context.tool_call_id, error)  # type: ignore[union-attr]  # the worker's own hooks
            return f"The tool failed: {reason_of(error)}"

    told.__wrapped__ = invoke  # type: ignore[attr-defined]  # what it is made of is read through it
    made.on_invoke_tool = told
    return made


async def _never(context: ToolContext[Any], arguments: str) -> str:
    return "This tool belongs to the client; it does not run here."
