"""A citizen talks to a team with the demo model, by the SDK's runner alone: no worker, no database."""

import asyncio
from typing import Any, NamedTuple

from agents import Agent, ModelProvider, RunConfig, Runner
from agents.result import RunResult
from pydantic import BaseModel

from agents_app.memory import team_context
from agents_app.model_providers.providers import ModelConfig, Provider
from agents_app.teams.definition import Team

CONVERSATION = "town-1"


class Heard(NamedTuple):
    """What came of one message: the path `agent>tool`, the answer, what was asked for approval."""

    path: list[str]
    answer: str
    speaker: str
    approvals: list[str]
    result: RunResult


class Citizen:
    """Somebody who talks to a team. Its context is kept as text between messages, as a worker does."""

    def __init__(self, team: Team, *, approves: bool = True, provider: ModelProvider | None = None) -> None:
        self.team = team
        self.approves = approves
        self.stored_context: str | None = None
        self.items: list[Any] = []
        self.agent: Agent[Any] = team.agent(team.entry[0])
        self._config = RunConfig(
            model_provider=provider or Provider(ModelConfig(demo_pace_s=0)), tool_name_collision_policy="error"
        )

    @property
    def context(self) -> Any:
        """What the team remembers."""
        return team_context.read(self.team.context, self.stored_context, CONVERSATION)

    def say(self, text: str) -> Heard:
        """Write a message; decide what is asked; return what was heard."""
        return asyncio.run(self._say(text))

    async def _say(self, text: str) -> Heard:
        context: BaseModel = self.context
        start = [*self.items, {"role": "user", "content": text}]
        settings: dict[str, Any] = {"run_config": self._config, "max_turns": self.team.max_turns}
        result = await Runner.run(self.agent, start, context=context, **settings)
        requests = []
        while result.interruptions:
            state = result.to_state()
            for item in state.get_interruptions():
                requests.append(str(item.tool_name))
                if self.approves:
                    state.approve(item)
                else:
                    state.reject(item, rejection_message="Not our road.")
            result = await Runner.run(self.agent, state, **settings)
        self.items, self.agent, self.stored_context = (
            result.to_input_list(),
            result.last_agent,
            team_context.write(context),
        )
        return Heard(_path(result), str(result.final_output), result.last_agent.name, requests, result)


def _path(result: RunResult) -> list[str]:
    called = [item for item in result.new_items if type(item).__name__ in ("ToolCallItem", "HandoffCallItem")]
    return [f"{item.agent.name}>{item.raw_item.name}" for item in called]
