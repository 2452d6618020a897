"""The hooks of a run that answers a request: they enforce `tool_choice`, `max_tool_calls` and `max_output_tokens`."""

from dataclasses import replace
from typing import Any

from agents import Agent, ModelResponse
from openai.types.responses import ResponseFunctionToolCall

from agents_app.open_responses.request import Limited, Unfit
from agents_app.open_responses.request_tools import ClientTool
from agents_app.open_responses.response_builder import ResponseBuilder
from agents_app.run_scope import current_scope
from agents_app.teams.served_team import handoff_name
from agents_app.worker.run_hooks import RecordingHooks

MIN_OUTPUT_TOKENS = 16  # that a model can be limited to, by the specification


class ResponseHooks(RecordingHooks):
    """The hooks of any run; answers of the run's own agents' models also go into the response.

    Raises Unfit or Limited for a model's answer: its calls are not made then.
    """

    def __init__(self, *args: Any, answer: ResponseBuilder, is_first: bool, call_count: int) -> None:
        super().__init__(*args)
        self._answer, self._is_first, self._call_count = answer, is_first, call_count
        self._limit_tokens()

    async def on_llm_start(self, context: Any, agent: Agent[Any], system_prompt: Any, input_items: Any) -> None:
        """Start a turn. Raises Limited if the response may not have the tokens for one."""
        scope, left = current_scope(), self._answer.tokens_left
        if (scope is None or scope.parent_call is None) and left is not None and left < MIN_OUTPUT_TOKENS:
            raise Limited("max_output_tokens", f"{max(0, left)} output tokens are left, too few for another turn")
        await super().on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """Add the model's answer, and enforce the limits."""
        await super().on_llm_end(context, agent, response)
        scope = current_scope()
        if scope is not None and scope.parent_call is not None:
            return  # a run inside a tool: no part of the answer
        self._answer.hear(self.turns.current, self.spoken, response)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        self._limit_tokens()
        self._force(calls)
        self._limit(agent, calls)

    def _limit_tokens(self) -> None:
        """Leave to the next turn what earlier ones have left, in the settings of the run's own copies of the agents."""
        if (left := self._answer.tokens_left) is None:
            return
        for agent in self._served.team.agents:
            agent.model_settings = replace(agent.model_settings, max_tokens=max(left, MIN_OUTPUT_TOKENS))

    def _force(self, calls: list[ResponseFunctionToolCall]) -> None:
        forced, is_first = self._answer.request.forced, self._is_first
        self._is_first = False
        if not (forced and is_first):
            return
        if not calls:
            raise Unfit("tool_choice_unmet", "The model answered without the required tool call.")
        if forced != "*" and any(call.name != forced for call in calls):
            names = ", ".join(sorted({call.name for call in calls}))
            raise Unfit("tool_choice_unmet", f"The model called {names} instead of {forced}.")

    def _limit(self, agent: Agent[Any], calls: list[ResponseFunctionToolCall]) -> None:
        if calls and self._answer.cut:
            raise Limited(self._answer.cut, "the model's answer was cut off in the middle of a call")
        here = {tool.name for tool in agent.tools if isinstance(tool, ClientTool)}
        here |= set(map(handoff_name, agent.handoffs))
        self._call_count += sum(call.name not in here for call in calls)
        most = self._answer.request.most_calls
        if most is not None and self._call_count > most:
            raise Limited("max_tool_calls", f"{self._call_count} calls, and {most} are allowed")
