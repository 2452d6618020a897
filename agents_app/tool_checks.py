"""What would go wrong with an agent's tools and output only in a run, found when its team is checked."""

import inspect
from collections.abc import Iterator
from typing import Any

from agents import Agent, FunctionTool, Handoff, UserError
from pydantic.errors import PydanticUserError

from agents_app import tool_facts, tool_outputs
from agents_app.tool_collisions import collisions

MAX_NAME = 200
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")  # name → schema


def problems_of(agent: Agent[Any], seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """Say what is wrong, one sentence each; agents that run inside its tools are looked at too."""
    for problem in collisions(agent.tools, agent.handoffs):
        yield f"{agent.name!r} {problem}"
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            yield from (f"{agent.name!r}: the tool {tool.qualified_name!r} {why}" for why in _of_tool(tool))
    for given in agent.handoffs:
        if isinstance(given, Handoff) and (path := open_object(given.input_json_schema)) is not None:
            yield f"{agent.name!r}: the handoff {given.tool_name!r} lets anything into {path}: it cannot be strict"
    yield from _of_output(agent)
    for tool in agent.tools:
        inside = tool_facts.agent_inside(tool)
        if inside is not None and id(inside) not in seen:
            yield from problems_of(inside, seen | {id(agent), id(inside)})


def open_object(schema: Any, path: str = "$") -> str | None:
    """Find an object that may have more fields than it names, which strict mode forbids, wherever it is in a schema;
    the SDK looks into the usual places only."""
    if isinstance(schema, list):
        parts = ((f"{path}[{number}]", part) for number, part in enumerate(schema))
    elif isinstance(schema, dict):
        if schema.get("additionalProperties", False) is not False:
            return path
        parts = (part for name, value in schema.items() for part in _parts(name, value, path))
    else:
        return None
    return next((found for at, part in parts if (found := open_object(part, at)) is not None), None)


def _parts(name: str, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if name in ("const", "default", "enum", "examples"):  # values, not schemas
        return
    if name in _MAPS and isinstance(value, dict):
        yield from ((f"{path}.{key}", schema) for key, schema in value.items())
    else:
        yield f"{path}.{name}", value


def _of_tool(tool: FunctionTool) -> Iterator[str]:
    if not tool.name.strip() or not tool.name.isprintable():
        yield "has a name that is blank or holds a character that is not printed"
    if len(tool.qualified_name) > MAX_NAME:
        yield f"has a name of {len(tool.qualified_name)} characters; expected {MAX_NAME} at most"
    if why := _unfit(tool_facts.function_of(tool)):
        yield f"is made of {why}: wrap it in a plain function"
    if tool_facts.in_arguments(tool):
        yield "takes its context inside an argument: it is the first parameter, or none"
    kind = tool.params_json_schema.get("type", "object")
    if kind not in ("object", ["object"]):
        yield f"takes {kind!r} instead of an object"
    if tool.strict_json_schema and (path := open_object(tool.params_json_schema)) is not None:
        yield f"is strict and lets anything into {path}: name its fields, or make it strict_mode=False"


def _unfit(function: Any) -> str:
    """Say what a callable is that the SDK takes and cannot call for a result; empty when it can."""
    target = tool_facts.body_of(function)
    if inspect.isclass(function):
        return f"the class {function.__name__}"
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        return "a generator"
    return ""


def _of_output(agent: Agent[Any]) -> Iterator[str]:
    try:
        tool_outputs.output_of(agent)
    except (UserError, PydanticUserError, TypeError, ValueError, NameError) as error:
        named = tool_outputs.type_name(agent.output_type)
        reason = str(error.__cause__ or error).splitlines()[0].split(". ")[0]
        yield f"{agent.name!r} cannot answer with {named}: {reason}"
