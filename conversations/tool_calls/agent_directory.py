"""What is available here: teams with agents and tools as workers reported them, and how their runs ended. For pages."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Count
from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.database_clock import database_now
from conversations.core.micros import to_datetime
from conversations.models import Agent, Approval, Run, ToolCall, ToolSchema
from conversations.models.run import FAILED, UNFINISHED
from conversations.rendering import json_tree, richtext
from conversations.rendering.agents_graph import HandoffGraph, graph_of
from conversations.rendering.participant_marks import ParticipantMark, mark_for_name
from conversations.rendering.sparkline import Sparkline, sparkline
from conversations.tool_calls import agent_activity, mcp_status, tool_activity
from conversations.tool_calls.agent_activity import AgentActivity
from conversations.tool_calls.mcp_status import McpServerStatus
from conversations.tool_calls.schemas import tool_offers
from conversations.tool_calls.tool_activity import ToolActivity

RECENT_S = 24 * 3600  # seconds of runs that are counted
MAX_FAILURES = 200  # of which each agent's newest is shown

Counts = dict[str, int]  # by status of a run


@dataclass(frozen=True, slots=True)
class Failure:
    """An agent's newest failed run."""

    conversation: str
    seq: int
    status: str
    reason: Markup


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """An agent. `live` and `recent` count its runs by status: those not over, and those that ended in the last 24 h;
    `asking` counts its calls that wait for approval, in runs of any agent; `activity` is what it did in all of them."""

    row: Agent
    mark: ParticipantMark
    description: Markup
    model: Markup
    tools: list[str]
    handoffs: list[ParticipantMark]
    live: Counts
    recent: Counts
    asking: int
    failure: Failure | None
    is_served: bool
    activity: AgentActivity

    @property
    def seen_at(self) -> datetime:
        """Return when a worker last served it."""
        return to_datetime(self.row.served_until)

    @property
    def state(self) -> tuple[str, str]:
        """Return what it does now, the most urgent first: a glyph and words."""
        parts = [
            f"{number:,} {word}" for word in ("waiting", "running", "queued") if (number := self.live.get(word, 0))
        ]
        waiting = self.live.get("waiting", 0)
        if self.asking > waiting:  # also in runs of others; its own runs that wait do so for these
            others = parts[1:] if waiting else parts
            return "waiting", ", ".join([f"{self.asking:,} waiting for approval", *others])
        if parts:
            return parts[0].partition(" ")[2], ", ".join(parts)
        return ("done", "idle") if self.is_served else ("unknown", "not available")

    @property
    def ended(self) -> int:
        """Return how many runs ended."""
        return sum(self.recent.values())

    @property
    def failed(self) -> int:
        """Return how many of the ended runs failed."""
        return sum(self.recent.get(status, 0) for status in FAILED)

    @property
    def runs(self) -> str:
        """How many runs ended that it began or was handed, as text."""
        return f"{self.ended + self.activity.handed:,}{'+' if self.activity.is_cut else ''}"

    @property
    def spark(self) -> Sparkline | None:
        """Its turns of the last eight hours as they are drawn; None when it had none."""
        turns = self.activity.turns
        return sparkline(turns, "turn", "in the last 8 hours") if any(turns) else None


@dataclass(slots=True)
class OfferedTool:
    """A tool as offered to agents of a team."""

    name: Markup
    effect: str
    origin: str
    asks: bool
    schema: Markup | None
    key: str
    full: str
    """the qualified name, for an address"""
    also: bool = False
    """another tool of the team has the same public name"""
    users: list[ParticipantMark] = field(default_factory=list)
    activity: ToolActivity = field(default_factory=ToolActivity)
    """its calls by agents of the team"""


@dataclass(frozen=True, slots=True)
class TeamStatus:
    """A team: its agents, the graph of their handoffs, its tools."""

    key: str
    name: Markup
    agents: list[AgentStatus]
    tools: list[OfferedTool]
    graph: HandoffGraph
    problems: list[Markup]
    """names that an MCP server told and that collide"""
    servers: list[McpServerStatus]
    """MCP servers that some of the tools come from"""

    @property
    def has_demo(self) -> bool:
        """Return whether the demo model answers for any of its agents."""
        return any(agent.row.is_demo_model for agent in self.agents)


def team_statuses() -> list[TeamStatus]:
    """Return every team that a worker has ever reported, the largest first, then by name."""
    rows = list(Agent.objects.order_by("team", "-is_entry", "name"))
    counted, now = _counted_now(), database_now()
    agents = [_served(row, counted, now) for row in rows]
    names, servers, calls = dict.fromkeys(row.team for row in rows), mcp_status.servers(), tool_activity.by_caller()
    teams = [
        _team(name, [agent for agent in agents if agent.row.team == name], servers.get(name, []), calls)
        for name in names
    ]
    return sorted(teams, key=lambda team: -len(team.agents))


def agent_status(row: Agent) -> AgentStatus:
    """Return one agent."""
    return _served(row, _counted_now(), database_now())


def _team(
    name: str,
    agents: list[AgentStatus],
    servers: list[McpServerStatus],
    calls: Mapping[tool_activity.Key, ToolActivity],
) -> TeamStatus:
    edges = [(agent.row.name, other) for agent in agents for other in tool_offers.texts_of(agent.row.handoffs)]
    entries = [agent.row.name for agent in agents if agent.row.is_entry]
    graph = graph_of([(agent.row.name, agent.mark) for agent in agents], edges, entries)
    problems = [
        richtext.inline(f"{agent.row.name!r} {problem}")
        for agent in agents
        for problem in tool_offers.texts_of(agent.row.problems)
    ]
    return TeamStatus(name, richtext.inline(name), agents, _tools(agents, calls), graph, problems, servers)


class _Counted(NamedTuple):
    """Runs counted by agent."""

    live: dict[str, Counts]
    recent: dict[str, Counts]
    asking: dict[str, int]
    failures: dict[str, Failure]
    activity: dict[str, AgentActivity]


def _counted_now() -> _Counted:
    return _Counted(_live(), _recent(), _asking(), _failures(), agent_activity.by_agent())


def _served(row: Agent, counted: _Counted, now: int) -> AgentStatus:
    return AgentStatus(
        row=row,
        mark=mark_for_name(row.name),
        description=richtext.inline(row.description[:300]),
        model=richtext.inline(row.model or "unknown"),
        tools=[str(tool.get("name", "")) for tool in tool_offers.entries(row.tools)],
        handoffs=[mark_for_name(name) for name in tool_offers.texts_of(row.handoffs)],
        live=counted.live.get(row.name, {}),
        recent=counted.recent.get(row.name, {}),
        asking=counted.asking.get(row.name, 0),
        failure=counted.failures.get(row.name),
        is_served=row.served_until > now,
        activity=counted.activity.get(row.name) or AgentActivity(),
    )


def _tools(agents: Sequence[AgentStatus], calls: Mapping[tool_activity.Key, ToolActivity]) -> list[OfferedTool]:
    """Return one row per tool, by name and schema; the schema as the model saw it."""
    tools: dict[tuple[str, str], OfferedTool] = {}
    pairs = [(agent, tool) for agent in agents for tool in tool_offers.entries(agent.row.tools)]
    bodies = dict(
        ToolSchema.objects.filter(hash__in={str(tool.get("schema", "")) for _, tool in pairs}).values_list(
            "hash", "body"
        )
    )
    for agent, tool in pairs:
        name, schema = str(tool.get("name", "")), str(tool.get("schema", ""))
        if (name, schema) not in tools:
            drawn = json_tree.draw(bodies[schema]) if schema in bodies else None
            effect, origin = (
                hidden_characters.spelled_out(str(tool.get(key) or ""))[:60] for key in ("effect", "origin")
            )
            key = f"{hidden_characters.spelled_out(agent.row.team)}:{hidden_characters.spelled_out(name)}:{schema[:16]}"
            asks = tool.get("needs_approval") is True
            full = name if isinstance(tool.get("name"), str) else ""
            tools[name, schema] = OfferedTool(
                richtext.inline(name or "unnamed"), effect, origin, asks, drawn, key, full
            )
        tools[name, schema].users.append(agent.mark)
        tools[name, schema].activity += calls.get((agent.row.name, schema)) or ToolActivity()
    shared = _shared(tool for _, tool in pairs)
    for (name, _), offered_tool in tools.items():
        offered_tool.also = name in shared
    return [tools[key] for key in sorted(tools)]


def _shared(tools: Iterable[dict[str, Any]]) -> set[str]:
    """Return the qualified names of tools that share their public name with another."""
    named: dict[str, set[str]] = {}
    for tool in tools:
        name = str(tool.get("name", ""))
        named.setdefault(str(tool.get("public_name") or name), set()).add(name)
    return {name for names in named.values() if len(names) > 1 for name in names}


def _live() -> dict[str, Counts]:
    return _counted(Run.objects.filter(status__in=UNFINISHED).values_list("agent", "status").annotate(Count("id")))


def _asking() -> dict[str, int]:
    """Count the calls that wait for approval by the agents that made them; their run may since have been handed
    over."""
    open_calls = ToolCall.objects.filter(id__in=Approval.objects.filter(status="pending").values("tool_call"))
    return dict(open_calls.values_list("agent").annotate(Count("id")))


def _recent() -> dict[str, Counts]:
    ended = Run.objects.filter(id__gte=_since(), ended_seq__isnull=False).exclude(status="delivered")
    return _counted(ended.values_list("agent", "status").annotate(Count("id")))


def _failures() -> dict[str, Failure]:
    bad = Run.objects.filter(id__gte=_since(), status__in=FAILED).order_by("id").select_related("conversation")
    newest = list(bad.reverse()[:MAX_FAILURES])
    return {
        run.agent: Failure(run.conversation.key, run.ended_seq or 0, run.status, richtext.inline(run.reason))
        for run in reversed(newest)
    }


def _counted(rows: Iterable[tuple[str, str, int]]) -> dict[str, Counts]:
    counts: dict[str, Counts] = {}
    for agent, status, number in rows:
        counts.setdefault(agent, {})[status] = number
    return counts


def _since() -> str:
    """Return the smallest id of recent runs: ids are UUIDv7, so ordered by time."""
    stamp = f"{int((time.time() - RECENT_S) * 1000):012x}"
    return f"{stamp[:8]}-{stamp[8:]}"
