"""The teams of the remote agents: of those in the setting, made when a worker starts, and of those that admins
registered, rebuilt when these change. Only where there are some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext
from django.conf import settings

from agents_app.agui.remote_input import ACTION, WENT_ON
from agents_app.agui.remote_model import RemoteModel
from agents_app.teams.definition import Team
from conversations.core.outbound_address import AllowList
from conversations.core.remote_agent_setting import RemoteAgent

NAME = "AG-UI"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "interrupt": {"type": "string"}, "reason": {"type": "string"}, "message": {"type": "string"},
        "tool": {"type": "string"}, "arguments": {"type": "object"},
    },
    "required": ["interrupt", "reason"],
}  # fmt: skip


def configured_team(remotes: Sequence[RemoteAgent], name: str = NAME) -> Team:
    """Make the team, with the addresses and limits that the settings allow."""
    config = settings.CONFIG
    allowed, silence_s = config.agui_allow_list, config.model_silence_s
    return team_of(remotes, allowed, silence_s=silence_s, most_bytes=config.model_turn_bytes, name=name)


def team_of(
    remotes: Sequence[RemoteAgent], allowed: AllowList, *, silence_s: float, most_bytes: int, name: str = NAME
) -> Team:
    """Make the team. Raises nothing: the setting was checked."""
    agents: list[Agent[Any]] = [
        Agent[Any](
            name=remote.name,
            handoff_description=remote.description or f"Runs elsewhere: {remote.url.partition('?')[0]}",
            model=RemoteModel(remote, allowed, silence_s=silence_s, most_bytes=most_bytes),
            tools=[_action()],
        )
        for remote in remotes
    ]
    entry = [agent.name for agent in agents]
    return Team(name=name, agents=agents, entry=entry, describe="Remote agents, connected over AG-UI.")


def _action() -> FunctionTool:
    """Make the tool that an interrupt is asked as. It always waits for a person, and does nothing itself."""
    return FunctionTool(
        name=ACTION,
        description="An action of the remote agent that requires a person's approval.",
        params_json_schema=SCHEMA,
        on_invoke_tool=_went_on,
        needs_approval=True,
        strict_json_schema=False,
    )


async def _went_on(context: ToolContext[Any], arguments: str) -> str:
    return WENT_ON
