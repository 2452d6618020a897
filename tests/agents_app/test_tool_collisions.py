"""Names that could be taken for one another end the start with one line that tells which; what may stand, stands."""

from typing import Any

import pytest
from agents import Agent, FunctionTool, Tool, UserError, function_tool, handoff
from agents import tool_namespace as put_into
from agents.mcp import MCPUtil
from mcp.types import Tool as McpTool

from agents_app.teams import checks
from agents_app.teams.definition import Team, TeamError
from tests.agents_app.test_identity import Desk


def tool(name: str, **more: Any) -> FunctionTool:
    """Make a tool of a name."""

    @function_tool(name_override=name, **more)
    def made() -> str:
        """Do it."""
        return ""

    return made


def inside(namespace: str, *names: str, about: str = "Files.") -> list[FunctionTool]:
    """Make tools in a namespace."""
    return put_into(name=namespace, description=about, tools=[tool(name) for name in names])


def of_server(name: str, server: str = "desk") -> FunctionTool:
    """Make a tool as the SDK makes it of an MCP server's."""
    listed = McpTool(name=name, description="", inputSchema={"type": "object"})
    return MCPUtil.to_function_tool(listed, Desk(name=server), convert_schemas_to_strict=False)


def same_as_its_namespace() -> FunctionTool:
    """Make what `tool_namespace` refuses to make."""
    made = tool("fs")
    made._tool_namespace = "fs"
    return made


B = Agent[Any](name="B")
B_too = Agent[Any](name="b")

WRONG: dict[str, tuple[list[Tool], list[Any], str]] = {
    "bare": ([tool("look"), tool("look")], [], "'A' has two tools or handoffs called 'look'"),
    "namespaced": ([*inside("fs", "look"), *inside("fs", "look")], [], "called 'fs.look': the tool 'look' in the"),
    "deferred": (
        [tool("x", defer_loading=True), tool("x", defer_loading=True)],
        [],
        "'x': the deferred tool 'x', and the deferred tool 'x'",
    ),
    "mcp and bare": ([tool("look"), of_server("look")], [], "the tool 'look' of the MCP server 'desk'"),
    "two servers": ([of_server("look"), of_server("look", "gis")], [], "'desk', and the tool 'look' of the MCP server"),
    "handoff and tool": ([tool("transfer_to_b")], [B], "the tool 'transfer_to_b', and the handoff to 'B'"),
    "two handoffs": ([], [B, B_too], "the handoff to 'B', and the handoff to 'b'"),
    "renamed handoff": ([tool("go")], [handoff(B, tool_name_override="go")], "the handoff to 'B'"),
    "handoff that may be on": (
        [tool("go")],
        [handoff(B, tool_name_override="go", is_enabled=lambda ctx, agent: True)],
        "called 'go'",
    ),
    "dotted bare name": ([tool("fs.look"), *inside("fs", "look")], [], "under one qualified name, 'fs.look'"),
    "dotted deferred name": (
        [tool("fs.look", defer_loading=True), *inside("fs", "look")],
        [],
        "the deferred tool 'fs.look' and the tool 'look' in the namespace 'fs' under one qualified name",
    ),
    "namespace like its name": ([same_as_its_namespace()], [], "a tool 'fs' in a namespace of the same name"),
    "a namespace described twice": (
        [*inside("fs", "look"), *inside("fs", "read", about="Other files.")],
        [],
        "describes the namespace 'fs' in two ways",
    ),
}

RIGHT: dict[str, tuple[list[Tool], list[Any]]] = {
    "one name in two namespaces": ([*inside("fs", "look"), *inside("web", "look"), tool("look")], []),
    "deferred beside bare": ([tool("x", defer_loading=True), tool("x")], []),
    "switched off": ([tool("look"), tool("look", is_enabled=False)], []),
    "handoff switched off": ([tool("go")], [handoff(B, tool_name_override="go", is_enabled=False)]),
}


def team(tools: list[Tool], handoffs: list[Any]) -> Team:
    """Make a team whose first agent has them."""
    return Team(name="T", agents=[Agent[Any](name="A", tools=tools, handoffs=handoffs), B, B_too], entry=["A"])


@pytest.mark.parametrize(("tools", "handoffs", "reason"), WRONG.values(), ids=WRONG)
def test_names_that_collide_end_the_start(tools: list[Tool], handoffs: list[Any], reason: str) -> None:
    with pytest.raises(TeamError) as refused:
        checks.check(team(tools, handoffs))

    assert str(refused.value).startswith("team 'T': 'A' ")
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("tools", "handoffs"), RIGHT.values(), ids=RIGHT)
def test_names_that_can_be_told_apart_are_served(tools: list[Tool], handoffs: list[Any]) -> None:
    checks.check(team(tools, handoffs))


def test_the_sdk_itself_refuses_a_namespace_like_its_tool() -> None:
    with pytest.raises(UserError, match="synthetic namespace"):
        put_into(name="fs", description="Files.", tools=[tool("fs")])


def test_tools_of_an_agent_inside_a_tool_are_looked_at_too() -> None:
    inner = Agent[Any](name="Inner", tools=[tool("x"), tool("x")])

    with pytest.raises(TeamError, match="'Inner' has two tools or handoffs called 'x'"):
        checks.check(team([inner.as_tool("ask", "Ask.")], []))
