"""What a worker serves, as rows that pages read: agents with their models, tools and handoffs, and tool schemas."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from agents import Agent as SdkAgent
from agents import FunctionTool, Handoff, Tool

from agents_app import tool_facts, tool_outputs
from agents_app.identity import Schema, schema_of_handoff
from agents_app.roster import Roster, handoffs_of
from conversations.log.writing import take_turn, writing
from conversations.models import Agent, ToolSchema, ToolVersion
from conversations.nodes import database_time

SERVED_FOR = 20_000_000  # µs after the last word of a worker
HUES = 10  # the palette's agents (static/css/tokens.css)


def enter(rosters: Sequence[Roster]) -> None:
    """Write the rows of what is served here; rows that nobody serves any more go. Sync."""
    with writing():
        take_turn()  # workers that start at once find the same rows missing
        now = database_time()
        here = [roster.team.name for roster in rosters]
        Agent.objects.filter(served_until__lt=now).exclude(team__in=here).delete()
        for roster in rosters:
            names = [agent.name for agent in roster.team.agents]
            Agent.objects.filter(team=roster.team.name).exclude(name__in=names).delete()
            for agent in roster.team.agents:
                _enter(roster, agent, now)
                _keep(roster.team.name, roster.schemas(agent), now)
    for roster in rosters:
        roster.kept(schema for agent in roster.team.agents for schema in roster.schemas(agent))


def renew(rosters: Sequence[Roster]) -> None:
    """Say that they are still served. Sync."""
    with writing():
        until = database_time() + SERVED_FOR
        Agent.objects.filter(team__in=[roster.team.name for roster in rosters]).update(served_until=until)


def leave(rosters: Sequence[Roster]) -> None:
    """Say that this worker serves them no longer; another one renews within seconds. Sync."""
    with writing():
        now = database_time()
        Agent.objects.filter(team__in=[r.team.name for r in rosters]).update(served_until=now)
        for roster in rosters:
            offered = {schema.hash for agent in roster.team.agents for schema in roster.schemas(agent)}
            ToolVersion.objects.filter(team=roster.team.name, hash__in=offered).update(last_at=now)


def keep(roster: Roster, schemas: Sequence[Schema]) -> None:
    """Keep what a model is offered from now on: agents inside tools, and MCP servers, tell it only in a run. Sync."""
    with writing():
        _keep(roster.team.name, schemas, database_time())
    roster.kept(schemas)


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
        "tools": _json(_tools(roster, agent.tools)),
        "handoffs": _json(team.handoffs(agent)),
        "transfers": _json([_transfer(one) for one in handoffs_of(agent)]),
        "output": _json(tool_outputs.output_of(agent)._asdict()),
        "problems": _json(roster.problems_of(agent.name)),
        "served_until": now + SERVED_FOR,
    }
    if not Agent.objects.filter(team=team.name, name=agent.name).update(**row):
        hue = hue_of(team.name, agent.name, set(Agent.objects.values_list("hue", flat=True)))
        Agent.objects.create(team=team.name, name=agent.name, hue=hue, **row)


def _tools(roster: Roster, tools: Sequence[Tool]) -> list[tool_facts.Facts]:
    effects = (roster.effect(tool) if isinstance(tool, FunctionTool) else "unsafe" for tool in tools)
    return [tool_facts.facts_of(tool, tools, effect) for tool, effect in zip(tools, effects, strict=True)]


def _transfer(given: Handoff[Any, Any]) -> dict[str, Any]:
    enabled = given.is_enabled if isinstance(given.is_enabled, bool) else None
    when = {True: "always", False: "never", None: "decided in the run"}[enabled]
    return {"name": given.tool_name, "schema": schema_of_handoff(given).hash, "to": given.agent_name, "enabled": when}


def _keep(team: str, schemas: Iterable[Schema], now: int) -> None:
    """Keep schemas and since when they are offered; a row that is there stays as it was but for its last time."""
    rows = {schema.hash: schema for schema in schemas}
    known = [ToolSchema(hash=s.hash, name=s.name[:200], body=s.body) for s in rows.values()]
    ToolSchema.objects.bulk_create(known, ignore_conflicts=True)
    seen = [ToolVersion(team=team, name=s.name[:200], hash=s.hash, first_at=now, last_at=now) for s in rows.values()]
    ToolVersion.objects.bulk_create(seen, ignore_conflicts=True)
    ToolVersion.objects.filter(team=team, hash__in=list(rows)).update(last_at=now)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
