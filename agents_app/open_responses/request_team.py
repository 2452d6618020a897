"""A team as one request sees it: its agents copied, with the request's tools, instructions and settings."""

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agents import Agent, FunctionTool, Handoff, Model, ModelSettings, RunContextWrapper, Tool
from openai.types.shared import Reasoning
from pydantic import ValidationError

from agents_app.open_responses import openai_parameters
from agents_app.open_responses.output_format import OutputFormat
from agents_app.open_responses.request import RunRequest, Unfit
from agents_app.open_responses.request_tools import Hosted, tools_of
from agents_app.teams.definition import PLAIN_TEAM
from agents_app.teams.served_team import ServedTeam, handoff_name

Target = Agent[Any] | Handoff[Any, Any]

NUMBERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "parallel_tool_calls": "parallel_tool_calls",
    "max_output_tokens": "max_tokens",
}


def team_for(served: ServedTeam, request: RunRequest, agent: str, hosted: Mapping[str, Hosted]) -> ServedTeam:
    """Return the team as one run sees it; the original is unchanged. Raises Unfit for tools that cannot be offered."""
    is_plain = served.team.name == PLAIN_TEAM  # its agent has no tools of its own
    added = tools_of(request, hosted, [] if is_plain else _names(served.team.agent(agent).tools))
    copies = {
        id(member): _copied(member, [] if is_plain else member.tools, request, added) for member in served.team.agents
    }
    _address(copies[id(served.team.agent(agent))], served, request)
    for member in served.team.agents:
        copied = copies[id(member)]
        copied.handoffs = [] if request.tool_choice == "none" else [_moved(h, copies) for h in member.handoffs]
        model = copied.model if isinstance(copied.model, Model) else served.model_of(member).model
        own = copied.model_settings
        copied.model_settings = own.resolve(openai_parameters.settings_for(request, model, own))
    effects = {name: hosted[name].effect for name in added if name in hosted}
    return served.of(replace(served.team, agents=list(copies.values()), effects={**effects, **served.team.effects}))


def _copied(agent: Agent[Any], own: list[Tool], request: RunRequest, added: Mapping[str, FunctionTool]) -> Agent[Any]:
    """Return a copy of an agent with the request's tools; one of its own takes precedence over another with its
    name."""
    names = _names(own)
    if taken := added.keys() & {handoff_name(handoff) for handoff in agent.handoffs}:
        raise Unfit("invalid_request", f"{agent.name} already has a handoff named {min(taken)}.")
    tools: list[Tool] = [*own, *(tool for name, tool in added.items() if name not in names)]
    settings = agent.model_settings.resolve(_settings(request))
    if request.tool_choice == "none" and (tools or agent.mcp_servers):
        settings = replace(settings, tool_choice="none")
    return agent.clone(tools=tools, model_settings=settings, reset_tool_choice=request.tool_choice != "none")


def _names(tools: Iterable[Tool]) -> set[str]:
    return {tool.qualified_name if isinstance(tool, FunctionTool) else tool.name for tool in tools}


def _address(agent: Agent[Any], served: ServedTeam, request: RunRequest) -> None:
    """Give the requested agent what is only for it: instructions, the forced call, the output format."""
    if served.team.name == PLAIN_TEAM:
        agent.model, agent.instructions = served.provider.once(request.model).model, request.instructions or None
    elif request.instructions:
        agent.instructions = _extended(agent.instructions, request.instructions)
    has_tools = bool(agent.tools or agent.mcp_servers or served.team.agent(agent.name).handoffs)
    if request.forced and has_tools:
        choice = "required" if request.forced == "*" else request.forced
        agent.model_settings = replace(agent.model_settings, tool_choice=choice)
    if request.format.get("type") in ("json_schema", "json_object"):
        agent.output_type = OutputFormat(request.format)


def _extended(own: Any, addition: str) -> Any:
    if not callable(own):
        return f"{own}\n\n{addition}" if own else addition

    async def both(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:
        prompt = await agent.clone(instructions=own).get_system_prompt(context)
        return f"{prompt}\n\n{addition}" if prompt else addition

    return both


def _moved(target_or_handoff: Target, copies: Mapping[int, Agent[Any]]) -> Target:
    """Make a handoff lead to the copy of its agent."""
    if isinstance(target_or_handoff, Agent):
        agent_copy: Agent[Any] = copies.get(id(target_or_handoff), target_or_handoff)
        return agent_copy
    moved, invoke = replace(target_or_handoff), target_or_handoff.on_invoke_handoff
    target = (
        target_or_handoff._agent_ref() if target_or_handoff._agent_ref is not None else None
    )  # what a kept run finds its agents by

    async def invoked(context: RunContextWrapper[Any], arguments: str) -> Agent[Any]:
        reached: Agent[Any] = await invoke(context, arguments)
        return copies.get(id(reached), reached)

    moved.on_invoke_handoff = invoked
    if target is not None and id(target) in copies:
        moved._agent_ref = weakref.ref(copies[id(target)])
    return moved


def _settings(request: RunRequest) -> ModelSettings:
    fields = {
        setting: request.params[name] for name, setting in NUMBERS.items() if request.params.get(name) is not None
    }
    if request.params.get("truncation") in ("auto", "disabled"):
        fields["truncation"] = request.params["truncation"]
    reasoning, text = request.params.get("reasoning"), request.params.get("text")
    try:
        if isinstance(reasoning, dict) and any(reasoning.values()):
            fields["reasoning"] = Reasoning(**{key: value for key, value in reasoning.items() if value is not None})
        if isinstance(text, dict) and text.get("verbosity"):
            fields["verbosity"] = text["verbosity"]
        return ModelSettings(**fields)
    except (ValidationError, TypeError) as error:
        raise Unfit("invalid_request", f"A parameter is invalid: {str(error).splitlines()[0]}") from None
