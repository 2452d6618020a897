"""What a worker serves, as rows that pages read: agents with their models, tools and handoffs, and tool schemas."""

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any

from agents import Agent as SdkAgent
from agents import FunctionTool, Tool

from agents_app import identity
from agents_app.roster import Roster
from conversations.log.writing import writing
from conversations.models import Agent, ToolSchema
from conversations.nodes import database_time

SERVED_FOR = 20_000_000  # µs after the last word of a worker
HUES = 10  # the palette's agents (static/css/tokens.css)


def enter(rosters: Sequence[Roster]) -> None:
    """Write the rows of what is served here; rows that nobody serves any more go. Sync."""
    with writing():
        now = database_time()
        here = [roster.team.name for roster in rosters]
        Agent.objects.filter(served_until__lt=now).exclude(team__in=here).delete()
        for roster in rosters:
            names = [agent.name for agent in roster.team.agents]
            Agent.objects.filter(team=roster.team.name).exclude(name__in=names).delete()
            for agent in roster.team.agents:
                _enter(roster, agent, now)
                _keep_schemas(roster, agent)


def renew(rosters: Sequence[Roster]) -> None:
    """Say that they are still served. Sync."""
    with writing():
        until = database_time() + SERVED_FOR
        Agent.objects.filter(team__in=[roster.team.name for roster in rosters]).update(served_until=until)


def leave(rosters: Sequence[Roster]) -> None:
    """Say that this worker serves them no longer; another one renews within seconds. Sync."""
    with writing():
        Agent.objects.filter(team__in=[r.team.name for r in rosters]).update(served_until=database_time())


def hue_of(team: str, name: str, taken: Collection[int]) -> int:
    """Answer an agent's colour of the palette: its own by its name, or the next that is free."""
    digest = hashlib.sha256(f"{team}\0{name}".encode()).digest()
    first = int.from_bytes(digest[:4], "big") % HUES
    order = [(first + step * 7) % HUES + 1 for step in range(HUES)]  # 7 and 10 share no factor
    return next((hue for hue in order if hue not in taken), order[0])


def _enter(roster: Roster, agent: SdkAgent[Any], now: int) -> None:
    team, model = roster.team, roster.model_of(agent)
    row: dict[str, Any] = {
        "description": agent.handoff_description or (team.describe if agent.name in team.entry else ""),
        "model": model.label[:200],
        "is_demo_model": model.is_demo,
        "is_entry": agent.name in team.entry,
        "tools": json.dumps([_tool(roster, tool) for tool in agent.tools], ensure_ascii=False),
        "handoffs": json.dumps(team.handoffs(agent), ensure_ascii=False),
        "served_until": now + SERVED_FOR,
    }
    if not Agent.objects.filter(team=team.name, name=agent.name).update(**row):
        hue = hue_of(team.name, agent.name, set(Agent.objects.values_list("hue", flat=True)))
        Agent.objects.create(team=team.name, name=agent.name, hue=hue, **row)


def _tool(roster: Roster, tool: Tool) -> dict[str, Any]:
    is_function = isinstance(tool, FunctionTool)
    return {
        "name": tool.qualified_name if isinstance(tool, FunctionTool) else tool.name,
        "schema": identity.schema_of(tool).hash,
        "effect": roster.effect(tool) if isinstance(tool, FunctionTool) else "unsafe",
        "needs_approval": bool(getattr(tool, "needs_approval", False)) if is_function else False,
        "origin": identity.origin(tool),
    }


def _keep_schemas(roster: Roster, agent: SdkAgent[Any]) -> None:
    rows = [ToolSchema(hash=s.hash, name=s.name[:200], body=s.body) for s in roster.schemas(agent)]
    ToolSchema.objects.bulk_create(rows, ignore_conflicts=True)
