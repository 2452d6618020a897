"""What an attempt's SDK run tells the record: model turns, outputs, handoffs, and tool steps, which only it writes.

`executing` is committed before a tool's function is entered; when that is refused, the attempt ends (law F).
"""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    ItemHelpers,
    ModelResponse,
    RunContextWrapper,
    RunHooks,
    ToolErrorFormatterArgs,
    Usage,
)
from agents.tool_context import ToolContext
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from agents_app import identity, register
from agents_app.calls import Calls
from agents_app.decided import Decided
from agents_app.nesting import current
from agents_app.pen import Pen, mask, plain, reason_of
from agents_app.roster import Roster
from agents_app.sealing import Incompatible
from agents_app.turns import Turns
from conversations.actions import calls as actions
from conversations.actions.runs import Body
from conversations.errors import Fenced
from conversations.failpoints import failpoint

Do = Callable[..., Awaitable[Any]]


class Steps(RunHooks[Any]):
    """Hooks of one attempt; runs inside tool calls have the same ones, `current().parent_call` says where."""

    def __init__(self, pen: Pen, calls: Calls, turns: Turns, roster: Roster, do: Do) -> None:
        self.calls, self.turns = calls, turns
        self.said = ""  # the last text that an agent of the run itself said
        self.decided: Mapping[str, Decided] = {}  # what people decided, by our ids of the calls
        self._pen, self._roster, self._do = pen, roster, do
        self._began: dict[str, float] = {}
        self._steps: dict[str, Body] = {}
        self._errors: dict[tuple[str | None, str], BaseException] = {}
        self._answered: dict[tuple[str | None, str], str] = {}  # calls that a person answers: never entered
        self._told: dict[tuple[str | None, str], tuple[Any, Any]] = {}  # what a model is told, and what a tool gave
        self._acting: dict[str | None, str] = {}

    @property
    def acting(self) -> str:
        """The agent that acts where this code is called: of the run, or of the run inside a call."""
        return self._acting.get(_parent(), self._pen.claim.agent)

    async def on_agent_start(self, context: Any, agent: Agent[Any]) -> None:
        """An agent begins to act. The SDK calls this before the agent's own hooks, whose events name it."""
        self._acting[_parent()] = agent.name

    async def on_llm_start(self, context: Any, agent: Agent[Any], system_prompt: Any, input_items: Any) -> None:
        """A model is asked."""
        self.turns.begin(_parent(), agent.name, self._roster.offered(agent))

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has answered: its output, when it said something, and the turn."""
        turn = await self.turns.end(_parent())
        for item in response.output:
            if isinstance(item, ResponseFunctionToolCall):
                self.calls.want(turn.parent_call, item.call_id, item.arguments)
        said = "".join(ItemHelpers.extract_text(i) or "" for i in response.output if _is_message(i))
        said = said or "".join(turn.text)
        told: list[Body] = []
        is_last = turn.parent_call is None and all(_is_message(item) or _is_thought(item) for item in response.output)
        if said:
            told.append({"event": "output", **turn.facts, "text": said, "final": is_last})
        if turn.parent_call is None:
            self.said = said
        model = self._roster.model_of(agent)
        spent = response.usage
        facts: Body = {"model": model.label, "demo": model.is_demo, "tools": turn.tools, "usage": usage_of(spent)}
        if called := self._roster.called(agent, response.output):
            facts["called"] = called
        if fresh := self._roster.unkept(agent):  # of an agent inside a tool, the first time that it is asked
            await self._do(register.keep, self._roster, fresh)
        told.append({"event": "model.turn", **turn.facts, **facts, "duration_ms": _ms_since(turn.began)})
        await self._pen.store(*told)

    async def on_handoff(self, context: Any, from_agent: Agent[Any], to_agent: Agent[Any]) -> None:
        """One agent gives the conversation to another."""
        told: Body = {"event": "agent.handoff", "agent": from_agent.name, "turn": self.turns.current}
        await self._pen.store(told | {"from_agent": from_agent.name, "to_agent": to_agent.name} | _inside())

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Any) -> None:
        """Commit that the call is executing; only then is the function entered. Raises Fenced: it is not."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        sent = mask(context.tool_arguments)
        ours = self.calls.begin(_parent(), context.tool_call_id, digest(mask(asked_of(context))))
        step = self._steps[ours] = self._step(context, agent, tool, ours)
        decided = self.decided.get(ours)
        if decided is not None and decided.decision == "respond":
            self.calls.end(_parent(), context.tool_call_id)
            self._answered[_parent(), context.tool_call_id] = ours
            step["answered_by"] = decided.by
            return
        if decided is not None:
            self._check(decided, context, ours)
        told = step | arguments(sent) | {"status": "start"}
        told |= {"edited_by": decided.by} if decided is not None and decided.decision == "edit" else {}
        if self.calls.is_new(ours):  # no other row can have its id: the run's fence is all there is to pass
            await self._pen.store(told)
        else:
            await self._begin_known(told)
        self._began[ours] = time.monotonic()
        failpoint("before-tool")

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Any, result: Any) -> None:
        """Write what a call gave, or the real exception behind what the model is told."""
        if not isinstance(context, ToolContext) or not isinstance(tool, FunctionTool):
            return
        failpoint("after-tool")
        key = _parent(), context.tool_call_id
        ours = self._answered.pop(key, None) or self.calls.end(*key)
        if ours is None:
            return
        said, given = self._told.pop(key, (None, None))
        output, size = plain(given if said is not None and said is result else result)
        error = self._errors.pop((_parent(), context.tool_call_id), None)
        told = self._steps.pop(ours, None) or self._step(context, agent, tool, ours)
        told = told | {"output": output, "output_bytes": size}
        told |= _outcome(error)
        if (began := self._began.pop(ours, None)) is not None:
            told["duration_ms"] = _ms_since(began)
        await self._pen.store(told)
        failpoint("after-record")

    def decision(self, call_id: str, asked: str) -> Decided | None:
        """Answer what a person decided about a call that is about to be checked, `asked` being its arguments."""
        ours = self.calls.decided(call_id, digest(mask(asked)))
        return self.decided.get(ours) if ours else None

    def decision_of_running(self, call_id: str) -> Decided | None:
        """Answer what a person decided about a call that is invoked now."""
        key = _parent(), call_id
        return self.decided.get(self._answered.get(key) or self.calls.running(*key))

    def tell(self, call_id: str, said: Any, given: Any) -> None:
        """Note that a model is told `said` where a tool gave `given`: the record keeps what it gave."""
        self._told[_parent(), call_id] = said, given

    def failed(self, call_id: str, error: BaseException) -> None:
        """Note the real exception of a call that runs now."""
        self._errors.setdefault((_parent(), call_id), error)

    def format_error(self, told: ToolErrorFormatterArgs[Any]) -> None:
        """Note the exception behind a tool's default failure text; the text stays as it is."""
        if told.error is not None:
            self.failed(told.call_id, told.error)

    def ended_by(self, error: BaseException) -> list[Body]:
        """Answer the ends of calls whose exception ended the run."""
        told: list[Body] = []
        for (parent, call_id), raised in list(self._errors.items()):
            ours = self.calls.end(parent, call_id)
            if ours is not None:
                step: Body = {"event": "tool_step", "name": "", "tool_call": ours, "tool_call_id": call_id}
                told.append(self._steps.pop(ours, step) | _outcome(raised))
        return told

    def _check(self, decided: Decided, context: ToolContext[Any], ours: str) -> None:
        """Compare what is about to run with what was decided about. Raises Incompatible; nothing was entered."""
        if decided.digest and digest(context.tool_arguments) != decided.digest:
            self.calls.end(_parent(), context.tool_call_id)
            name = context.qualified_tool_name
            raise Incompatible(f"the arguments of {name} are not those that {decided.by} decided about: {ours}")

    async def _begin_known(self, told: Body) -> None:
        try:
            await self._do(actions.begin, self._pen.claim, told)
        except Fenced:
            self._pen.is_lost = True
            raise

    def _step(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, ours: str) -> Body:
        told: Body = {"event": "tool_step", "agent": agent.name, "turn": self.turns.current, "tool_call": ours}
        told |= {"tool_call_id": context.tool_call_id, "effect": self._roster.effect(tool, agent.name)}
        return told | identity.layers(tool, context.tool_namespace) | _inside()


def asked_of(context: ToolContext[Any]) -> str:
    """Answer the arguments that a model asked a call with, whatever a person made of them."""
    return context.tool_call.arguments if context.tool_call is not None else context.tool_arguments


def arguments(sent: str) -> Body:
    """Answer the arguments as they came and, when they are an object, as read; no text at all is an empty object."""
    try:
        read = json.loads(sent) if sent.strip() else {}
    except ValueError:
        read = None
    return {"args_raw": sent, **({"args": read} if isinstance(read, dict) else {})}


def usage_of(spent: Usage) -> Body:
    """Answer what was spent, in tokens."""
    told: Body = {"input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens}
    return told | {"total_tokens": spent.total_tokens, "requests": spent.requests}


def digest(sent: str) -> str:
    """Digest arguments the way the record does."""
    return hashlib.sha256(sent.encode("utf-8", "surrogatepass")).hexdigest()


def _outcome(error: BaseException | None) -> Body:
    if error is None:
        return {"status": "success"}
    status = "timeout" if isinstance(error, TimeoutError) else "error"
    return {"status": status, "error": reason_of(error)}


def _parent() -> str | None:
    scope = current()
    return scope.parent_call if scope else None


def _inside() -> Body:
    parent = _parent()
    return {"parent_call": parent} if parent else {}


def _is_message(item: Any) -> bool:
    return isinstance(item, ResponseOutputMessage)


def _is_thought(item: Any) -> bool:
    return getattr(item, "type", "") == "reasoning"


def _ms_since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)
