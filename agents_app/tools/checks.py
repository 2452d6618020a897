"""What would go wrong with an agent's tools and output only in a run, found when its team is checked."""

import inspect
from collections.abc import Iterator
from typing import Any

from agents import Agent, FunctionTool, Handoff, UserError
from pydantic.errors import PydanticUserError

from agents_app.tools import description, output_types
from agents_app.tools.name_collisions import collisions

MAX_NAME = 200
_MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")  # name → schema


def problems_of(agent: Agent[Any], seen: frozenset[int] = frozenset()) -> Iterator[str]:
    """Return what is wrong, one sentence each; agents that run inside its tools are looked at too."""
    for problem in collisions(agent.tools, agent.handoffs):
        yield f"{agent.name!r} {problem}"
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            yield from (f"{agent.name!r}: the tool {tool.qualified_name!r} {why}" for why in _of_tool(tool))
    for handoff in agent.handoffs:
        if isinstance(handoff, Handoff) and (path := open_object(handoff.input_json_schema)) is not None:
            what = f"{agent.name!r}: the handoff {handoff.tool_name!r}"
            yield f"{what} accepts any value in {path}, so it cannot be strict"
    yield from _of_output(agent)
    for tool in agent.tools:
        inside = description.agent_inside(tool)
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
    return next((open_path for at, part in parts if (open_path := open_object(part, at)) is not None), None)


def _parts(name: str, value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if name in ("const", "default", "enum", "examples"):  # values, not schemas
        return
    if name in _MAPS and isinstance(value, dict):
        yield from ((f"{path}.{key}", schema) for key, schema in value.items())
    else:
        yield f"{path}.{name}", value


def _of_tool(tool: FunctionTool) -> Iterator[str]:
    if not tool.name.strip() or not tool.name.isprintable():
        yield "must have a name that is not blank and has no control characters"
    if len(tool.qualified_name) > MAX_NAME:
        yield f"must have a name of at most {MAX_NAME} characters; got {len(tool.qualified_name)}"
    if why := _unfit(description.function_of(tool)):
        yield f"is {why}, which cannot be called as a tool: wrap it in a plain function"
    if description.in_arguments(tool):
        yield "must take its context as the first parameter, or not at all"
    kind = tool.params_json_schema.get("type", "object")
    if kind not in ("object", ["object"]):
        yield f"must take an object; got {kind!r}"
    if tool.strict_json_schema and (path := open_object(tool.params_json_schema)) is not None:
        yield f"is strict but accepts any value in {path}: name its fields, or set strict_mode=False"


def _unfit(function: Any) -> str:
    """Return what a callable is that the SDK takes and cannot call for a result; empty when it can."""
    target = description.body_of(function)
    if inspect.isclass(function):
        return f"the class {function.__name__}"
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        return "a generator"
    return ""


def _of_output(agent: Agent[Any]) -> Iterator[str]:
    try:
        output_types.output_of(agent)
    except (UserError, PydanticUserError, TypeError, ValueError, NameError) as error:
        named = output_types.type_name(agent.output_type)
        reason = str(error.__cause__ or error).splitlines()[0].split(". ")[0]
        yield f"{agent.name!r} cannot answer with {named}: {reason}"
