"""The built-in team of plain models: answers requests that name a model and no agent. Nobody can write to it."""

from agents import Agent, ModelSettings
from pydantic import BaseModel

from agents_app.teams import PLAIN_AGENT, PLAIN_TEAM, Team


class PlainContext(BaseModel):
    """What a hosted tool gets of a plain model's run."""

    conversation_id: str = ""
    response_id: str = ""


TEAM = Team(
    name=PLAIN_TEAM,
    agents=[Agent[PlainContext](name=PLAIN_AGENT, model_settings=ModelSettings())],
    entry=[],
    context=PlainContext,
    describe="Answers what programs ask a model by the responses door.",
)
