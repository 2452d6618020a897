"""What a team is: agents, who of them may be addressed, and what their tools do.

A package declares one as `TEAM`:

    TEAM = Team(name="Town Hall", agents=[dialogue, triage], entry=["Dialogue"], context=TownHallContext)
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agents import Agent, FunctionTool, Handoff, Tool
from pydantic import BaseModel

from agents_app.mcp.servers import McpServer

PLAIN_TEAM, PLAIN_AGENT = "Plain models", "Plain model"  # answer requests that name a model and no agent
Effect = Literal["read", "idempotent", "unsafe", "destructive"]


class TeamError(Exception):
    """A team that cannot be served. One line: the team, then the cause."""


class NoContext(BaseModel):
    """The context of a team that stores nothing between messages."""


@dataclass(frozen=True, slots=True)
class Team:
    """A team as its package declares it."""

    name: str
    agents: Sequence[Agent[Any]]
    entry: Sequence[str]
    """names of the agents that people and other agents may address as `agent:NAME`"""
    context: type[BaseModel] = NoContext
    describe: str = ""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    """what a call of a tool does to the world, by the tool's qualified name; `unsafe` where nothing is said"""
    max_turns: int = 20
    hosted_tools: Sequence[FunctionTool] = ()
    """tools that requests to `/v1/responses` may name, for whichever agent or model; no agent has them by itself"""
    mcp_servers: Sequence[McpServer] = ()
    """their tools are offered to its agents while they are connected"""
    may_post_to: Sequence[str] = ()
    """conversations that its agents' `chat_send` may reach beside their own and its children: ids, or patterns in which
    `*` stands for any text (`duty-*`); `*` alone is every conversation"""

    def agent(self, name: str) -> Agent[Any]:
        """Return the agent with this name. Raises KeyError."""
        return next((a for a in self.agents if a.name == name), None) or _missing(name)

    def tools(self) -> list[Tool]:
        """Return the tools of all its agents and its hosted ones, each once."""
        own = [tool for agent in self.agents for tool in agent.tools]
        return list({id(tool): tool for tool in [*own, *self.hosted_tools]}.values())

    def effect(self, tool: str) -> Effect:
        """Return the effect of a tool's calls (by qualified name)."""
        return self.effects.get(tool, "unsafe")

    def may_post(self, conversation: str) -> bool:
        """Return whether its agents may post to a conversation other than their own."""
        return any(re.fullmatch(_pattern(pattern), conversation, re.DOTALL) for pattern in self.may_post_to)

    def handoffs(self, agent: Agent[Any]) -> list[str]:
        """Return the names of the agents that an agent may hand over to."""
        return [handoff.agent_name if isinstance(handoff, Handoff) else handoff.name for handoff in agent.handoffs]


def _pattern(wildcard: str) -> str:
    return ".*".join(map(re.escape, wildcard.split("*")))


def _missing(name: str) -> Agent[Any]:
    raise KeyError(name)
