"""The tools of a request: those of its client, whose call ends the run, and hosted ones, which run here.

A hosted tool is registered by name in a team's `hosted_tools`; whoever names it in a request is given it, an agent of
any team or a plain model. It reads `agents_app.run_scope.current_scope().response_id`, or its context's
field of that name.
"""

import copy
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from agents import FunctionTool, ToolApprovalItem, UserError
from agents.tool_context import ToolContext

from agents_app.open_responses.request import Item, RunRequest, Unfit
from agents_app.recorded_values import reason_of
from agents_app.run_scope import current_scope
from agents_app.teams.definition import Effect, Team
from agents_app.tools.identity import MARK
from conversations.core.errors import Fenced
from conversations.events.response_ids import CLIENT_ORIGIN

HOSTED = "hosted"
NOTHING: Item = {"type": "object", "properties": {}}


class ClientTool(FunctionTool):
    """A tool of the client's. It always requires an approval that nobody gives, so a call of it stops the run after the
    calls beside it, and before a handoff beside it; the call is the answer."""

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[no-untyped-call]  # the SDK's has no annotation
        setattr(self, MARK, CLIENT_ORIGIN)


class Hosted(NamedTuple):
    """A tool that runs here, and its effect."""

    tool: FunctionTool
    effect: Effect


def hosted_by(teams: Iterable[Team]) -> dict[str, Hosted]:
    """Return the hosted tools of all teams by name."""
    hosted: dict[str, Hosted] = {}
    for team in teams:
        for tool in team.hosted_tools:
            hosted[tool.qualified_name] = Hosted(outspoken(tool), team.effect(tool.qualified_name))
    return hosted


def tools_of(request: RunRequest, hosted: Mapping[str, Hosted], own: Collection[str]) -> dict[str, FunctionTool]:
    """Return a request's tools by name; of several with one name the last counts. `own` are the names of the agent's
    tools, which come first. Raises Unfit for a hosted tool that this worker does not have: it is not the
    client's."""
    tools: dict[str, FunctionTool] = {}
    for spec in request.tools:
        name = str(spec.get("name") or str(spec.get("type") or "").rpartition(":")[2])
        if name in hosted:
            tools[name] = hosted[name].tool
        elif spec.get("type") == "function" and name not in request.hosted:
            tools[name] = client_tool(name, spec)
        elif name not in own:
            raise Unfit("invalid_request", f"The team that hosts {name} is not served by the worker of this agent.")
    return tools


def client_tool(name: str, spec: Item) -> ClientTool:
    """Return a tool of the client's. Its schema goes to the model unchanged, or, if it says `strict`, made strict."""
    fields: dict[str, Any] = {"name": name, "description": str(spec.get("description") or "")}
    fields |= {"on_invoke_tool": _never, "needs_approval": True}
    schema = spec.get("parameters")
    fields["params_json_schema"] = schema if isinstance(schema, dict) and schema else dict(NOTHING)
    try:
        return ClientTool(**fields, strict_json_schema=spec.get("strict") is True)
    except UserError:  # a schema that cannot be strict is offered as one that is not
        return ClientTool(**fields, strict_json_schema=False)


def is_client_tool(item: ToolApprovalItem) -> bool:
    """Return whether a call that stopped the run is for the client to answer."""
    name = item.qualified_name or item.name
    tools = (tool for tool in item.agent.tools if isinstance(tool, FunctionTool))
    return isinstance(next((tool for tool in tools if tool.qualified_name == name), None), ClientTool)


def outspoken(tool: FunctionTool) -> FunctionTool:
    """Return a tool whose failures are all reported to the model with their cause, and end no run."""
    wrapped = copy.copy(tool)
    setattr(wrapped, MARK, HOSTED)
    wrapped.timeout_behavior = "error_as_result"
    if wrapped._use_default_failure_error_function:
        wrapped._use_default_failure_error_function, wrapped._failure_error_function = False, None
    invoke = wrapped.on_invoke_tool

    async def invoke_fenced(context: ToolContext[Any], arguments: str) -> Any:
        try:
            return await invoke(context, arguments)
        except Fenced:
            raise
        except Exception as error:  # whatever a team's tool raises: the model goes on without it
            scope = current_scope()
            if scope is not None and scope.hooks is not None:
                scope.hooks.failed(context.tool_call_id, error)
            return f"The tool failed: {reason_of(error)}"

    invoke_fenced.__wrapped__ = invoke  # type: ignore[attr-defined]  # what it is made of is read through it
    wrapped.on_invoke_tool = invoke_fenced
    return wrapped


async def _never(context: ToolContext[Any], arguments: str) -> str:
    return "This tool belongs to the client; it does not run here."
