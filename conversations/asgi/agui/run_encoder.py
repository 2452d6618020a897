"""Convert a run's recorded events to AG-UI events. One encoder for each segment of a run that is streamed.

A segment ends with the run, or where the run waits for a decision: the protocol cannot represent a waiting run, so the
stream's run ends there with the interrupt outcome, and what follows the decision is a further run of the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import msgspec
from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from conversations.core.errors import SwitchboardError
from conversations.core.json_values import as_text
from conversations.events import payload, registry, response_ids
from conversations.events.log.records import Stored
from conversations.events.payload import clean_text

Events = list[BaseEvent]
BUDGET = "budget"  # the origin of an approval request about a budget, which is about no call
OWN = "switchboard"  # before the names of what is not the protocol's
ENDS = registry.run_ends()
NOT_RUN = "The tool was not run: "
MAX_RESULT = 256 << 10  # characters of a tool's result that are streamed


class Fields(msgspec.Struct, gc=False):
    """The fields that are read of a run's events."""

    agent: str | None = None
    turn: int | None = None
    parent_call: str | None = None
    text: str | None = None
    # of calls
    name: str = ""
    tool_call: str | None = None
    tool_call_id: str | None = None
    origin: str | None = None
    status: str | None = None
    args: Any = None
    args_raw: str | None = None
    output: Any = None
    result_summary: str | None = None
    error: Any = None
    reason: str | None = None
    # of approval requests
    approval_id: str = ""
    decision: str = ""
    decisions: list[str] | None = None
    message: str | None = None
    why: str | None = None
    deadline: str | None = None
    # of turns, handoffs and stages
    model: str = ""
    usage: dict[str, Any] | None = None
    to_agent: str = ""
    stage: Any = None
    server: str | None = None


_decoder = msgspec.json.Decoder(Fields)


class RunSegment(NamedTuple):
    """A segment that is streamed as one run of the protocol: its thread and run ids there, and the run and response
    here.

    `calls` are the tool calls of the run that were streamed earlier, `ended` those of them that have finished; `turns`
    are the turns whose text was streamed earlier.
    """

    thread: str
    shown_run: str
    run: str
    response: str = ""
    agent: str = ""
    calls: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    turns: frozenset[int] = frozenset()

    @property
    def prefix(self) -> str:
        """Return the prefix of its message ids, by which `front_end_input` finds the response."""
        return self.response or f"run_{self.run}"


class RunEncoder:
    """Tracks what of a segment was streamed, and what waits for an answer."""

    def __init__(self, segment: RunSegment, interrupts: Iterable[Interrupt] = ()) -> None:
        self.segment = segment
        self.is_over = False
        self.calls, self.ended = set(segment.calls), set(segment.ended)
        self._interrupts = {interrupt.id: interrupt for interrupt in interrupts}
        self._texts: dict[str, str] = {}  # messages that are open: what was streamed of each
        self._closed = {self._message_id(turn) for turn in segment.turns}
        self._step = ""
        self._front_end_calls: list[Fields] = []  # of the front end's tools: streamed at the end, with whole arguments
        self._usage: dict[str, TokenUsage] = {}
        self._waits = False

    @property
    def interrupts(self) -> list[Interrupt]:
        """Return what it waits for."""
        return list(self._interrupts.values())

    @property
    def finished_turns(self) -> frozenset[int]:
        """Return the turns that were streamed completely."""
        turns = (id_.rpartition(".")[2] for id_ in self._closed)
        return frozenset(int(turn) for turn in turns if turn.isdecimal())

    def begin(self, echo: RunAgentInput | None = None) -> Events:
        """Start the run; `echo` is the input, sent to clients that did not send it themselves."""
        return [
            RunStartedEvent(
                thread_id=self.segment.thread,
                run_id=self.segment.shown_run,
                protocol_version=PROTOCOL_VERSION,
                input=echo,
                metadata={OWN: {"run_id": self.segment.run, "response_id": self.segment.response or None}},
            )
        ]

    def encode(self, event: Stored) -> Events:
        """Return the stream events for an event of the conversation; for most there are none."""
        if event.run != self.segment.run or self.is_over:
            return []
        rule = _RULES.get(event.kind) or (RunEncoder._end if event.kind in ENDS else None)
        if rule is None and not event.kind.endswith(".stage"):
            return []
        fields = read(event.body)
        if not is_shown(event.kind, fields):
            return []
        made = (rule or RunEncoder._stage)(self, event, fields)
        for streamed in made:
            streamed.timestamp = streamed.timestamp or event.at // 1000
        return made

    def interrupt(self) -> Events:
        """End the segment with what it waits for, if anything."""
        if not self._interrupts:
            return []
        return self._finish(RunFinishedInterruptOutcome(interrupts=self.interrupts))

    def fail(self, error: SwitchboardError) -> Events:
        """End the segment with an error of the stream itself, while the run continues."""
        self.is_over = True
        return [RunErrorEvent(message=error.message, code=error.code)]

    def note(self, name: str, value: object) -> CustomEvent:
        """Create an event for something that the protocol has no event for."""
        return CustomEvent(name=f"{OWN}:{name}", value=value)

    def _finish(self, outcome: Any) -> Events:
        """Close what is open, then the run."""
        self.is_over = True
        closing: Events = [TextMessageEndEvent(message_id=id_) for id_ in self._texts]
        closing += [StepFinishedEvent(step_name=self._step)] if self._step else []
        self._texts, self._step = {}, ""
        thread, run, usage = self.segment.thread, self.segment.shown_run, list(self._usage.values()) or None
        return [*closing, RunFinishedEvent(thread_id=thread, run_id=run, outcome=outcome, usage=usage)]

    def _message_id(self, turn: object) -> str:
        return f"{self.segment.prefix}.{turn}"

    def _say(self, id_: str, text: str, *, is_whole: bool) -> Events:
        """Stream a piece of a message, or the part of the whole text that was not streamed yet."""
        if id_ in self._closed or (not text and id_ not in self._texts):
            return []
        made: Events = []
        if id_ not in self._texts:
            self._texts[id_] = ""
            made.append(TextMessageStartEvent(message_id=id_, role="assistant"))
        sent = self._texts[id_]
        piece = text if not is_whole else text[len(sent) :] if text.startswith(sent) else ""
        made += [TextMessageContentEvent(message_id=id_, delta=piece)] if piece else []
        if not is_whole:
            self._texts[id_] = sent + piece
            return made
        del self._texts[id_]
        self._closed.add(id_)
        return [*made, TextMessageEndEvent(message_id=id_)]

    def _call(self, fields: Fields) -> Events:
        """Stream a call, unless it was streamed before."""
        call = fields.tool_call
        if not call or call in self.calls:
            return []
        self.calls.add(call)
        arguments = fields.args_raw if fields.args_raw is not None else json.dumps(fields.args or {})
        parent = self._message_id(fields.turn) if fields.turn is not None else None
        return [
            ToolCallStartEvent(tool_call_id=call, tool_call_name=fields.name, parent_message_id=parent),
            ToolCallArgsEvent(tool_call_id=call, delta=clean_text(arguments)),
            ToolCallEndEvent(tool_call_id=call),
        ]

    def _result(self, fields: Fields, content: str) -> Events:
        call = fields.tool_call
        if call not in self.calls or call in self.ended:
            return []
        self.ended.add(call)
        shown = clean_text(content if len(content) <= MAX_RESULT else f"{content[:MAX_RESULT]}…")
        id_ = f"{self.segment.prefix}.{call}"
        return [ToolCallResultEvent(message_id=id_, tool_call_id=call, content=shown, role="tool")]

    def _go_to(self, agent: str) -> Events:
        """Stream a step for each agent that becomes active."""
        if not agent or agent == self._step:
            return []
        made: Events = [StepFinishedEvent(step_name=self._step)] if self._step else []
        self._step = agent
        return [*made, StepStartedEvent(step_name=agent)]

    def _started(self, _: Stored, fields: Fields) -> Events:
        was_waiting, self._waits = self._waits, False
        resumed: Events = [self.note("resumed", {})] if was_waiting else []
        return [*resumed, *self._go_to(fields.agent or self.segment.agent)]

    def _handed_off(self, _: Stored, fields: Fields) -> Events:
        return self._go_to(fields.to_agent)

    def _stage(self, _: Stored, fields: Fields) -> Events:
        return [StateSnapshotEvent(snapshot={"stage": fields.stage, "agent": fields.agent})]

    def _turned(self, _: Stored, fields: Fields) -> Events:
        spent = fields.usage or {}
        if not isinstance(spent.get("input_tokens"), int):
            return []
        total = self._usage.setdefault(fields.model, TokenUsage(model=fields.model or None))
        total.input_tokens = (total.input_tokens or 0) + spent["input_tokens"]
        total.output_tokens = (total.output_tokens or 0) + int(spent.get("output_tokens") or 0)
        total.total_tokens = total.input_tokens + total.output_tokens
        return []

    def _token(self, _: Stored, fields: Fields) -> Events:
        return self._say(self._message_id(fields.turn), clean_text(fields.text or ""), is_whole=False)

    def _output(self, _: Stored, fields: Fields) -> Events:
        return self._say(self._message_id(fields.turn), clean_text(fields.text or ""), is_whole=True)

    def _tool_step(self, _: Stored, fields: Fields) -> Events:
        if fields.origin == BUDGET:
            return []
        if fields.origin == response_ids.CLIENT_ORIGIN and fields.status is None and fields.tool_call:
            self._front_end_calls.append(fields)
            return []
        made = self._call(fields)
        if fields.status == "success":
            output = fields.output if fields.output is not None else fields.result_summary
            return [*made, *self._result(fields, as_text("" if output is None else output))]
        if fields.status in ("error", "timeout"):
            return [*made, *self._result(fields, f"The tool failed: {as_text(fields.error or fields.status)}")]
        return made

    def _approval_requested(self, _: Stored, fields: Fields) -> Events:
        self._interrupts[fields.approval_id] = interrupt_of(fields)
        return self._call(fields) if fields.origin != BUDGET and fields.parent_call is None else []

    def _approval_closed(self, event: Stored, fields: Fields) -> Events:
        self._interrupts.pop(fields.approval_id, None)
        made: Events = []
        if event.kind == "approval.decided" and fields.decision == "reject":
            made = self._result(fields, f"{NOT_RUN}rejected{f': {fields.message}' if fields.message else ''}")
        if event.kind == "approval.cancelled":
            return made  # the run ends
        return [*made, *self.interrupt()]  # it goes on waiting for the others

    def _refused(self, _: Stored, fields: Fields) -> Events:
        return [*self._call(fields), *self._result(fields, f"{NOT_RUN}{fields.reason or 'denied by policy'}")]

    def _waiting(self, _: Stored, fields: Fields) -> Events:
        if fields.reason == "approval" and (made := self.interrupt()):
            return made
        self._waits = True
        return [self.note("waiting", {"reason": fields.reason, "server": fields.server})]

    def _completed(self, event: Stored, fields: Fields) -> Events:
        """Stream the part of the complete answer that was not streamed; the stored answer is authoritative."""
        if not isinstance(items := json.loads(event.body).get("output"), list):
            return []
        spoken = {id_.rpartition(".")[2] for id_ in self._closed | {*self._texts}}
        known = {response_ids.message_item_id(self.segment.response, int(turn)) for turn in spoken if turn.isdecimal()}
        made: Events = []
        for item in items:
            if isinstance(item, dict) and item.get("type") == "message" and item.get("id") not in known:
                text = response_ids.text_of(item.get("content"))
                made += self._say(self._message_id(item.get("id")), clean_text(text), is_whole=True)
        calls = [item for item in items if isinstance(item, dict) and item.get("type") == "function_call"]
        for call, item in zip(reversed(self._front_end_calls), reversed(calls), strict=False):
            call.args_raw = str(item.get("arguments") or "")  # the record masks them, and shortens long ones
        return made

    def _end(self, event: Stored, fields: Fields) -> Events:
        if event.kind in ("run.done", "run.delivered"):
            calls = self._front_end_calls
            pending = [str(call.tool_call) for call in calls] or None
            ended = self._finish(RunFinishedSuccessOutcome(pending_tool_call_ids=pending))
            return [*(streamed for call in calls for streamed in self._call(call)), *ended]
        if event.kind == "run.cancelled":
            return self._finish(RunFinishedCancelledOutcome())
        self.is_over = True
        word, usage = event.kind.removeprefix("run."), list(self._usage.values()) or None
        message = as_text(fields.error or fields.reason or f"the run {word}")
        return [RunErrorEvent(message=clean_text(message), code=fields.reason or word, usage=usage)]


def read(body: str) -> Fields:
    """Parse an event's body; a lone surrogate, as some models stream them, becomes a question mark."""
    try:
        return _decoder.decode(body)
    except msgspec.DecodeError:
        try:
            return _decoder.decode(msgspec.json.encode(payload.decoded(body)))
        except (ValueError, msgspec.ValidationError):
            return Fields()


def interrupt_of(fields: Fields) -> Interrupt:
    """Return an approval request in the protocol's form: its text, the call, and the possible answers. The metadata
    names a call that is not streamed, since it is inside another."""
    is_call = fields.origin != BUDGET
    decisions = fields.decisions or (["approve", "edit", "reject", "respond"] if is_call else ["approve", "reject"])
    answer: dict[str, Any] = {"approved": {"type": "boolean"}, "message": {"type": "string"}}
    answer |= {"editedArgs": {"type": "object"}} if "edit" in decisions else {}
    answer |= {"output": {"type": "string"}} if "respond" in decisions else {}
    is_streamed_call = is_call and fields.parent_call is None
    arguments = fields.args_raw if fields.args is None else fields.args
    unstreamed = {} if is_streamed_call or not is_call else {"name": fields.name, "arguments": arguments}
    words = f"{fields.agent or 'The agent'} wants to call {fields.name}" if is_call else (fields.why or fields.name)
    why = f": {fields.why}" if is_call and fields.why else ""
    return Interrupt(
        id=fields.approval_id,
        reason="tool_call" if is_streamed_call and fields.tool_call else f"{OWN}:{'approval' if is_call else BUDGET}",
        message=clean_text(f"{words}{why}"),
        tool_call_id=fields.tool_call if is_streamed_call else None,
        response_schema={"type": "object", "properties": answer, "required": ["approved"]},
        expires_at=fields.deadline,
        metadata={OWN: {"decisions": decisions, **unstreamed}},
    )


_RULES: dict[str, Callable[[RunEncoder, Stored, Fields], Events]] = {
    "run.started": RunEncoder._started,
    "run.waiting": RunEncoder._waiting,
    "agent.handoff": RunEncoder._handed_off,
    "model.turn": RunEncoder._turned,
    "token": RunEncoder._token,
    "output": RunEncoder._output,
    "tool_step": RunEncoder._tool_step,
    "policy.refused": RunEncoder._refused,
    "approval.requested": RunEncoder._approval_requested,
    "approval.decided": RunEncoder._approval_closed,
    "approval.expired": RunEncoder._approval_closed,
    "approval.cancelled": RunEncoder._approval_closed,
    "response.completed": RunEncoder._completed,
}


def is_streamed(kind: str) -> bool:
    """Return whether events of this type produce stream events."""
    return kind in _RULES or kind in ENDS or kind.endswith(".stage")


def is_shown(kind: str, fields: Fields) -> bool:
    """Return whether an event is of the run itself, not of one inside a tool, or a decision that it waits for."""
    return fields.parent_call is None or kind.startswith("approval.")


def as_sse(event: BaseEvent, cursor: str = "") -> bytes:
    """Encode an event for a stream; `cursor` is the position after it."""
    place = f"id: {cursor}\n" if cursor else ""
    return f"{place}data: {event.model_dump_json(by_alias=True)}\n\n".encode()
