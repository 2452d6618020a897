"""The built-in team of plain models: answers requests that name a model and no agent. Nobody can write to it."""

from collections.abc import Mapping

from agents import Agent, ModelSettings, Tool
from pydantic import BaseModel

from agents_app.responding.tools import Hosted
from agents_app.teams import PLAIN_AGENT, PLAIN_TEAM, Team


class PlainContext(BaseModel):
    """What a hosted tool gets of a plain model's run."""

    conversation_id: str = ""
    response_id: str = ""


def team_of(hosted: Mapping[str, Hosted]) -> Team:
    """Make the team of a worker. Its agent shows all hosted tools: each request is given those that it names."""
    tools: list[Tool] = [one.tool for one in hosted.values()]
    return Team(
        name=PLAIN_TEAM,
        agents=[Agent[PlainContext](name=PLAIN_AGENT, tools=tools, model_settings=ModelSettings())],
        entry=[],
        context=PlainContext,
        describe="Answers what programs ask a model by the responses door.",
        effects={name: one.effect for name, one in hosted.items()},
    )
