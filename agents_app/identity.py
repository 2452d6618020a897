"""A tool's identity, layer by layer, and its schema under a hash (design 8). The one place that looks into the SDK's
private module for them; `tests/test_worker_tools.py` fails when it moves."""

import hashlib
import json
from typing import Any, NamedTuple

from agents import FunctionTool, Handoff, Tool
from agents._tool_identity import (
    get_explicit_function_tool_namespace,
    get_function_tool_lookup_key_for_tool,
)
from agents.tool import get_function_tool_origin

MARK = "switchboard_origin"  # the attribute of a tool that says it; copies keep it


class Schema(NamedTuple):
    """A tool as a model sees it. `body` is canonical JSON, `hash` its SHA-256."""

    hash: str
    name: str
    body: str


def schema_of(tool: Tool) -> Schema:
    """Answer the schema of a tool; of one that is not a function only its name is known."""
    facts: dict[str, Any] = {"name": tool.name}
    if isinstance(tool, FunctionTool):
        facts = {
            "name": tool.qualified_name,
            "description": tool.description,
            "params_json_schema": tool.params_json_schema,
            "strict": tool.strict_json_schema,
        }
        if tool.output_json_schema is not None:
            facts["output_json_schema"] = tool.output_json_schema
    return _schema(facts)


def schema_of_handoff(handoff: Handoff[Any, Any]) -> Schema:
    """Answer the schema of a handoff, which a model sees as a tool."""
    return _schema(
        {
            "name": handoff.tool_name,
            "description": handoff.tool_description,
            "params_json_schema": handoff.input_json_schema,
            "strict": handoff.strict_json_schema,
        }
    )


def layers(tool: FunctionTool) -> dict[str, Any]:
    """Answer the layers that a tool step tells: public name, namespace, qualified name, lookup key, origin, schema."""
    key = get_function_tool_lookup_key_for_tool(tool)
    return {
        "name": tool.name,
        "namespace": get_explicit_function_tool_namespace(tool),
        "qualified_name": tool.qualified_name,
        "lookup_key": f"{key[0]}:{'.'.join(key[1:])}" if key else None,
        "origin": origin(tool),
        "schema": schema_of(tool).hash,
    }


def origin(tool: Tool) -> str | None:
    """Tell where a tool comes from: function, mcp or agent_as_tool; hosted or external where a request named it; None
    of the SDK's own kinds."""
    if (marked := getattr(tool, MARK, None)) is not None:
        return str(marked)
    found = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    return found.type.value if found else None


def _schema(facts: dict[str, Any]) -> Schema:
    body = json.dumps(facts, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return Schema(hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest(), str(facts["name"]), body)
