"""Rows about what a worker serves, for pages: agents with their models, tools and handoffs, and tool schemas."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from agents import Agent as SdkAgent
from agents import FunctionTool, Handoff, Tool

from agents_app.teams.definition import PLAIN_AGENT, PLAIN_TEAM
from agents_app.teams.served_team import ServedTeam, handoffs_of
from agents_app.tools import description, output_types
from agents_app.tools.identity import Schema, schema_of_handoff
from conversations.core.database_clock import database_now
from conversations.core.node_heartbeat import known_nodes
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.models import Agent, ToolSchema, ToolVersion

SERVED_FOR = 20_000_000  # µs after the last word of a worker
HUES = 10  # the palette's agents (static/css/tokens.css)


def register(served_teams: Sequence[ServedTeam]) -> None:
    """Write the rows of what this worker serves; delete those of agents that no worker serves anymore. Synchronous."""
    with write_transaction():
        lock_actions()  # workers that start at once find the same rows missing
        now, mine = database_now(), _agents_of(served_teams)
        lapsed = Agent.objects.filter(served_until__lt=now).values_list("id", "team", "name")
        Agent.objects.filter(id__in=[id_ for id_, *pair in lapsed if tuple(pair) not in mine]).delete()
        for served in served_teams:
            for agent in served.team.agents:
                tools = _tools(served, agent.tools)
                if served.team.name == PLAIN_TEAM:
                    tools = _with_hosts(tools, served_teams)
                _enter(served, agent, tools, now)
                _keep(served.team.name, served.schemas(agent), now)
    for served in served_teams:
        served.mark_recorded(schema for agent in served.team.agents for schema in served.schemas(agent))


def renew(served_teams: Sequence[ServedTeam]) -> None:
    """Renew the rows of what this worker serves, and write them again if another worker has deleted one of them while
    it was not renewed. Delete those of these teams' other agents that nobody serves anymore. Synchronous."""
    mine = _agents_of(served_teams)
    with write_transaction():
        now = database_now()
        of_teams = Agent.objects.filter(team__in={team for team, _ in mine})
        served_rows = [id_ for id_, *pair in of_teams.values_list("id", "team", "name") if tuple(pair) in mine]
        of_teams.filter(id__in=served_rows).update(served_until=now + SERVED_FOR)
        of_teams.filter(served_until__lt=now).delete()
    if len(served_rows) < len(mine):
        register(served_teams)


def _agents_of(served_teams: Sequence[ServedTeam]) -> set[tuple[str, str]]:
    """Return the teams' agents, each with its team's name first."""
    return {(served.team.name, agent.name) for served in served_teams for agent in served.team.agents}


def unregister(served_teams: Sequence[ServedTeam]) -> None:
    """Mark the rows as no longer served, except those of teams that another live worker serves. Synchronous; this
    worker's own heartbeat has stopped."""
    with write_transaction():
        now = database_now()
        teams = {served.team.name for served in served_teams} - _teams_of_live_workers()
        Agent.objects.filter(team__in=teams).update(served_until=now)
        for served in served_teams:
            offered = {schema.hash for agent in served.team.agents for schema in served.schemas(agent)}
            ToolVersion.objects.filter(team=served.team.name, hash__in=offered).update(last_at=now)


def save_schemas(served: ServedTeam, schemas: Sequence[Schema]) -> None:
    """Store schemas that models are offered from now on: agents inside tools, and MCP servers, become known only during
    a run. Synchronous."""
    with write_transaction():
        _keep(served.team.name, schemas, database_now())
    served.mark_recorded(schemas)


def hue_of(team: str, name: str, taken: Collection[int]) -> int:
    """Return an agent's hue: the one of its name, or the next free one."""
    digest = hashlib.sha256(f"{team}\0{name}".encode()).digest()
    first = int.from_bytes(digest[:4], "big") % HUES
    order = [(first + step * 7) % HUES + 1 for step in range(HUES)]  # 7 and 10 share no factor
    return next((hue for hue in order if hue not in taken), order[0])


def _with_hosts(tools: Sequence[description.Facts], served_teams: Sequence[ServedTeam]) -> list[description.Facts]:
    """Return the hosted tools, each with the team that hosts it, and those of teams that only other workers serve:
    plain models of all workers share one row."""
    hosts = {tool.qualified_name: served.team.name for served in served_teams for tool in served.team.hosted_tools}
    here = {served.team.name for served in served_teams}
    before = Agent.objects.filter(team=PLAIN_TEAM, name=PLAIN_AGENT).values_list("tools", flat=True).first()
    others = set(Agent.objects.exclude(team__in=here).values_list("team", flat=True))
    elsewhere = [tool for tool in json.loads(before or "[]") if tool.get("team") in others]
    return [*(tool | {"team": hosts[tool["name"]]} for tool in tools), *elsewhere]


def _teams_of_live_workers() -> set[str]:
    """Return the teams that live workers serve, as their heartbeats say."""
    facts = (json.loads(node.facts) for node, is_alive in known_nodes() if is_alive and node.kind == "worker")
    return {team for each in facts for team in each.get("teams", ())}


def _enter(served: ServedTeam, agent: SdkAgent[Any], tools: Sequence[description.Facts], now: int) -> None:
    team, model = served.team, served.model_of(agent)
    row: dict[str, Any] = {
        "description": agent.handoff_description or (team.describe if agent.name in team.entry else ""),
        "model": model.label[:200],
        "is_demo_model": model.is_demo,
        "is_entry": agent.name in team.entry,
        "tools": _json(tools),
        "handoffs": _json(team.handoffs(agent)),
        "transfers": _json([_transfer(handoff) for handoff in handoffs_of(agent)]),
        "output": _json(output_types.output_of(agent)._asdict()),
        "problems": _json(served.problems_of(agent.name)),
        "max_turns": team.max_turns,
        "served_until": now + SERVED_FOR,
    }
    if not Agent.objects.filter(team=team.name, name=agent.name).update(**row):
        hue = hue_of(team.name, agent.name, set(Agent.objects.values_list("hue", flat=True)))
        Agent.objects.create(team=team.name, name=agent.name, hue=hue, **row)


def _tools(served: ServedTeam, tools: Sequence[Tool]) -> list[description.Facts]:
    effects = (served.effect(tool) if isinstance(tool, FunctionTool) else "unsafe" for tool in tools)
    return [description.facts_of(tool, tools, effect) for tool, effect in zip(tools, effects, strict=True)]


def _transfer(handoff: Handoff[Any, Any]) -> dict[str, Any]:
    enabled = handoff.is_enabled if isinstance(handoff.is_enabled, bool) else None
    when = {True: "always", False: "never", None: "decided at run time"}[enabled]
    return {
        "name": handoff.tool_name,
        "schema": schema_of_handoff(handoff).hash,
        "to": handoff.agent_name,
        "enabled": when,
    }


def _keep(team: str, schemas: Iterable[Schema], now: int) -> None:
    """Store schemas and since when they are offered; of an existing row only the last time changes."""
    rows = {schema.hash: schema for schema in schemas}
    schema_rows = [ToolSchema(hash=s.hash, name=s.name[:200], body=s.body) for s in rows.values()]
    ToolSchema.objects.bulk_create(schema_rows, ignore_conflicts=True)
    seen = [ToolVersion(team=team, name=s.name[:200], hash=s.hash, first_at=now, last_at=now) for s in rows.values()]
    ToolVersion.objects.bulk_create(seen, ignore_conflicts=True)
    ToolVersion.objects.filter(team=team, hash__in=list(rows)).update(last_at=now)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
