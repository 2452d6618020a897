"""A team as a worker serves it: its models, its agents' schemas, and its tools, whose exceptions are noted."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff, RunContextWrapper, ToolTimeoutError, handoff
from agents.tool import default_tool_timeout_error_message

from agents_app.approval_gate import gate
from agents_app.model_providers.providers import Provider, ResolvedModel, model_for
from agents_app.run_scope import current_scope
from agents_app.teams.definition import Team
from agents_app.tools import identity
from agents_app.tools.identity import Schema
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared

MAX_REMEMBERED = 10_000  # hashes of schemas that a served team remembers


class ServedTeam:
    """One team in one worker. Schemas and models are looked up once per agent."""

    def __init__(self, team: Team, provider: Provider) -> None:
        self.team, self.provider = team, provider
        for agent in team.agents:
            gate.guard_agent(agent)
        self._models: dict[int, tuple[Agent[Any], ResolvedModel]] = {}
        self._schemas: dict[int, tuple[Agent[Any], list[Schema]]] = {}
        self._recorded_hashes: set[str] = set()
        self._problems: dict[tuple[str, str], list[str]] = {}

    def of(self, team: Team) -> ServedTeam:
        """Return a ServedTeam with the same models, for a team as one run sees it."""
        served = ServedTeam(team, self.provider)
        served._recorded_hashes = self._recorded_hashes
        return served

    def model_of(self, agent: Agent[Any]) -> ResolvedModel:
        """Return the model of an agent."""
        if id(agent) not in self._models:
            self._models[id(agent)] = agent, model_for(agent, self.provider)
        return self._models[id(agent)][1]

    def schemas(self, agent: Agent[Any]) -> list[Schema]:
        """Return the schemas of what an agent may call: tools, then handoffs. Its function tools are watched."""
        gate.guard_tools(agent)
        if id(agent) not in self._schemas:
            for tool in agent.tools:
                watch(tool)
            offered = [identity.schema_of(tool) for tool in agent.tools]
            offered += [identity.schema_of_handoff(offered_handoff) for offered_handoff in handoffs_of(agent)]
            self._schemas[id(agent)] = agent, offered
        return self._schemas[id(agent)][1]

    def forget(self, agent: Agent[Any]) -> None:
        """Look up an agent's tools again, because they have changed."""
        self._schemas.pop(id(agent), None)

    def note(self, agent: str, server: str, problems: list[str]) -> None:
        """Note name collisions among an agent's tools since an MCP server listed its own; each problem continues a
        sentence that begins with the agent's name."""
        self._problems[agent, server] = problems

    def problems_of(self, agent: str) -> list[str]:
        """Return the noted problems of an agent."""
        noted = (problems for (name, _), problems in sorted(self._problems.items()) if name == agent)
        return list(dict.fromkeys(problem for problems in noted for problem in problems))

    def called(self, agent: Agent[Any], items: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the schemas that a model's answer calls, in its order: name and schema; an unknown name has no
        schema."""
        schemas_by_key = {schema.key: schema for schema in self.schemas(agent)}
        calls: list[dict[str, Any]] = []
        for item in items:
            if getattr(item, "type", "") == "function_call":
                schema = schemas_by_key.get(identity.key_of_call(item))
                calls.append({"name": schema.name if schema else item.name, "schema": schema.hash if schema else None})
        return calls

    def unrecorded(self, agent: Agent[Any]) -> list[Schema]:
        """Return the schemas of an agent that this worker has not recorded yet."""
        return [schema for schema in self.schemas(agent) if schema.hash not in self._recorded_hashes]

    def mark_recorded(self, schemas: Iterable[Schema]) -> None:
        """Mark schemas as recorded. Clients of the Responses API bring their own, so the number remembered is
        limited."""
        if len(self._recorded_hashes) > MAX_REMEMBERED:
            self._recorded_hashes.clear()
        self._recorded_hashes.update(schema.hash for schema in schemas)

    def effect(self, tool: FunctionTool, agent: str = "") -> str:
        """Return the effect of a tool's calls, by the team and by the policy as last read."""
        name = tool.qualified_name
        declared = Declared(effect=self.team.effect(name))
        rows = evaluate.matching(evaluate.latest(), agent, name) if agent else []
        return evaluate.effective(declared, rows).effect


def handoffs_of(agent: Agent[Any]) -> list[Handoff[Any, Any]]:
    """Return an agent's handoffs as a model is offered them."""
    return [target if isinstance(target, Handoff) else handoff(target) for target in agent.handoffs]


def handoff_name(target: Agent[Any] | Handoff[Any, Any]) -> str:
    """Return the name of a handoff's tool."""
    return Handoff.default_tool_name(target) if isinstance(target, Agent) else target.tool_name


def watch(tool: Any) -> None:
    """Note the exceptions of a function tool. Done once per tool, before it is called.

    The SDK tells the model a text and drops the exception. For a tool with the SDK's default error function,
    `RunConfig.tool_error_formatter` receives it; for other tools, and for timeouts, these two functions do.
    """
    if not isinstance(tool, FunctionTool):
        return
    if not tool._use_default_failure_error_function and not isinstance(tool._failure_error_function, _Noting):
        tool._failure_error_function = _Noting(tool._failure_error_function)
    limit = tool.timeout_error_function
    if (
        tool.timeout_seconds is not None
        and tool.timeout_behavior == "error_as_result"
        and not isinstance(limit, _Noting)
    ):
        tool.timeout_error_function = _Noting(limit or _say_timeout)


class _Noting:
    """A tool's error function that notes the exception first. Without a wrapped one it returns None, so the exception
    is raised."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __call__(self, context: RunContextWrapper[Any], error: Exception) -> str:
        scope, call_id = current_scope(), getattr(context, "tool_call_id", None)
        if scope is not None and call_id is not None and scope.hooks is not None:
            scope.hooks.failed(call_id, as_timeout(error))
        if self._inner is None:
            return cast(str, None)  # what the SDK takes for "raise it"
        answer = self._inner(context, error)
        return cast(str, await cast(Awaitable[str], answer) if inspect.isawaitable(answer) else answer)


def as_timeout(error: Exception) -> BaseException:
    """Return the SDK's tool timeout as Python's TimeoutError; any other error unchanged."""
    return TimeoutError(str(error)) if isinstance(error, ToolTimeoutError) else error


def _say_timeout(_: RunContextWrapper[Any], error: Exception) -> str:
    assert isinstance(error, ToolTimeoutError)
    return default_tool_timeout_error_message(tool_name=error.tool_name, timeout_seconds=error.timeout_seconds)
