"""Put the tools of MCP servers on a worker's agents, when a server is connected and whenever its list changes.

They are function tools like others: guarded, watched, in the agents' rows. A worker owns its teams while it runs; two
workers of one process must not serve one team with MCP servers.
"""

import asyncio
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from agents import Agent, FunctionTool, RunContextWrapper, RunHooks
from agents.mcp import MCPUtil
from mcp.types import Tool as McpTool

from agents_app.mcp.connections import CLOSE_S, McpConnection
from agents_app.run_scope import current_scope
from agents_app.teams import agent_registry
from agents_app.teams.served_team import ServedTeam, handoff_name
from agents_app.tools.name_collisions import collisions
from conversations.core.background_loop import cancel_all
from conversations.core.db_threads import RunInThread
from conversations.core.status import OK

FIRST_S = 5.0  # seconds that a worker waits for the first tries before it takes runs


class McpTools:
    """All MCP servers of a worker's teams."""

    def __init__(self, served_teams: Sequence[ServedTeam], do: RunInThread) -> None:
        self._do = do
        self._connections = [
            (served, self._new_connection(served, n))
            for served in served_teams
            for n in range(len(served.team.mcp_servers))
        ]
        self._function_tools: dict[
            tuple[int, str, str], FunctionTool
        ] = {}  # agent, server and tool there → what stands for it
        self._shadowed_names: dict[
            int, list[str]
        ] = {}  # connection → names that are not offered, since something else has them
        self._tasks: list[asyncio.Task[None]] = []

    def _new_connection(self, served: ServedTeam, number: int) -> McpConnection:
        async def changed(connection: McpConnection) -> None:
            await self._give(served, connection)

        return McpConnection(served.team.mcp_servers[number], changed)

    async def start(self, stopped: asyncio.Event) -> None:
        """Start connecting; return once every server was tried once, after 5 s, or when the worker is stopped."""
        self._tasks = [
            asyncio.create_task(connection.run(), name=f"mcp connection {connection.name}")
            for _, connection in self._connections
        ]
        if not self._connections:
            return
        tries = asyncio.ensure_future(self._tried())
        stop = asyncio.ensure_future(stopped.wait())
        await asyncio.wait([tries, stop], timeout=FIRST_S, return_when=asyncio.FIRST_COMPLETED)
        tries.cancel()
        stop.cancel()

    async def close(self) -> None:
        """Close the connections; the agents are again as their team declared them."""
        for _, connection in self._connections:
            connection.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * CLOSE_S + 1)
        await cancel_all(self._tasks)
        for served, connection in self._connections:
            for agent in served.team.agents:
                agent.tools = [tool for tool in agent.tools if not self._is_of(agent, connection, tool)]
                served.forget(agent)

    async def _tried(self) -> bool:
        for _, connection in self._connections:
            await connection.first_try.wait()
        return True

    def states(self) -> dict[str, dict[str, str]]:
        """Return by team and server: `ok`, or the problem."""
        states_by_team: dict[str, dict[str, str]] = {}
        for served, connection in self._connections:
            states_by_team.setdefault(served.team.name, {})[connection.name] = self._state(connection)
        return states_by_team

    def away(self, team: str) -> dict[str, str]:
        """Return the servers of a team that are not connected now, each with its problem."""
        connections = (connection for served, connection in self._connections if served.team.name == team)
        return {connection.name: connection.state for connection in connections if connection.state != OK}

    def connected(self) -> dict[str, list[str]]:
        """Return the servers that are connected, by team; teams without one are left out."""
        names_by_team: dict[str, list[str]] = {}
        for served, connection in self._connections:
            if connection.state == OK:
                names_by_team.setdefault(served.team.name, []).append(connection.name)
        return names_by_team

    def _state(self, connection: McpConnection) -> str:
        if connection.state != OK:
            return connection.state
        problems = list(connection.problems)
        if taken := self._shadowed_names.get(id(connection)):
            reason = "another tool or handoff has the name (give the server a prefix)"
            problems.insert(0, f"not offered, since {reason}: {', '.join(taken)}")
        return "; ".join(problems) or OK

    async def _give(self, served: ServedTeam, connection: McpConnection) -> None:
        """Put a server's tools on its agents, and update the agents' rows."""
        self._shadowed_names[id(connection)] = []
        for agent in served.team.agents:
            if connection.spec.serves(agent.name):
                served.note(agent.name, connection.name, self._give_one(agent, connection))
                served.forget(agent)
                served.schemas(agent)
        await self._do(agent_registry.register, [served])

    def _give_one(self, agent: Agent[Any], connection: McpConnection) -> list[str]:
        """Return which of its tools' names collide, including those that are therefore not offered."""
        others = [tool for tool in agent.tools if not self._is_of(agent, connection, tool)]
        names = {tool.qualified_name if isinstance(tool, FunctionTool) else tool.name for tool in others}
        names |= {handoff_name(target) for target in agent.handoffs}
        offered: list[FunctionTool] = []
        every = [self._tool(agent, connection, listed) for listed in connection.tools]
        for tool in every:
            if tool.name in names:
                self._shadowed_names[id(connection)] = sorted({*self._shadowed_names[id(connection)], tool.name})
            else:
                offered.append(tool)
                names.add(tool.name)
        agent.tools = [*others, *offered]
        return list(collisions([*others, *every], agent.handoffs))

    def _tool(self, agent: Agent[Any], connection: McpConnection, listed: McpTool) -> FunctionTool:
        """Return the function tool for a server's tool: the same object as long as it does not change there."""
        tool = MCPUtil.to_function_tool(
            listed, connection, convert_schemas_to_strict=False, agent=agent,
            tool_name_override=connection.spec.name_here(listed.name),
        )  # fmt: skip
        key = (id(agent), connection.name, listed.name)
        existing = self._function_tools.get(key)
        if existing is not None and _model_schema(existing) == _model_schema(tool):
            return existing
        tool.needs_approval = connection.spec.asks(listed.name)
        tool.timeout_seconds = connection.spec.call_s
        tool.is_enabled = _Offered(connection)
        self._function_tools[key] = tool
        return tool

    def _is_of(self, agent: Agent[Any], connection: McpConnection, tool: Any) -> bool:
        return any(
            tool is existing
            for key, existing in self._function_tools.items()
            if key[:2] == (id(agent), connection.name)
        ) or (
            isinstance(tool, FunctionTool)
            and isinstance(tool.is_enabled, _Offered)
            and tool.is_enabled.connection is connection
        )


class _Offered:
    """The `is_enabled` of a server's tool: true while the server is connected, in a run that was offered it, and in one
    that resumes after an approval. The SDK asks again before it makes a call, and tells the model that there is no such
    tool if the answer is no; the call itself says that the server is away."""

    name = "while its server is connected"  # for people

    def __init__(self, connection: McpConnection) -> None:
        self.connection = connection
        self._offered_in: WeakSet[RunHooks[Any]] = WeakSet()  # attempts of runs, by their hooks

    def __call__(self, context: RunContextWrapper[Any], agent: Any) -> bool:
        scope = current_scope()
        if scope is None or scope.hooks is None:
            return self.connection.is_up
        if self.connection.is_up:
            self._offered_in.add(scope.hooks)
        return scope.is_resumed or scope.hooks in self._offered_in


def _model_schema(tool: FunctionTool) -> tuple[Any, ...]:
    return tool.name, tool.description, tool.params_json_schema
