"""Check teams before anything runs: names, agents, handoffs, tools and context; and all teams together."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from agents import Agent, FunctionTool, Handoff

from agents_app.mcp import servers
from agents_app.memory import team_context
from agents_app.teams.definition import PLAIN_AGENT, PLAIN_TEAM, Effect, Team, TeamError
from agents_app.tools import checks as tool_checks
from agents_app.tools import identity

MAX_NAME = 200
MAX_TEAM_NAME = 100


def check(team: Team) -> None:
    """Check one team, as far as possible before it runs. Raises TeamError with the first problem."""
    for problem in _problems(team):
        raise TeamError(f"team {team.name!r}: {problem}")


def check_together(teams: Sequence[Team]) -> None:
    """Check that no two teams share a name, an entry agent or a hosted tool. Raises TeamError."""
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
    yield from tool_checks.problems_of(agent)


def _target(handoff: Agent[Any] | Handoff[Any, Any]) -> tuple[str, Agent[Any] | None]:
    """Return a handoff's agent; of a custom handoff perhaps only its name."""
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
    yield from tool_checks.problems_of(Agent[Any](name="whoever names them", tools=list(team.hosted_tools)))
    if team.name == PLAIN_TEAM or PLAIN_AGENT in [agent.name for agent in team.agents]:
        yield f"{PLAIN_TEAM!r} and {PLAIN_AGENT!r} are reserved for the built-in team that answers model requests"


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
