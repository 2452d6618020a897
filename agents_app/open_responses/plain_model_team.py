"""The built-in team of plain models: answers requests that name a model and no agent. Nobody can write to it."""

from collections.abc import Mapping

from agents import Agent, ModelSettings, Tool
from pydantic import BaseModel

from agents_app.open_responses.request_tools import Hosted
from agents_app.teams.definition import PLAIN_AGENT, PLAIN_TEAM, Team


class PlainContext(BaseModel):
    """The context that a hosted tool receives in a plain model's run."""

    conversation_id: str = ""
    response_id: str = ""


def team_of(hosted: Mapping[str, Hosted]) -> Team:
    """Return the team for a worker. Its agent lists all hosted tools: each request gets those that it names."""
    tools: list[Tool] = [hosted_tool.tool for hosted_tool in hosted.values()]
    return Team(
        name=PLAIN_TEAM,
        agents=[Agent[PlainContext](name=PLAIN_AGENT, tools=tools, model_settings=ModelSettings())],
        entry=[],
        context=PlainContext,
        describe="Answers requests that programs send to a model through /v1/responses.",
        effects={name: hosted_tool.effect for name, hosted_tool in hosted.items()},
    )
