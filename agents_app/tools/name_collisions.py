"""Names of tools and handoffs that a model, or the SDK, would take for one another. Called when teams are checked, and
again when an MCP server has told its tools."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from agents import Agent, Handoff, Tool, handoff

from agents_app.tools import identity

Handoffs = Sequence[Agent[Any] | Handoff[Any, Any]]


def collisions(tools: Sequence[Tool], handoffs: Handoffs = ()) -> Iterator[str]:
    """Return what could be taken for one another among the things that an agent is offered together; each answer goes
    on from the agent's name.

    Only what may ever have a name before a model counts: a tool or handoff that is switched off for good has none.
    A deferred tool may share its name with a bare one: calls of it carry a namespace.
    """
    offered = [tool for tool in tools if getattr(tool, "is_enabled", True) is not False]
    active_handoffs = [_handoff(target) for target in handoffs]
    active_handoffs = [target for target in active_handoffs if target.is_enabled is not False]
    problems = [*_of_namespaces(offered), *_of_names(offered, active_handoffs)]
    yield from problems
    if not problems and (problem := identity.ambiguity(offered, active_handoffs)):
        yield f"cannot be offered its tools: {problem}"


def _of_namespaces(tools: Sequence[Tool]) -> Iterator[str]:
    described: dict[str, str] = {}
    for tool in tools:
        space = identity.namespace_of(tool)
        if space is None:
            continue
        if space == tool.name:
            yield f"has a tool {space!r} in a namespace of the same name: its calls would be mistaken for deferred ones"
        about = identity.namespace_description(tool)
        if described.setdefault(space, about) != about:
            yield f"describes the namespace {space!r} in two ways"


def _of_names(tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]]) -> Iterator[str]:
    named = [(_tool_phrase(tool), _wire(tool)) for tool in tools]
    named += [(f"the handoff to {item.agent_name!r}", ("plain", item.tool_name)) for item in handoffs]
    for (first, item), (second, other) in combinations(named, 2):
        if item == other:
            yield f"has two tools or handoffs called {item[1]!r}: {first}, and {second}"
        elif item[1] == other[1] and "namespaced" in (item[0], other[0]):
            yield f"has {first} and {second} under one qualified name, {item[1]!r}: rename the tool or the namespace"


def _wire(tool: Tool) -> tuple[str, str]:
    """Return how calls of it look: plain, deferred or in a namespace, and the qualified name."""
    layers = identity.identity_of(tool)
    if identity.is_deferred(tool):
        return "deferred", layers.name
    return ("namespaced" if layers.namespace else "plain"), layers.qualified_name


def _tool_phrase(tool: Tool) -> str:
    layers = identity.identity_of(tool)
    if layers.mcp_server:
        return f"the tool {layers.name_there or layers.name!r} of the MCP server {layers.mcp_server!r}"
    if identity.is_deferred(tool):
        return f"the deferred tool {layers.name!r}"
    if layers.namespace:
        return f"the tool {layers.name!r} in the namespace {layers.namespace!r}"
    return f"the tool {layers.name!r}"


def _handoff(target: Agent[Any] | Handoff[Any, Any]) -> Handoff[Any, Any]:
    return target if isinstance(target, Handoff) else handoff(target)
