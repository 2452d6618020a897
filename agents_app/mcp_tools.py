"""The tools of MCP servers on a worker's agents: put there when a server is connected, and again when its list changes.

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

from agents_app import register
from agents_app.hooks import Do
from agents_app.mcp_links import CLOSE_S, Link
from agents_app.nesting import current
from agents_app.roster import Roster
from agents_app.tool_collisions import collisions
from conversations.readiness import OK

logger = logging.getLogger(__name__)

FIRST_S = 5.0  # seconds that a worker waits for the first tries before it takes runs


class McpTools:
    """All servers of a worker's teams."""

    def __init__(self, rosters: Sequence[Roster], do: Do) -> None:
        self._do = do
        self._links = [
            (roster, self._link(roster, n)) for roster in rosters for n in range(len(roster.team.mcp_servers))
        ]
        self._given: dict[tuple[int, str, str], FunctionTool] = {}  # agent, server and tool there → what stands for it
        self._taken: dict[int, list[str]] = {}  # link → names that are not offered, since something else has them
        self._tasks: list[asyncio.Task[None]] = []

    def _link(self, roster: Roster, number: int) -> Link:
        async def changed(link: Link) -> None:
            await self._give(roster, link)

        return Link(roster.team.mcp_servers[number], changed)

    async def start(self, stopped: asyncio.Event) -> None:
        """Begin to connect; return when every server was tried once, after 5 s, or when the worker is stopped."""
        self._tasks = [asyncio.create_task(link.run(), name=f"mcp link {link.name}") for _, link in self._links]
        if not self._links:
            return
        tries = asyncio.ensure_future(self._tried())
        stop = asyncio.ensure_future(stopped.wait())
        await asyncio.wait([tries, stop], timeout=FIRST_S, return_when=asyncio.FIRST_COMPLETED)
        tries.cancel()
        stop.cancel()

    async def close(self) -> None:
        """End the connections; the agents are as their team declared them again."""
        for _, link in self._links:
            link.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2 * CLOSE_S + 1)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for roster, link in self._links:
            for agent in roster.team.agents:
                agent.tools = [tool for tool in agent.tools if not self._is_of(agent, link, tool)]
                roster.forget(agent)

    async def _tried(self) -> bool:
        for _, link in self._links:
            await link.first_try.wait()
        return True

    def states(self) -> dict[str, dict[str, str]]:
        """Answer by team and server: `ok`, or what is wrong."""
        told: dict[str, dict[str, str]] = {}
        for roster, link in self._links:
            told.setdefault(roster.team.name, {})[link.name] = self._state(link)
        return told

    def away(self, team: str) -> dict[str, str]:
        """Answer the servers of a team that are not connected now, and what is wrong with each."""
        links = (link for roster, link in self._links if roster.team.name == team)
        return {link.name: link.state for link in links if link.state != OK}

    def connected(self) -> dict[str, list[str]]:
        """Answer the servers that are connected, by team; teams without one are left out."""
        found: dict[str, list[str]] = {}
        for roster, link in self._links:
            if link.state == OK:
                found.setdefault(roster.team.name, []).append(link.name)
        return found

    def _state(self, link: Link) -> str:
        taken = self._taken.get(id(link), [])
        if link.state != OK or not taken:
            return link.state
        return f"not offered, since another tool or handoff has the name (give the server a prefix): {', '.join(taken)}"

    async def _give(self, roster: Roster, link: Link) -> None:
        """Put the server's tools on the agents that it is for, and tell of them in their rows."""
        self._taken[id(link)] = []
        for agent in roster.team.agents:
            if link.spec.serves(agent.name):
                roster.note(agent.name, link.name, self._give_one(agent, link))
                roster.forget(agent)
                roster.schemas(agent)
        await self._do(register.enter, [roster])

    def _give_one(self, agent: Agent[Any], link: Link) -> list[str]:
        """Answer which of its tools' names collide, those that are not offered for it among them."""
        others = [tool for tool in agent.tools if not self._is_of(agent, link, tool)]
        names = {tool.qualified_name if isinstance(tool, FunctionTool) else tool.name for tool in others}
        names |= {h.tool_name if isinstance(h, Handoff) else Handoff.default_tool_name(h) for h in agent.handoffs}
        made: list[FunctionTool] = []
        every = [self._tool(agent, link, listed) for listed in link.tools]
        for tool in every:
            if tool.name in names:
                self._taken[id(link)] = sorted({*self._taken[id(link)], tool.name})
            else:
                made.append(tool)
        agent.tools = [*others, *made]
        return list(collisions([*others, *every], agent.handoffs))

    def _tool(self, agent: Agent[Any], link: Link, listed: McpTool) -> FunctionTool:
        """Answer what stands for a tool of the server: the same object while it stays the same there."""
        made = MCPUtil.to_function_tool(
            listed, link, convert_schemas_to_strict=False, agent=agent,
            tool_name_override=f"{link.spec.prefix}{listed.name}",
        )  # fmt: skip
        key = (id(agent), link.name, listed.name)
        known = self._given.get(key)
        if known is not None and _seen(known) == _seen(made):
            return known
        made.needs_approval = link.spec.asks(listed.name)
        made.timeout_seconds = link.spec.call_s
        made.is_enabled = _Offered(link)
        self._given[key] = made
        return made

    def _is_of(self, agent: Agent[Any], link: Link, tool: Any) -> bool:
        return any(tool is given for key, given in self._given.items() if key[:2] == (id(agent), link.name)) or (
            isinstance(tool, FunctionTool) and isinstance(tool.is_enabled, _Offered) and tool.is_enabled.link is link
        )


class _Offered:
    """`is_enabled` of a server's tool: while the server is connected, and to a run that goes on from a question."""

    name = "while its server is connected"  # for people

    def __init__(self, link: Link) -> None:
        self.link = link

    def __call__(self, context: RunContextWrapper[Any], agent: Any) -> bool:
        scope = current()
        return self.link.is_up or (scope is not None and scope.is_resumed)


def _seen(tool: FunctionTool) -> tuple[Any, ...]:
    return tool.name, tool.description, tool.params_json_schema
