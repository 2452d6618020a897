"""A remote agent as a model of the SDK: each of its runs is one answer. What it says is streamed as it comes; where
it is interrupted, the answer calls `remote_action`, which waits for a person; the next answer goes on from there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, TypeVar, cast

from ag_ui.core import AssistantMessage, BaseEvent, EventType, Interrupt, TokenUsage
from agents import Model, ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseStreamEvent

from agents_app.agui import event_reader, http_stream, interrupt_decisions, remote_claims, remote_input
from agents_app.agui.http_stream import RemoteFailed
from agents_app.answer_events import AnswerEvents
from agents_app.run_scope import current_scope
from conversations.core.json_values import parse_object
from conversations.core.outbound_address import AllowList
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.events import payload
from conversations.events.payload import clean_text

CONNECT_S = 10.0
WIRE = 8  # bytes of the stream for one of the answer
CLAIMED = (  # types that are kept as they came, each as an event of its own kind
    EventType.STATE_SNAPSHOT, EventType.STATE_DELTA, EventType.ACTIVITY_SNAPSHOT, EventType.ACTIVITY_DELTA,
    EventType.CUSTOM, EventType.RAW, EventType.STEP_STARTED, EventType.STEP_FINISHED,
)  # fmt: skip
MAX_INTERRUPTS = 100  # of one answer: each is a request for a person
T = TypeVar("T")


class RemoteModel(Model):
    """Speaks for one remote agent. It keeps nothing between answers, so one serves any number of runs."""

    def __init__(self, remote: RemoteAgent, allowed: AllowList, *, silence_s: float, most_bytes: int) -> None:
        self.remote, self.model = remote, f"AG-UI: {remote.url.partition('?')[0]}"[:200]
        self._allowed, self._silence_s, self._most = allowed, silence_s, most_bytes * WIRE

    async def get_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *more: Any, **named: Any
    ) -> ModelResponse:
        """Return whole."""
        stream = self.stream_response(system_instructions, input, *more, **named)
        events = [event async for event in stream]
        response = cast(Any, events[-1]).response
        return ModelResponse(output=response.output, usage=Usage(requests=1), response_id=response.id)

    async def stream_response(
        self, system_instructions: str | None, input: str | list[TResponseInputItem], *more: Any, **named: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Return in pieces. Raises RemoteFailed."""
        items: list[Any] = [{"role": "user", "content": input}] if isinstance(input, str) else list(input)
        scope = current_scope()
        thread, run = (scope.conversation, scope.run) if scope is not None else ("", "")
        run_id, sent = await _in_thread(partial(self._input, thread, run, items, system_instructions))
        remote_run, answer = _RemoteRun(self.remote.name), AnswerEvents(self.model)
        for opening in answer.begin():
            yield opening
        texts: list[str] = []  # what is not in the answer yet
        async for event in event_reader.events_of(self._pieces(sent), most=self._most):
            texts += remote_run.on_event(event)
            if remote_run.run_id != run_id:
                continue  # an earlier run if the one that was asked for follows; else the answer, under ids of its own
            if event.type == EventType.RUN_STARTED:
                texts = []
                remote_run.forget_earlier()
            for streamed in await _add_to_answer(remote_run, texts, answer, thread):
                yield streamed
            texts = []
            if remote_run.is_over:
                break
        if not remote_run.is_over:
            raise RemoteFailed("its stream ended before the run")
        for streamed in await _add_to_answer(remote_run, texts, answer, thread):
            yield streamed
        if remote_run.is_cancelled:
            raise RemoteFailed("its run was stopped on its server")
        for closing in answer.end(
            [(remote_input.ACTION, arguments) for arguments in remote_run.actions], remote_run.usage
        ):
            yield closing

    def _input(self, thread: str, run: str, items: list[Any], instructions: str | None) -> tuple[str, bytes]:
        """Make the body of the request, and the id of its run. Sync."""
        answered = remote_input.answered_last(items)
        answers = remote_input.resume_of(answered, interrupt_decisions.decisions_about(answered, run))
        state = remote_claims.latest_state(thread, self.remote.name) if thread else None
        whole = remote_input.input_of(thread or "thread", items, instructions, answers, state)
        return whole.run_id, whole.model_dump_json(by_alias=True).encode()

    def _pieces(self, body: bytes) -> AsyncIterator[bytes]:
        headers = {"Authorization": f"Bearer {self.remote.token}"} if self.remote.token else {}
        return http_stream.post(
            self.remote.url, headers, body, allowed=self._allowed, connect_s=CONNECT_S, silence_s=self._silence_s
        )


class _RemoteRun:
    """One run there, as far as it was reported. Raises RemoteFailed for a broken protocol, and for its errors."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._has_begun = self._has_said = False
        self._messages: dict[str, list[str]] = {}  # open; what of each waits for those before it to end
        self._closed: set[str] = set()  # of those that wait
        self._snapshot = ""  # the last answer, as a snapshot of all messages tells it
        self.run_id = ""
        self._calls: dict[str, tuple[str, list[str]]] = {}  # name, pieces of arguments
        self._ended_calls: set[str] = set()
        self.claims: list[dict[str, Any]] = []
        self.actions: list[dict[str, Any]] = []
        self.usage: tuple[int, int] | None = None
        self.is_over = self.is_cancelled = False

    def on_event(self, event: Any) -> list[str]:
        """Return the text that an event says."""
        kind = event.type
        if kind == EventType.RUN_ERROR:
            code = f" ({event.code})" if event.code else ""
            raise RemoteFailed(f"{clean_text(event.message)[:2000]}{code}")
        if not self._has_begun and kind != EventType.RUN_STARTED:
            raise RemoteFailed(f"its stream began with {kind.value}")
        if (rule := _RULES.get(kind)) is not None:
            return rule(self, event)
        if kind in CLAIMED:
            self._claim(event)
        return []

    def _started(self, event: Any) -> list[str]:
        if self._has_begun and not self.is_over:
            raise RemoteFailed("it began a run within a run")
        self._has_begun, self.is_over, self.is_cancelled, self.run_id = True, False, False, event.run_id
        self.actions = []
        return []

    def forget_earlier(self) -> None:
        """Forget what the runs before the one that has begun said and claimed."""
        self._has_said, self._snapshot, self.claims, self.usage = False, "", [], None

    def _finished(self, event: Any) -> list[str]:
        self.is_over = True
        outcome = event.outcome
        self.is_cancelled = outcome is not None and outcome.type == "cancelled"
        if outcome is not None and outcome.type == "interrupt":
            self.actions = self._actions(outcome.interrupts)
        self.usage = _total(event.usage or [])
        unsaid = self._close_all()
        return unsaid if self._has_said or not self._snapshot else self._speak(self._snapshot)

    def _snapshot_told(self, event: Any) -> list[str]:
        last = event.messages[-1] if event.messages else None
        self._snapshot = (last.content or "") if isinstance(last, AssistantMessage) else ""
        return []

    def _text_started(self, event: Any) -> list[str]:
        if event.message_id in self._messages:
            raise RemoteFailed("it opened a message that was already open")
        return self._open(event.message_id)

    def _text(self, event: Any) -> list[str]:
        if event.message_id not in self._messages:
            raise RemoteFailed("it continued a message that was not open")
        return self._piece(event.message_id, event.delta)

    def _text_ended(self, event: Any) -> list[str]:
        if event.message_id not in self._messages:
            raise RemoteFailed("it closed a message that was not open")
        return self._close(event.message_id)

    def _text_chunk(self, event: Any) -> list[str]:
        newest = event.message_id or next(reversed(self._messages), None)
        if newest is None:
            raise RemoteFailed("it continued a message that was not open")
        begun = [] if newest in self._messages else [*self._close_all(), *self._open(newest)]
        return [*begun, *self._piece(newest, event.delta or "")]

    def _open(self, id_: str) -> list[str]:
        """Open a message; of those that are open at once the first is said, the others wait for it."""
        self._messages[id_] = []
        self._closed.discard(id_)
        return ["\n\n"] if self._has_said and len(self._messages) == 1 else []

    def _piece(self, id_: str, text: str) -> list[str]:
        if id_ == next(iter(self._messages)):
            return self._speak(text)
        self._messages[id_].append(text)
        return []

    def _close(self, id_: str) -> list[str]:
        """Close a message; say what waited for its end."""
        if id_ != next(iter(self._messages)):
            self._closed.add(id_)
            return []
        del self._messages[id_]
        pieces: list[str] = []
        while self._messages:
            first = next(iter(self._messages))
            waited, self._messages[first] = "".join(self._messages[first]), []
            pieces += ["\n\n"] if self._has_said else []
            pieces += self._speak(waited)
            if first not in self._closed:
                break
            del self._messages[first]
        return pieces

    def _close_all(self) -> list[str]:
        """Close the messages that are open, in order: with the first may go those behind it."""
        pieces: list[str] = []
        while self._messages:
            pieces += self._close(next(iter(self._messages)))
        return pieces

    def _speak(self, text: str) -> list[str]:
        self._has_said = self._has_said or bool(text)
        return [clean_text(text)] if text else []

    def _call_started(self, event: Any) -> list[str]:
        self._calls[event.tool_call_id] = event.tool_call_name, []
        self._ended_calls.discard(event.tool_call_id)
        return []

    def _call_continued(self, event: Any) -> list[str]:
        self._pieces_of(event.tool_call_id).append(event.delta)
        return []

    def _call_ended(self, event: Any) -> list[str]:
        if event.tool_call_id in self._ended_calls:
            raise RemoteFailed("it ended a tool call that had already ended")
        self._ended_calls.add(event.tool_call_id)
        self._step(event.tool_call_id, {"status": "start"})
        return []

    def _call_chunk(self, event: Any) -> list[str]:
        if event.tool_call_id is not None and event.tool_call_name is not None:
            self._calls.setdefault(event.tool_call_id, (event.tool_call_name, []))
        newest = event.tool_call_id or next(reversed(self._calls), "")
        self._pieces_of(newest).append(event.delta or "")
        return []

    def _call_result(self, event: Any) -> list[str]:
        content = event.content if isinstance(event.content, str) else [part.model_dump() for part in event.content]
        self._step(event.tool_call_id, {"status": "success", "output": content})
        return []

    def _pieces_of(self, call: str) -> list[str]:
        if call not in self._calls:
            raise RemoteFailed("it continued a tool call that was not open")
        return self._calls[call][1]

    def _step(self, call: str, fields: dict[str, Any]) -> None:
        name, pieces = self._calls.get(call, ("", []))
        body = {"event": "tool_step", "agent": self._agent, "name": name or "tool", "tool_call_id": call}
        arguments = {"args_raw": "".join(pieces)} if fields["status"] == "start" else {}
        self.claims.append({**body, "origin": "ag-ui", **arguments, **fields})

    def _claim(self, event: BaseEvent) -> None:
        fields = event.model_dump(by_alias=True, mode="json", exclude={"raw_event"})
        kind = str(fields.pop("type")).lower()
        kept_fields = {name: value for name, value in fields.items() if name not in ("event", "id", "conversation_id")}
        kept_fields |= {"raw": fields["event"]} if "event" in fields else {}
        self.claims.append({**kept_fields, "event": f"agui.{kind}", "agent": self._agent})

    def _actions(self, interrupts: list[Interrupt]) -> list[dict[str, Any]]:
        size = sum(len(piece) for interrupt in interrupts for piece in self._call_of(interrupt)[1])
        if len(interrupts) > MAX_INTERRUPTS or size > payload.MAX_BYTES:
            most = f"{MAX_INTERRUPTS} interrupts with {payload.MAX_BYTES:,} characters of arguments"
            raise RemoteFailed(f"a run must end with at most {most}")
        return [self._action(interrupt) for interrupt in interrupts]

    def _call_of(self, interrupt: Interrupt) -> tuple[str, list[str]]:
        return self._calls.get(interrupt.tool_call_id or "", ("", []))

    def _action(self, interrupt: Interrupt) -> dict[str, Any]:
        """Word an interrupt as the arguments of the call that asks about it."""
        name, pieces = self._call_of(interrupt)
        action: dict[str, Any] = {"interrupt": interrupt.id, "reason": interrupt.reason}
        action |= {"message": clean_text(interrupt.message)} if interrupt.message else {}
        arguments = parse_object("".join(pieces)) or {}
        return action | ({"tool": name, "arguments": arguments} if name else {})


def _total(usage: list[TokenUsage]) -> tuple[int, int] | None:
    if not usage or any(entry.input_tokens is None or entry.output_tokens is None for entry in usage):
        return None
    return sum(entry.input_tokens or 0 for entry in usage), sum(entry.output_tokens or 0 for entry in usage)


async def _add_to_answer(
    remote_run: _RemoteRun, texts: list[str], answer: AnswerEvents, thread: str
) -> list[TResponseStreamEvent]:
    """Store what a run claimed, and return its texts as events of the answer."""
    if remote_run.claims and thread:
        claims, remote_run.claims = remote_run.claims, []
        await _in_thread(partial(remote_claims.store, thread, claims))
    return [streamed for text in texts for streamed in answer.say(text)]


async def _in_thread(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)  # the worker's, for databases


_RULES: dict[EventType, Callable[[_RemoteRun, Any], list[str]]] = {
    EventType.RUN_STARTED: _RemoteRun._started,
    EventType.RUN_FINISHED: _RemoteRun._finished,
    EventType.MESSAGES_SNAPSHOT: _RemoteRun._snapshot_told,
    EventType.TEXT_MESSAGE_START: _RemoteRun._text_started,
    EventType.TEXT_MESSAGE_CONTENT: _RemoteRun._text,
    EventType.TEXT_MESSAGE_END: _RemoteRun._text_ended,
    EventType.TEXT_MESSAGE_CHUNK: _RemoteRun._text_chunk,
    EventType.TOOL_CALL_START: _RemoteRun._call_started,
    EventType.TOOL_CALL_ARGS: _RemoteRun._call_continued,
    EventType.TOOL_CALL_END: _RemoteRun._call_ended,
    EventType.TOOL_CALL_CHUNK: _RemoteRun._call_chunk,
    EventType.TOOL_CALL_RESULT: _RemoteRun._call_result,
}
