"""The hooks of a run that answers a request: they hold it to `tool_choice`, `max_tool_calls`, `max_output_tokens`."""

from typing import Any

from agents import Agent, FunctionTool, Handoff, ModelResponse
from openai.types.responses import ResponseFunctionToolCall

from agents_app.hooks import Steps, arguments
from agents_app.nesting import current
from agents_app.pen import mask
from agents_app.responding.answer import Answer
from agents_app.responding.asked import Limited, Unfit
from agents_app.responding.tools import External
from conversations.actions.runs import Body


class AnswerSteps(Steps):
    """Like those of any run; what the run's own agents are answered by their models goes to the client as well.

    Raises Unfit or Limited out of a model's answer: what it called is not entered then.
    """

    def __init__(self, *given: Any, answer: Answer, is_first: bool, made: int) -> None:
        super().__init__(*given)
        self._answer, self._is_first, self._made = answer, is_first, made

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has answered."""
        await super().on_llm_end(context, agent, response)
        scope = current()
        if scope is not None and scope.parent_call is not None:
            return  # a run inside a tool: no part of the answer
        self._answer.hear(self.turns.current, self.said, response)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        self._force(calls)
        self._limit(agent, calls)
        if unknown := [call for call in calls if _is_unknown(agent, call)]:
            await self._pen.store(*(self._refused(agent, call) for call in unknown))

    def _force(self, calls: list[ResponseFunctionToolCall]) -> None:
        forced, is_first = self._answer.asked.forced, self._is_first
        self._is_first = False
        if not (forced and is_first):
            return
        if not calls:
            raise Unfit("tool_choice_unmet", "The model answered without a call, although one is required.")
        if forced != "*" and any(call.name != forced for call in calls):
            names = ", ".join(sorted({call.name for call in calls}))
            raise Unfit("tool_choice_unmet", f"The model called {names}, although {forced} was to be called.")

    def _limit(self, agent: Agent[Any], calls: list[ResponseFunctionToolCall]) -> None:
        if calls and self._answer.cut:
            raise Limited(self._answer.cut, "the model was cut off in the middle of a call")
        here = _names(agent, External) | {_handed(one) for one in agent.handoffs}
        self._made += sum(call.name not in here for call in calls)
        most = self._answer.asked.most_calls
        if most is not None and self._made > most:
            raise Limited("max_tool_calls", f"{self._made} calls, and {most} are allowed")

    def _refused(self, agent: Agent[Any], call: ResponseFunctionToolCall) -> Body:
        told: Body = {"event": "policy.refused", "agent": agent.name, "turn": self.turns.current, "name": call.name}
        told |= {"tool_call": self.calls.new(call.call_id), "tool_call_id": call.call_id}
        return told | arguments(mask(call.arguments)) | {"reason": "there is no such tool"}


def _is_unknown(agent: Agent[Any], call: ResponseFunctionToolCall) -> bool:
    """Tell whether a model made a name up; the SDK tells it so. Of MCP servers it alone knows the tools."""
    known = _names(agent, FunctionTool) | {_handed(one) for one in agent.handoffs}
    return not (agent.mcp_servers or call.namespace or call.name in known)


def _names(agent: Agent[Any], kind: type[FunctionTool]) -> set[str]:
    return {tool.name for tool in agent.tools if isinstance(tool, kind)}


def _handed(one: Agent[Any] | Handoff[Any, Any]) -> str:
    return Handoff.default_tool_name(one) if isinstance(one, Agent) else one.tool_name
