"""A tool's identity, layer by layer, and its schema under a hash (§8). The one adapter over the SDK's private
helpers: nothing else here imports `agents._tool_identity`, and `tests/agents_app/test_identity.py` fails when they
move."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agents import FunctionTool, Handoff, Tool, UserError
from agents._tool_identity import (
    FunctionToolLookupKey,
    get_explicit_function_tool_namespace,
    get_function_tool_approval_keys,
    get_function_tool_lookup_key_for_call,
    get_function_tool_lookup_key_for_tool,
    get_function_tool_namespace_description,
    get_function_tool_trace_name,
    is_deferred_top_level_function_tool,
    resolve_tool_name_collisions,
    should_allow_bare_name_approval_alias,
)
from agents.tool import get_function_tool_origin

from conversations.core.ids import text_digest

MARK = "switchboard_origin"  # the attribute of a tool that says it; copies keep it


class Schema(NamedTuple):
    """A tool as a model sees it. `body` is canonical JSON, `hash` its SHA-256, `key` the lookup key of its calls."""

    hash: str
    name: str
    body: str
    key: str = ""


class Identity(NamedTuple):
    """The layers of a tool's identity, each apart."""

    name: str
    """the public name, without its namespace"""
    namespace: str | None
    qualified_name: str
    lookup_key: str
    """its kind and its names: `bare:x`, `namespaced:ns.x`, `deferred_top_level:x`"""
    approval_keys: tuple[str, ...]
    trace_name: str
    origin: str | None
    """function, mcp, agent_as_tool; None of the SDK's own kinds"""
    mcp_server: str | None
    name_there: str | None
    """the tool's name on its MCP server, whatever it is called here"""


def identity_of(tool: Tool, siblings: Sequence[Tool] = ()) -> Identity:
    """Return all layers of a tool; `siblings` are the tools it is offered with, which its approval keys depend on."""
    if not isinstance(tool, FunctionTool):
        return Identity(tool.name, None, tool.name, f"bare:{tool.name}", (tool.name,), tool.name, None, None, None)
    key = get_function_tool_lookup_key_for_tool(tool)
    server, there = _mcp(tool)
    keys = get_function_tool_approval_keys(
        tool_name=tool.name,
        tool_namespace=namespace_of(tool),
        allow_bare_name_alias=should_allow_bare_name_approval_alias(tool, siblings),
        tool_lookup_key=key,
    )
    return Identity(
        name=tool.name,
        namespace=namespace_of(tool),
        qualified_name=tool.qualified_name,
        lookup_key=_written(key) or f"bare:{tool.name}",
        approval_keys=keys,
        trace_name=get_function_tool_trace_name(tool) or tool.name,
        origin=origin(tool),
        mcp_server=server,
        name_there=there,
    )


def layers(tool: FunctionTool, called_as: str | None = None) -> dict[str, Any]:
    """Return the layers that a tool step tells. `called_as` is the namespace that the call carried: a deferred call
    has a synthetic one, equal to the name, which its record keeps."""
    tool_identity = identity_of(tool)
    fields: dict[str, Any] = {
        "name": tool_identity.name,
        "namespace": called_as or tool_identity.namespace,
        "qualified_name": tool_identity.qualified_name,
        "lookup_key": tool_identity.lookup_key,
        "origin": tool_identity.origin,
        "schema": schema_of(tool).hash,
    }
    return fields | {"mcp_server": tool_identity.mcp_server} if tool_identity.mcp_server else fields


def schema_of(tool: Tool) -> Schema:
    """Return the schema of a tool; of one that is not a function only its name is known."""
    if not isinstance(tool, FunctionTool):
        return _schema({"name": tool.name}, f"bare:{tool.name}")
    fields: dict[str, Any] = {
        "name": tool.qualified_name,
        "description": tool.description,
        "params_json_schema": tool.params_json_schema,
        "strict": tool.strict_json_schema,
    }
    if tool.output_json_schema is not None:
        fields["output_json_schema"] = tool.output_json_schema
    return _schema(fields, _written(get_function_tool_lookup_key_for_tool(tool)))


def schema_of_handoff(handoff: Handoff[Any, Any]) -> Schema:
    """Return the schema of a handoff, which a model sees as a tool."""
    fields = {
        "name": handoff.tool_name,
        "description": handoff.tool_description,
        "params_json_schema": handoff.input_json_schema,
        "strict": handoff.strict_json_schema,
    }
    return _schema(fields, f"bare:{handoff.tool_name}")


def key_of(tool: FunctionTool) -> FunctionToolLookupKey | None:
    """Return the lookup key of a tool as the SDK takes it."""
    return get_function_tool_lookup_key_for_tool(tool)


def key_of_call(call: Any) -> str:
    """Return the lookup key that a call, or an approval item, asks for; empty when it names no tool."""
    lookup_key = getattr(call, "tool_lookup_key", None)
    return _written(lookup_key or get_function_tool_lookup_key_for_call(getattr(call, "raw_item", call)))


def find(tools: Iterable[Tool], call: Any) -> FunctionTool | None:
    """Find the tool that a call, or an approval item, asks for: by its lookup key, never by a name alone."""
    key = key_of_call(call)
    functions = (tool for tool in tools if isinstance(tool, FunctionTool))
    return next((tool for tool in functions if _written(get_function_tool_lookup_key_for_tool(tool)) == key), None)


def origin(tool: Tool) -> str | None:
    """Return where a tool comes from: function, mcp or agent_as_tool; hosted or external where a request named it; None
    of the SDK's own kinds."""
    if (marked := getattr(tool, MARK, None)) is not None:
        return str(marked)
    sdk_origin = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    return sdk_origin.type.value if sdk_origin else None


def namespace_of(tool: Tool) -> str | None:
    """Return the namespace that a tool was put into."""
    return get_explicit_function_tool_namespace(tool)


def namespace_description(tool: Tool) -> str:
    """Return what a model is told of a tool's namespace."""
    return get_function_tool_namespace_description(tool) or ""


def is_deferred(tool: Tool) -> bool:
    """Return whether a tool without a namespace is loaded only when a model searches for it."""
    return is_deferred_top_level_function_tool(tool)


def ambiguity(tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]]) -> str:
    """Return what the SDK itself finds ambiguous among what a model is offered together; empty when nothing."""
    try:
        resolve_tool_name_collisions(tools, handoffs, collision_policy="error")
    except UserError as error:
        return str(error)
    return ""


def _mcp(tool: FunctionTool) -> tuple[str | None, str | None]:
    """Return the MCP server and the name there, which a prefix here never changes."""
    if tool._mcp_tool_binding is not None:
        return tool._mcp_tool_binding[:2]
    sdk_origin = get_function_tool_origin(tool)
    return (sdk_origin.mcp_server_name, None) if sdk_origin else (None, None)


def _written(key: FunctionToolLookupKey | None) -> str:
    return f"{key[0]}:{'.'.join(key[1:])}" if key else ""


def _schema(fields: dict[str, Any], key: str) -> Schema:
    body = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return Schema(text_digest(body), str(fields["name"]), body, key)
