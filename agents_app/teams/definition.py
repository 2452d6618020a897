"""Teams: packages that declare agents, found by setting and entry point, checked whole before anything runs.

A team is a package (or module) with a `TEAM`:

    TEAM = Team(name="Town Hall", agents=[dialogue, triage], entry=["Dialogue"], context=TownHallContext)

`load()` reads `SWITCHBOARD_TEAMS` (dotted packages, comma separated) and the entry points of group `switchboard.teams`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal, get_args

from agents import Agent, FunctionTool, Handoff, Tool
from django.conf import settings
from pydantic import BaseModel

from agents_app.mcp import servers
from agents_app.mcp.servers import McpServer
from agents_app.memory import team_context
from agents_app.tools import checks, identity
from conversations.asgi.agui import registered

GROUP = "switchboard.teams"
MAX_NAME = 200
MAX_TEAM_NAME = 100
PLAIN_TEAM, PLAIN_AGENT = "Plain models", "Plain model"  # answer requests that name a model and no agent
Effect = Literal["read", "idempotent", "unsafe", "destructive"]


class TeamError(Exception):
    """A team that cannot be served. One line: the team, then the cause."""


class NoContext(BaseModel):
    """The context of a team that keeps nothing between messages."""


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
        """Return an agent by its name. Raises KeyError."""
        return next((a for a in self.agents if a.name == name), None) or _missing(name)

    def tools(self) -> list[Tool]:
        """List the tools of all its agents and its hosted ones, each once."""
        own = [tool for agent in self.agents for tool in agent.tools]
        return list({id(tool): tool for tool in [*own, *self.hosted_tools]}.values())

    def effect(self, tool: str) -> Effect:
        """Return what a call of a tool (qualified name) does to the world."""
        return self.effects.get(tool, "unsafe")

    def may_post(self, conversation: str) -> bool:
        """Return whether its agents may post to a conversation that is not theirs."""
        return any(re.fullmatch(_pattern(pattern), conversation, re.DOTALL) for pattern in self.may_post_to)

    def handoffs(self, agent: Agent[Any]) -> list[str]:
        """Name the agents that an agent may hand over to."""
        return [handoff.agent_name if isinstance(handoff, Handoff) else handoff.name for handoff in agent.handoffs]


def load(names: str | None = None) -> list[Team]:
    """Import and check all teams; `names` replaces the setting. Raises TeamError."""
    team_names = settings.CONFIG.teams if names is None else names
    loaded = [_imported(part.strip()) for part in team_names.split(",") if part.strip()]
    loaded += [_loaded(point) for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
    teams = list({id(team): team for team in loaded}.values())
    teams += _elsewhere() if names is None else []
    for team in teams:
        check(team)
    _check_together(teams)
    return teams


def _elsewhere() -> list[Team]:
    """Make the team of the agents elsewhere; the protocol is imported only where there are some."""
    config = settings.CONFIG
    remotes = registered.read(config.agui_agents.get_secret_value())
    if not remotes:
        return []
    from agents_app.agui.remote_team import team_of

    allowed, silence_s = config.agui_allow_list, config.model_silence_s
    return [team_of(remotes, allowed, silence_s=silence_s, most_bytes=config.model_turn_bytes)]


def check(team: Team) -> None:
    """Find what would go wrong in a run later. Raises TeamError."""
    for problem in _problems(team):
        raise TeamError(f"team {team.name!r}: {problem}")


def _imported(path: str) -> Team:
    try:
        package = import_module(path)
    except ModuleNotFoundError as error:
        if error.name and (path == error.name or path.startswith(f"{error.name}.")):
            raise TeamError(f"team {path!r}: there is no such package (SWITCHBOARD_TEAMS)") from None
        raise TeamError(f"team {path!r}: it needs {error.name!r}, which is not installed") from error
    except Exception as error:  # whatever a team's own code raises while it is read: the operator is told
        raise TeamError(f"team {path!r}: {_line(error)}") from error
    return _team_of(path, getattr(package, "TEAM", None))


def _loaded(point: Any) -> Team:
    try:
        value = point.load()
    except Exception as error:  # as above
        raise TeamError(f"team {point.value!r} (entry point {point.name!r}): {_line(error)}") from error
    return _team_of(point.value, getattr(value, "TEAM", value))


def _team_of(path: str, value: object) -> Team:
    if not isinstance(value, Team):
        raise TeamError(f"team {path!r}: it does not define TEAM = Team(...)")
    return value


def _problems(team: Team) -> Iterator[str]:
    yield from _wrong_name("the team's name", team.name, MAX_TEAM_NAME)
    if not team.agents:
        yield "it has no agents"
    names = [agent.name for agent in team.agents]
    for agent in team.agents:
        yield from _wrong_name("an agent's name", agent.name, MAX_NAME)
    yield from (f"two of its agents are called {name!r}" for name in _repeated(names))
    if not team.entry:
        yield "it has no entry agent"
    yield from (f"its entry agent {name!r} is not among its agents" for name in team.entry if name not in names)
    for agent in team.agents:
        yield from _wrong_agent(team, agent)
    yield from _wrong_hosted(team)
    yield from _wrong_effects(team)
    yield from servers.problems(team.mcp_servers, names)
    if problem := team_context.problem_of(team.context):
        yield problem
    if team.max_turns < 1:
        yield f"max_turns must be 1 or more; got {team.max_turns}"
    if isinstance(team.may_post_to, str):
        yield "may_post_to must be a list of conversation ids or patterns"
    yield from (f"may_post_to must hold conversation ids or patterns with *; got {pattern!r}" for pattern in
                team.may_post_to if not isinstance(pattern, str) or not pattern.strip())  # fmt: skip


def _wrong_name(what: str, name: object, longest: int) -> Iterator[str]:
    if not isinstance(name, str) or not name.strip():
        yield f"{what} must not be blank"
    elif name != name.strip():
        yield f"{what} must not begin or end with a space; got {name!r}"
    elif len(name) > longest:
        yield f"{what} must be at most {longest} characters; got {len(name)}"
    elif ":" in name or not name.isprintable():
        yield f"{what} must not contain a colon or control characters; got {name!r}"


def _wrong_agent(team: Team, agent: Agent[Any]) -> Iterator[str]:
    reached = [_target(handoff) for handoff in agent.handoffs]
    for name, target in reached:
        is_ours = target in team.agents if target is not None else name in [a.name for a in team.agents]
        if not is_ours:
            yield f"{agent.name!r} hands off to {name!r}, which is not in the team"
    yield from checks.problems_of(agent)


def _target(handoff: Agent[Any] | Handoff[Any, Any]) -> tuple[str, Agent[Any] | None]:
    """Return a handoff's agent; of a hand-made one perhaps its name alone."""
    if isinstance(handoff, Agent):
        return handoff.name, handoff
    agent_ref = getattr(handoff, "_agent_ref", None)
    target = agent_ref() if callable(agent_ref) else None
    return handoff.agent_name, target if isinstance(target, Agent) else None


def _wrong_effects(team: Team) -> Iterator[str]:
    tool_names = {identity.identity_of(tool).qualified_name for tool in team.tools()}
    for name, effect in team.effects.items():
        if effect not in get_args(Effect):
            yield f"the effect of {name!r} must be one of {', '.join(get_args(Effect))}; got {effect!r}"
        if name not in tool_names and not team.mcp_servers:  # theirs are not known yet
            yield f"it sets the effect of {name!r}, but none of its agents has this tool"


def _wrong_hosted(team: Team) -> Iterator[str]:
    for tool in team.hosted_tools:
        if not isinstance(tool, FunctionTool):
            yield f"its hosted tool {getattr(tool, 'name', tool)!r} is not a function tool"
        elif not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.qualified_name):
            yield f"its hosted tool {tool.qualified_name!r} needs a name of letters, digits, _ and -"
    names = [tool.name for tool in team.hosted_tools]
    yield from (f"two of its hosted tools are called {name!r}" for name in _repeated(names))
    yield from checks.problems_of(Agent[Any](name="whoever names them", tools=list(team.hosted_tools)))
    if team.name == PLAIN_TEAM or PLAIN_AGENT in [agent.name for agent in team.agents]:
        yield f"{PLAIN_TEAM!r} and {PLAIN_AGENT!r} are reserved for the built-in team that answers model requests"


def _check_together(teams: Sequence[Team]) -> None:
    served: dict[str, Team] = {}
    named: dict[str, Team] = {}
    hosting: dict[str, Team] = {}
    for team in teams:
        for tool in team.hosted_tools:
            if hosting.setdefault(tool.qualified_name, team) is not team:
                raise TeamError(
                    f"team {team.name!r}: its hosted tool {tool.qualified_name!r} already belongs to another team"
                )
        if named.setdefault(team.name, team) is not team:
            raise TeamError(f"team {team.name!r}: another team has this name")
        for name in team.entry:
            other = served.setdefault(name, team)
            if other is not team:
                raise TeamError(f"team {team.name!r}: its entry agent {name!r} already belongs to {other.name!r}")


def _pattern(wildcard: str) -> str:
    return ".*".join(map(re.escape, wildcard.split("*")))


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _missing(name: str) -> Agent[Any]:
    raise KeyError(name)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
