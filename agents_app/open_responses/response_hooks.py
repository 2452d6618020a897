"""The hooks of a run that answers a request: they enforce `tool_choice`, `max_tool_calls` and `max_output_tokens`."""

from typing import Any

from agents import Agent, FunctionTool, Handoff, ModelResponse
from openai.types.responses import ResponseFunctionToolCall

from agents_app.model_providers.unique_call_ids import original
from agents_app.open_responses.request import Limited, Unfit
from agents_app.open_responses.request_tools import External
from agents_app.open_responses.response_builder import ResponseBuilder
from agents_app.recorded_values import mask
from agents_app.run_scope import current_scope
from agents_app.worker.run_hooks import RecordingHooks, arguments
from conversations.runs.claims import Body

MAX_UNKNOWN = 4  # calls of tools that are not there, in a run; the model is told of each but the last
NOT_FOUND = "Tool '{}' not found."  # what the SDK tells a model


class ResponseHooks(RecordingHooks):
    """The hooks of any run; answers of the run's own agents' models also go into the response.

    Raises Unfit or Limited for a model's answer: its calls are not made then.
    """

    def __init__(self, *args: Any, answer: ResponseBuilder, is_first: bool, call_count: int) -> None:
        super().__init__(*args)
        self._answer, self._is_first, self._call_count = answer, is_first, call_count
        self._unknown = 0  # calls of tools that are not there
        self._doubtful: dict[str, ResponseFunctionToolCall] = {}  # calls that only the SDK knows to be such, by id

    async def on_llm_start(self, context: Any, agent: Agent[Any], system_prompt: Any, input_items: Any) -> None:
        """Note which of the last calls were of unknown tools, from the model's input."""
        doubtful, self._doubtful = self._doubtful, {}
        outputs = {item.get("call_id"): item.get("output") for item in input_items if isinstance(item, dict)}
        unknown_calls = [
            call for id_, call in doubtful.items() if outputs.get(id_) == NOT_FOUND.format(_qualified(call))
        ]
        await self._refuse(agent, unknown_calls)
        await super().on_llm_start(context, agent, system_prompt, input_items)

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """Add the model's answer, and enforce the limits."""
        await super().on_llm_end(context, agent, response)
        scope = current_scope()
        if scope is not None and scope.parent_call is not None:
            return  # a run inside a tool: no part of the answer
        self._answer.hear(self.turns.current, self.spoken, response)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        self._force(calls)
        self._limit(agent, calls)
        unknown = [call for call in calls if not _is_known(agent, call)]
        is_sure = not agent.mcp_servers  # of MCP servers the SDK alone knows the tools
        self._doubtful = {} if is_sure else {call.call_id: call for call in unknown}
        await self._refuse(agent, unknown if is_sure else [])

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
        here = _names(agent, External) | {_handed(handoff) for handoff in agent.handoffs}
        self._call_count += sum(call.name not in here for call in calls)
        most = self._answer.request.most_calls
        if most is not None and self._call_count > most:
            raise Limited("max_tool_calls", f"{self._call_count} calls, and {most} are allowed")

    async def _refuse(self, agent: Agent[Any], unknown: list[ResponseFunctionToolCall]) -> None:
        """Record calls of unknown tools; the SDK tells the model. Raises Unfit if they do not stop."""
        if not unknown:
            return
        await self._event_writer.store(*(self._refused(agent, call) for call in unknown))
        self._unknown += len(unknown)
        if self._unknown >= MAX_UNKNOWN:
            there = ", ".join(sorted(_offered_names(agent))) or "none"
            raise Unfit(
                "unknown_tool",
                f"The model called unknown tools {self._unknown} times after being corrected:"
                f" {_qualified(unknown[-1])} is not a tool of {agent.name}, which has: {there[:1000]}.",
            )

    def _refused(self, agent: Agent[Any], call: ResponseFunctionToolCall) -> Body:
        body: Body = {"event": "policy.refused", "agent": agent.name, "turn": self.turns.current, "name": call.name}
        body |= {"namespace": call.namespace} if call.namespace else {}
        body |= {"tool_call": self.calls.new(call.call_id), "tool_call_id": original(call.call_id)}
        return body | arguments(mask(call.arguments)) | {"reason": "there is no such tool"}


def _is_known(agent: Agent[Any], call: ResponseFunctionToolCall) -> bool:
    """Return whether an agent has a tool or a handoff with this name. A deferred tool's namespace is its name."""
    names = _offered_names(agent)
    return _qualified(call) in names or (call.namespace == call.name and call.name in names)


def _offered_names(agent: Agent[Any]) -> set[str]:
    tools = {tool.qualified_name for tool in agent.tools if isinstance(tool, FunctionTool)}
    return tools | {_handed(handoff) for handoff in agent.handoffs}


def _qualified(call: ResponseFunctionToolCall) -> str:
    return f"{call.namespace}.{call.name}" if call.namespace else call.name


def _names(agent: Agent[Any], kind: type[FunctionTool]) -> set[str]:
    return {tool.name for tool in agent.tools if isinstance(tool, kind)}


def _handed(target: Agent[Any] | Handoff[Any, Any]) -> str:
    return Handoff.default_tool_name(target) if isinstance(target, Agent) else target.tool_name
