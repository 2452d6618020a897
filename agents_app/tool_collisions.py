"""Names of tools and handoffs that a model, or the SDK, would take for one another. Called when teams are checked, and
again when an MCP server has told its tools."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from agents import Agent, Handoff, Tool, handoff

from agents_app import identity

Handoffs = Sequence[Agent[Any] | Handoff[Any, Any]]


def collisions(tools: Sequence[Tool], handoffs: Handoffs = ()) -> Iterator[str]:
    """Say what could be taken for one another among the things that an agent is offered together; each answer goes on
    from the agent's name.

    Only what may ever have a name before a model counts: a tool or handoff that is switched off for good has none.
    A deferred tool may share its name with a bare one: calls of it carry a namespace.
    """
    offered = [tool for tool in tools if getattr(tool, "is_enabled", True) is not False]
    given = [_handoff(one) for one in handoffs]
    given = [one for one in given if one.is_enabled is not False]
    told = [*_of_namespaces(offered), *_of_names(offered, given)]
    yield from told
    if not told and (found := identity.ambiguity(offered, given)):
        yield f"cannot be offered its tools: {found}"


def _of_namespaces(tools: Sequence[Tool]) -> Iterator[str]:
    described: dict[str, str] = {}
    for tool in tools:
        space = identity.namespace_of(tool)
        if space is None:
            continue
        if space == tool.name:
            yield f"has a tool {space!r} in a namespace of the same name: its calls would be taken for deferred ones"
        about = identity.namespace_description(tool)
        if described.setdefault(space, about) != about:
            yield f"describes the namespace {space!r} in two ways"


def _of_names(tools: Sequence[Tool], handoffs: Sequence[Handoff[Any, Any]]) -> Iterator[str]:
    named = [(_said(tool), _wire(tool)) for tool in tools]
    named += [(f"the handoff to {one.agent_name!r}", ("plain", one.tool_name)) for one in handoffs]
    for (first, one), (second, other) in combinations(named, 2):
        if one == other:
            yield f"has two tools or handoffs called {one[1]!r}: {first}, and {second}"
        elif one[1] == other[1] and "namespaced" in (one[0], other[0]):
            yield f"has {first} and {second} under one qualified name, {one[1]!r}: rename the tool or the namespace"


def _wire(tool: Tool) -> tuple[str, str]:
    """Answer how calls of it look: plain, deferred or in a namespace, and the qualified name."""
    found = identity.identity_of(tool)
    if identity.is_deferred(tool):
        return "deferred", found.name
    return ("namespaced" if found.namespace else "plain"), found.qualified_name


def _said(tool: Tool) -> str:
    found = identity.identity_of(tool)
    if found.mcp_server:
        return f"the tool {found.name_there or found.name!r} of the MCP server {found.mcp_server!r}"
    if identity.is_deferred(tool):
        return f"the deferred tool {found.name!r}"
    if found.namespace:
        return f"the tool {found.name!r} in the namespace {found.namespace!r}"
    return f"the tool {found.name!r}"


def _handoff(given: Agent[Any] | Handoff[Any, Any]) -> Handoff[Any, Any]:
    return given if isinstance(given, Handoff) else handoff(given)
