"""Record an attempt's SDK run: model turns, outputs, handoffs, and tool steps, which only these hooks write.

`executing` is committed before a tool's function is entered; if that is refused, the attempt ends (law F).
"""

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import Agent, FunctionTool, ModelResponse, RunContextWrapper, ToolErrorFormatterArgs, Usage
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from agents_app.approval_gate.gate import guard_tools
from agents_app.call_decisions import Decision
from agents_app.model_providers.fit_calls import fit
from agents_app.model_providers.unique_call_ids import original
from agents_app.recorded_values import mask_json_text, reason_of, recorded_digests, to_json_value
from agents_app.run_scope import RunnerId, RunScopeHooks, current_parent_call, current_runner
from agents_app.teams import agent_registry
from agents_app.teams.served_team import ServedTeam
from agents_app.tools import identity
from agents_app.worker.call_ids import CallIdMap
from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.model_turns import ModelAnswer, ModelTurns, StreamedMessage, TurnTooLarge
from agents_app.worker.saved_state import Incompatible
from agents_app.worker.unknown_calls import UnknownCalls
from conversations.core.db_threads import RunInThread
from conversations.core.errors import Fenced, TooLarge
from conversations.core.failpoints import failpoint
from conversations.core.ids import text_digest
from conversations.events.payload import check_depth
from conversations.runs import claims
from conversations.runs.claims import Body


class RecordingHooks(RunScopeHooks):
    """The hooks of one attempt; runs inside tool calls use the same ones, and `current_runner()` tells them apart."""

    def __init__(
        self, event_writer: RunEventWriter, calls: CallIdMap, turns: ModelTurns, served: ServedTeam, do: RunInThread
    ) -> None:
        self.calls, self.turns = calls, turns
        self.last_text = ""  # the last text that an agent of the run itself said
        self.has_unknown_usage = False  # of an answer in this attempt
        self.spoken: list[StreamedMessage] = []  # the messages of its last answer
        self.on_progress: Callable[[str], Awaitable[None]] | None = None
        """called with an agent's name after its answer, a handoff to it, or its call"""
        self.on_excess: Callable[[TurnTooLarge], None] | None = None  # ends the run from inside a call
        self.decided: Mapping[str, Decision] = {}  # what people decided, by our ids of the calls
        self._event_writer, self._served, self._do = event_writer, served, do
        self._began: dict[str, float] = {}
        self._started_steps: dict[str, Body] = {}
        self._errors: dict[tuple[RunnerId, str], BaseException] = {}
        self._answered: dict[tuple[RunnerId, str], str] = {}  # calls that a person answers: never entered
        self._replaced_outputs: dict[
            tuple[RunnerId, str], tuple[Any, Any]
        ] = {}  # what a model is sent, and what a tool returned
        self._acting: dict[RunnerId, str] = {}
        self._inner_agents: set[str] = set()  # those that answered inside the calls of this step
        self._unknown_calls = UnknownCalls()

    @property
    def acting(self) -> str:
        """The active agent where this code is called: of the run, or of the run inside a call."""
        return self._acting.get(current_runner(), self._event_writer.claim.agent)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        """Handle an agent's start. The SDK calls this before the agent's own hooks, whose events name the agent."""
        self._acting[current_runner()] = agent.name
        guard_tools(agent, is_made_at_run=True)  # a no-op for agents of the team; the SDK reads the tools after this

    async def on_llm_start(self, context: Any, agent: Agent[Any], system_prompt: Any, input_items: Any) -> None:
        """Start a turn when a model is called. Raises Unfit if it goes on calling what is not there."""
        schemas = self._served.schemas(agent)
        self._unknown_calls.check(current_runner(), agent.name, [schema.name for schema in schemas])
        fit(agent.model)
        self.turns.begin(current_runner(), agent.name, [schema.hash for schema in schemas])

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """Record a model's answer: its outputs, if there are any, and the turn."""
        turn = await self.turns.end(current_runner())
        self._check_size(turn, response)
        calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
        for call in calls:
            self.calls.expect_call(turn.parent_call, call.call_id, call.arguments)
        repeated = self._unknown_calls.request(turn.runner, calls)
        spoken = self.turns.spoken(turn, response.output)
        is_last = turn.parent_call is None and all(_is_message(item) or _is_thought(item) for item in response.output)
        bodies = _outputs(turn, spoken, is_last=is_last)
        if turn.parent_call is None:
            self.spoken = spoken
            self.last_text = next((message.text for message in reversed(spoken) if message.text), "")
        model = self._served.model_of(agent)
        spent = usage_of(response.usage)
        self.has_unknown_usage = self.has_unknown_usage or spent is None
        fields: Body = {"model": model.label, "demo": model.is_demo, "tools": turn.tools, "usage": spent}
        if called := self._served.called(agent, response.output):
            fields["called"] = called
        if fresh := self._served.unrecorded(agent):  # of an agent inside a tool, the first time that it is asked
            await self._do(agent_registry.save_schemas, self._served, fresh)
        bodies.append({"event": "model.turn", **turn.facts, **fields, "duration_ms": ms_since(turn.began)})
        await self._event_writer.store(*bodies, *map(self._refused, repeated))
        if turn.parent_call is not None:
            self._inner_agents.add(agent.name)
        await self._notify_progress(agent.name)

    async def on_handoff(self, context: Any, from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        """Record a handoff from one agent to another."""
        body: Body = {"event": "agent.handoff", "agent": from_agent.name, "turn": self.turns.current}
        await self._event_writer.store(body | {"from_agent": from_agent.name, "to_agent": to_agent.name} | _inside())
        await self._notify_progress(to_agent.name)

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Any) -> None:
        """Commit that the call is executing; only then is the function entered. Raises Fenced if it must not be."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        sent = mask_json_text(context.tool_arguments)
        digests = recorded_digests(requested_arguments(context))
        our_id = self.calls.begin(current_runner(), context.tool_call_id, tool.name, digests)
        step = self._started_steps[our_id] = self._tool_step_body(context, agent, tool, our_id)
        decided = self.decided.get(our_id)
        if decided is not None and decided.decision == "respond":
            self.calls.end(current_runner(), context.tool_call_id)
            self._answered[current_runner(), context.tool_call_id] = our_id
            step["answered_by"] = decided.by
            return
        if decided is not None:
            self._check(decided, context, our_id)
        body = step | arguments(sent) | {"status": "start"}
        body |= {"edited_by": decided.by} if decided is not None and decided.decision == "edit" else {}
        if self.calls.is_new(our_id):  # no other row can have its id: the run's fence is all there is to pass
            await self._event_writer.store(body)
        else:
            await self._begin_recorded_call(body)
        self._began[our_id] = time.monotonic()
        failpoint("before-tool")

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Any, result: Any) -> None:
        """Record the output of a call, or the actual exception behind the text that the model gets."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        failpoint("after-tool")
        key = current_runner(), context.tool_call_id
        our_id = self._answered.pop(key, None) or self.calls.running(*key)
        our_id = our_id or self.calls.executing_earlier(*key, tool.name, recorded_digests(requested_arguments(context)))
        if our_id is None:
            return
        replacement, own_output = self._replaced_outputs.pop(key, (None, None))
        output, size = to_json_value(own_output if replacement is not None and replacement is result else result)
        error = self._errors.pop((current_runner(), context.tool_call_id), None)
        body = self._started_steps.pop(our_id, None) or self._tool_step_body(context, agent, tool, our_id)
        body = body | {"output": output, "output_bytes": size}
        body |= _outcome(error)
        if (began := self._began.pop(our_id, None)) is not None:
            body["duration_ms"] = ms_since(began)
        await self._event_writer.store(body)
        self.calls.end_recorded(our_id)  # not before: if the store fails, the call is in doubt
        failpoint("after-record")
        await self._notify_progress(agent.name)

    async def _notify_progress(self, agent: str) -> None:
        if self.on_progress is None or current_parent_call() is not None:
            return
        inner_agents, self._inner_agents = self._inner_agents, set()
        for name in (agent, *sorted(inner_agents - {agent})):
            await self.on_progress(name)

    def our_call(self, context: ToolContext[Any]) -> str:
        """Return our id of a call that is running."""
        key = current_runner(), context.tool_call_id
        return self.calls.running(*key) or self.calls.running_earlier(
            *key, context.tool_name, recorded_digests(requested_arguments(context))
        )

    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return a person's decision about a call that is being invoked."""
        answered = self._answered.get((current_runner(), context.tool_call_id))
        return self.decided.get(answered or self.our_call(context))

    def record_replaced_output(self, call_id: str, replacement: Any, output: Any) -> None:
        """Record that a model gets `replacement` instead of a tool's `output`: the record keeps the output."""
        self._replaced_outputs[current_runner(), call_id] = replacement, output

    def failed(self, call_id: str, error: BaseException) -> None:
        """Record the actual exception of a running call."""
        self._errors.setdefault((current_runner(), call_id), error)

    async def format_error(self, args: ToolErrorFormatterArgs[Any]) -> None:
        """Record the exception behind a tool's default failure text, or a call of a tool that is not there; the text
        is not changed."""
        if args.error is not None:
            self.failed(args.call_id, args.error)
        call = self._unknown_calls.requested(current_runner(), args.call_id)
        if args.kind == "tool_not_found" and call is not None:
            await self._event_writer.store(self._refused(call))

    def ended_by(self, error: BaseException) -> list[Body]:
        """Return the end events of calls whose exception ended the run."""
        bodies: list[Body] = []
        for (runner, call_id), raised in list(self._errors.items()):
            our_id = self.calls.end(runner, call_id) or self.calls.end_earlier(runner, call_id)
            if our_id is not None:
                step: Body = {"event": "tool_step", "name": "", "tool_call": our_id, "tool_call_id": original(call_id)}
                bodies.append(self._started_steps.pop(our_id, step) | _outcome(raised))
        return bodies

    def _refused(self, call: ResponseFunctionToolCall) -> Body:
        """Count a call of a tool that is not there; return its event."""
        self._unknown_calls.refuse(current_runner(), call)
        body: Body = {"event": "policy.refused", "agent": self.acting, "turn": self.turns.current, "name": call.name}
        body |= {"namespace": call.namespace} if call.namespace else {}
        body |= {"tool_call": self.calls.new(call.call_id), "tool_call_id": original(call.call_id)}
        return body | arguments(mask_json_text(call.arguments)) | {"reason": "there is no such tool"} | _inside()

    def _check_size(self, turn: ModelAnswer, response: ModelResponse) -> None:
        """Count what was not streamed. Raises TurnTooLarge, except inside a call, where that would end only the
        call."""
        try:
            self.turns.check(turn, response.output)
        except TurnTooLarge as error:
            if turn.parent_call is not None and self.on_excess is not None:
                self.on_excess(error)
            raise

    def _check(self, decided: Decision, context: ToolContext[Any], our_id: str) -> None:
        """Compare a call that is about to run with the one that was decided on. Raises Incompatible; nothing was
        entered."""
        if decided.digest and text_digest(context.tool_arguments) != decided.digest:
            self.calls.end(current_runner(), context.tool_call_id)
            name = context.qualified_tool_name
            raise Incompatible(f"the arguments of {name} differ from those that {decided.by} decided on: {our_id}")

    async def _begin_recorded_call(self, body: Body) -> None:
        """Commit that a call that the record already has is executing. Raises Fenced if it was entered before."""
        try:
            await self._do(claims.begin_execution, self._event_writer.claim, self._event_writer.fit(body))
        except Fenced:
            self._event_writer.is_lost = True
            raise

    def _tool_step_body(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, our_id: str) -> Body:
        body: Body = {"event": "tool_step", "agent": agent.name, "turn": self.turns.current, "tool_call": our_id}
        body |= {"tool_call_id": original(context.tool_call_id), "effect": self._served.effect(tool, agent.name)}
        return body | identity.layers(tool, context.tool_namespace) | _inside()


def requested_arguments(context: ToolContext[Any]) -> str:
    """Return the arguments with which a model requested a call, before any edits."""
    return context.tool_call.arguments if context.tool_call is not None else context.tool_arguments


def arguments(sent: str) -> Body:
    """Return the arguments as they arrived and, if they are an object that an event can hold, parsed; an empty text is
    an empty object."""
    try:
        check_depth(sent.encode("utf-8", "surrogatepass"))
        read = json.loads(sent) if sent.strip() else {}
    except (ValueError, TooLarge):
        read = None
    return {"args_raw": sent, **({"args": read} if isinstance(read, dict) else {})}


def usage_of(spent: Usage) -> Body | None:
    """Return an answer's usage in tokens; None if its server did not report it, which the SDK counts as 0."""
    return _tokens(spent) if spent.input_tokens or spent.output_tokens or spent.total_tokens else None


def total_of(spent: Usage) -> Body | None:
    """Return the usage of several answers, in tokens; None if one of them did not report it."""
    return _tokens(spent) if spent.requests <= len(spent.request_usage_entries) else None


def _outputs(turn: ModelAnswer, spoken: list[StreamedMessage], *, is_last: bool) -> list[Body]:
    """Return an output for each message with text. The run's answer is the last one that is not commentary."""
    spoken_messages = [message for message in spoken if message.text]
    answer = next(
        (message for message in reversed(spoken_messages) if message.phase != "commentary"),
        spoken_messages[-1] if spoken_messages else None,
    )
    return [
        {"event": "output", **turn.facts, **message.facts, "text": message.text, "final": is_last and message is answer}
        for message in spoken_messages
    ]


def _tokens(spent: Usage) -> Body:
    tokens: Body = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
    for name in ("cached_tokens", "cache_write_tokens"):
        if number := getattr(spent.input_tokens_details, name, 0):
            tokens[name] = number
    return tokens | {"total_tokens": spent.total_tokens, "requests": spent.requests}


def _outcome(error: BaseException | None) -> Body:
    if error is None:
        return {"status": "success"}
    status = "timeout" if isinstance(error, TimeoutError) else "error"
    return {"status": status, "error": reason_of(error)}


def _inside() -> Body:
    parent = current_parent_call()
    return {"parent_call": parent} if parent else {}


def _is_message(item: Any) -> bool:
    return isinstance(item, ResponseOutputMessage)


def _is_thought(item: Any) -> bool:
    return getattr(item, "type", "") == "reasoning"


def ms_since(began: float) -> float:
    """Return the milliseconds since a time of `time.monotonic`."""
    return round((time.monotonic() - began) * 1000, 3)
