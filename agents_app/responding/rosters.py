"""A team as one request sees it: its agents copied, with the request's tools, instructions and settings."""

import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agents import Agent, FunctionTool, Handoff, ModelSettings, RunContextWrapper, Tool
from openai.types.shared import Reasoning
from pydantic import ValidationError

from agents_app.responding.asked import Asked, Unfit
from agents_app.responding.form import Form
from agents_app.responding.tools import Hosted, tools_of
from agents_app.roster import Roster
from agents_app.teams import PLAIN_TEAM

Target = Agent[Any] | Handoff[Any, Any]

NUMBERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "parallel_tool_calls": "parallel_tool_calls",
    "max_output_tokens": "max_tokens",
}


def roster_for(roster: Roster, asked: Asked, agent: str, hosted: Mapping[str, Hosted]) -> Roster:
    """Answer the roster of one run. The team's own stays as it is. Raises Unfit for tools that cannot be offered."""
    added = tools_of(asked.tools, hosted)
    is_plain = roster.team.name == PLAIN_TEAM  # its agent has no tools of its own
    copies = {id(one): _copied(one, [] if is_plain else one.tools, asked, added) for one in roster.team.agents}
    _address(copies[id(roster.team.agent(agent))], roster, asked)
    for one in roster.team.agents:
        copies[id(one)].handoffs = [] if asked.tool_choice == "none" else [_moved(h, copies) for h in one.handoffs]
    effects = {name: hosted[name].effect for name in added if name in hosted}
    return roster.of(replace(roster.team, agents=list(copies.values()), effects={**effects, **roster.team.effects}))


def _copied(agent: Agent[Any], own: list[Tool], asked: Asked, added: Mapping[str, FunctionTool]) -> Agent[Any]:
    """Copy an agent with the tools of the request; one of its own goes before another of that name."""
    names = {tool.qualified_name if isinstance(tool, FunctionTool) else tool.name for tool in own}
    if taken := added.keys() & {_called(one) for one in agent.handoffs}:
        raise Unfit("invalid_request", f"A hand-off of {agent.name} is called {min(taken)} already.")
    tools: list[Tool] = [*own, *(tool for name, tool in added.items() if name not in names)]
    settings = agent.model_settings.resolve(_settings(asked))
    if asked.tool_choice == "none" and (tools or agent.mcp_servers):
        settings = replace(settings, tool_choice="none")
    return agent.clone(tools=tools, model_settings=settings, reset_tool_choice=asked.tool_choice != "none")


def _address(agent: Agent[Any], roster: Roster, asked: Asked) -> None:
    """Give the agent that the request names what is for it alone: instructions, the forced call, the answer's form."""
    if roster.team.name == PLAIN_TEAM:
        agent.model, agent.instructions = roster.provider.once(asked.model).model, asked.instructions or None
    elif asked.instructions:
        agent.instructions = _extended(agent.instructions, asked.instructions)
    has_tools = bool(agent.tools or agent.mcp_servers or roster.team.agent(agent.name).handoffs)
    if asked.forced and has_tools:
        choice = "required" if asked.forced == "*" else asked.forced
        agent.model_settings = replace(agent.model_settings, tool_choice=choice)
    if asked.format.get("type") in ("json_schema", "json_object"):
        agent.output_type = Form(asked.format)


def _extended(own: Any, given: str) -> Any:
    if not callable(own):
        return f"{own}\n\n{given}" if own else given

    async def both(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        made = await agent.clone(instructions=own).get_system_prompt(context)
        return f"{made}\n\n{given}" if made else given

    return both


def _moved(one: Target, copies: Mapping[int, Agent[Any]]) -> Target:
    """Let a hand-off lead to the copy of its agent."""
    if isinstance(one, Agent):
        found: Agent[Any] = copies.get(id(one), one)
        return found
    moved, invoke = replace(one), one.on_invoke_handoff
    target = one._agent_ref() if one._agent_ref is not None else None  # what a kept run finds its agents by

    async def invoked(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
        reached: Agent[Any] = await invoke(context, arguments)
        return copies.get(id(reached), reached)

    moved.on_invoke_handoff = invoked
    if target is not None and id(target) in copies:
        moved._agent_ref = weakref.ref(copies[id(target)])
    return moved


def _called(one: Agent[Any] | Handoff[Any, Any]) -> str:
    return Handoff.default_tool_name(one) if isinstance(one, Agent) else one.tool_name


def _settings(asked: Asked) -> ModelSettings:
    given = {ours: asked.params[name] for name, ours in NUMBERS.items() if asked.params.get(name) is not None}
    if asked.params.get("truncation") in ("auto", "disabled"):
        given["truncation"] = asked.params["truncation"]
    if asked.params.get("top_logprobs"):
        given["top_logprobs"] = asked.params["top_logprobs"]
    reasoning, text = asked.params.get("reasoning"), asked.params.get("text")
    try:
        if isinstance(reasoning, dict) and any(reasoning.values()):
            given["reasoning"] = Reasoning(**{key: value for key, value in reasoning.items() if value is not None})
        if isinstance(text, dict) and text.get("verbosity"):
            given["verbosity"] = text["verbosity"]
        return ModelSettings(**given)
    except (ValidationError, TypeError) as error:
        raise Unfit("invalid_request", f"A parameter does not fit: {str(error).splitlines()[0]}") from None
