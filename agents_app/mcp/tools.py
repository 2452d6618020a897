"""Put the tools of MCP servers on a worker's agents, when a server is connected and whenever its list changes.

They are function tools like others: guarded, watched, in the agents' rows. A worker owns its teams while it runs; two
workers of one process must not serve one team with MCP servers.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from agents import Agent, FunctionTool, Handoff, RunContextWrapper
from agents.mcp import MCPUtil
from mcp.types import Tool as McpTool

from agents_app.approval_gate.run_scope import current_scope
from agents_app.mcp.connections import CLOSE_S, McpConnection
from agents_app.teams import agent_registry
from agents_app.teams.served_team import ServedTeam
from agents_app.tools.name_collisions import collisions
from agents_app.worker.run_hooks import Do
from conversations.core.background_loop import cancel_all
from conversations.core.status import OK

logger = logging.getLogger(__name__)

FIRST_S = 5.0  # seconds that a worker waits for the first tries before it takes runs


class McpTools:
    """All MCP servers of a worker's teams."""

    def __init__(self, served_teams: Sequence[ServedTeam], do: Do) -> None:
        self._do = do
        self._links = [
            (served, self._link(served, n)) for served in served_teams for n in range(len(served.team.mcp_servers))
        ]
        self._function_tools: dict[
            tuple[int, str, str], FunctionTool
        ] = {}  # agent, server and tool there → what stands for it
        self._shadowed_names: dict[
            int, list[str]
        ] = {}  # link → names that are not offered, since something else has them
        self._tasks: list[asyncio.Task[None]] = []

    def _link(self, served: ServedTeam, number: int) -> McpConnection:
        async def changed(link: McpConnection) -> None:
            await self._give(served, link)

        return McpConnection(served.team.mcp_servers[number], changed)

    async def start(self, stopped: asyncio.Event) -> None:
        """Start connecting; return once every server was tried once, after 5 s, or when the worker is stopped."""
        self._tasks = [asyncio.create_task(link.run(), name=f"mcp link {link.name}") for _, link in self._links]
        if not self._links:
            return
        tries = asyncio.ensure_future(self._tried())
        stop = asyncio.ensure_future(stopped.wait())
        await asyncio.wait([tries, stop], timeout=FIRST_S, return_when=asyncio.FIRST_COMPLETED)
        tries.cancel()
        stop.cancel()

    async def close(self) -> None:
        """Close the connections; the agents are again as their team declared them."""
        for _, link in self._links:
            link.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * CLOSE_S + 1)
        await cancel_all(self._tasks)
        for served, link in self._links:
            for agent in served.team.agents:
                agent.tools = [tool for tool in agent.tools if not self._is_of(agent, link, tool)]
                served.forget(agent)

    async def _tried(self) -> bool:
        for _, link in self._links:
            await link.first_try.wait()
        return True

    def states(self) -> dict[str, dict[str, str]]:
        """Return by team and server: `ok`, or the problem."""
        states_by_team: dict[str, dict[str, str]] = {}
        for served, link in self._links:
            states_by_team.setdefault(served.team.name, {})[link.name] = self._state(link)
        return states_by_team

    def away(self, team: str) -> dict[str, str]:
        """Return the servers of a team that are not connected now, each with its problem."""
        links = (link for served, link in self._links if served.team.name == team)
        return {link.name: link.state for link in links if link.state != OK}

    def connected(self) -> dict[str, list[str]]:
        """Return the servers that are connected, by team; teams without one are left out."""
        names_by_team: dict[str, list[str]] = {}
        for served, link in self._links:
            if link.state == OK:
                names_by_team.setdefault(served.team.name, []).append(link.name)
        return names_by_team

    def _state(self, link: McpConnection) -> str:
        taken = self._shadowed_names.get(id(link), [])
        if link.state != OK or not taken:
            return link.state
        return f"not offered, since another tool or handoff has the name (give the server a prefix): {', '.join(taken)}"

    async def _give(self, served: ServedTeam, link: McpConnection) -> None:
        """Put a server's tools on its agents, and update the agents' rows."""
        self._shadowed_names[id(link)] = []
        for agent in served.team.agents:
            if link.spec.serves(agent.name):
                served.note(agent.name, link.name, self._give_one(agent, link))
                served.forget(agent)
                served.schemas(agent)
        await self._do(agent_registry.register, [served])

    def _give_one(self, agent: Agent[Any], link: McpConnection) -> list[str]:
        """Return which of its tools' names collide, including those that are therefore not offered."""
        others = [tool for tool in agent.tools if not self._is_of(agent, link, tool)]
        names = {tool.qualified_name if isinstance(tool, FunctionTool) else tool.name for tool in others}
        names |= {h.tool_name if isinstance(h, Handoff) else Handoff.default_tool_name(h) for h in agent.handoffs}
        offered: list[FunctionTool] = []
        every = [self._tool(agent, link, listed) for listed in link.tools]
        for tool in every:
            if tool.name in names:
                self._shadowed_names[id(link)] = sorted({*self._shadowed_names[id(link)], tool.name})
            else:
                offered.append(tool)
        agent.tools = [*others, *offered]
        return list(collisions([*others, *every], agent.handoffs))

    def _tool(self, agent: Agent[Any], link: McpConnection, listed: McpTool) -> FunctionTool:
        """Return the function tool for a server's tool: the same object as long as it does not change there."""
        tool = MCPUtil.to_function_tool(
            listed, link, convert_schemas_to_strict=False, agent=agent,
            tool_name_override=f"{link.spec.prefix}{listed.name}",
        )  # fmt: skip
        key = (id(agent), link.name, listed.name)
        existing = self._function_tools.get(key)
        if existing is not None and _model_schema(existing) == _model_schema(tool):
            return existing
        tool.needs_approval = link.spec.asks(listed.name)
        tool.timeout_seconds = link.spec.call_s
        tool.is_enabled = _Offered(link)
        self._function_tools[key] = tool
        return tool

    def _is_of(self, agent: Agent[Any], link: McpConnection, tool: Any) -> bool:
        return any(
            tool is existing for key, existing in self._function_tools.items() if key[:2] == (id(agent), link.name)
        ) or (isinstance(tool, FunctionTool) and isinstance(tool.is_enabled, _Offered) and tool.is_enabled.link is link)


class _Offered:
    """The `is_enabled` of a server's tool: true while the server is connected, and in a run that resumes after an
    approval."""

    name = "while its server is connected"  # for people

    def __init__(self, link: McpConnection) -> None:
        self.link = link

    def __call__(self, context: RunContextWrapper[Any], agent: Any) -> bool:
        scope = current_scope()
        return self.link.is_up or (scope is not None and scope.is_resumed)


def _model_schema(tool: FunctionTool) -> tuple[Any, ...]:
    return tool.name, tool.description, tool.params_json_schema
