"""Make the payloads of stream events and envelopes of what was read of a span.

Each has an id made of what it tells, so that the record keeps it once however often and in whatever order it is sent:

| what | id made of |
|---|---|
| a message | its role and words, and its ordinal among equal ones in its history, or among its traces' answers |
| a tool call | the id that the model gave it, where that is long enough to be the only one; else trace and span |
| one whose id is counted (`functions.search:0`) | the id, name and arguments, and its ordinal among equal ones |
| an agent's run, an answer of a model, a handoff | trace and span |

A call is two events, its start and its end, always both once it has ended: whichever of them came before is the
same event, so a start that comes late opens nothing.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from conversations.core.ids import text_digest
from conversations.core.json_size import fits, fitting_length
from conversations.events.payload import ParsedPayload
from conversations.telemetry.message_shapes import MAX_VALUE, decoded, encoded
from conversations.telemetry.occurrences import Occurrences
from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import NOTHING_SPENT, Call, Message, Result, SpanFacts, Usage

SMALL = 8 << 10  # characters of a message whose digest is remembered
SURE_BYTES = 64 << 10  # of JSON that every event has room for
SURE = 9  # characters from which on a call's id is taken for the only one of its kind; `call_1` is none
_COUNTED = re.compile(r"\D+[:_.-]\d{1,4}")  # ids that begin again with each history
EventPlace = tuple[str, str]  # a conversation, and an event's id in it
Body = dict[str, Any]  # a payload: any JSON
Uses = dict[tuple[str, ...], int]  # how often: a message by its role and text, a call by its digest
_encode = msgspec.json.Encoder().encode
_from_json = msgspec.json.decode


class FiledUnder(NamedTuple):
    """The conversation and agent of a span."""

    conversation: str
    agent: str


class StepPayload(ParsedPayload, kw_only=True, gc=False, omit_defaults=True):
    """A payload as it is written: what the record reads, and what is only shown. Raw JSON of what may be any."""

    attempt: int | None = None
    worker: str | None = None
    from_agent: str | None = None
    to_agent: str | None = None
    model: str | None = None
    usage: Body | None = None
    reason: str | None = None
    reasoning: str | None = None
    created_at: str | None = ""  # None, which is written: not known
    trace_id: str = ""
    span_id: str = ""


class Step(msgspec.Struct, gc=False):
    """A payload to store, when it happened (ns since 1970), and its conversation."""

    at: int
    conversation: str
    id: str
    payload: StepPayload

    @property
    def body(self) -> Body:
        """The payload by its fields, without those that are not written."""
        fields = {name: getattr(self.payload, name) for name in StepPayload.__struct_fields__}
        written = {name: value for name, value in fields.items() if value is not None or name == "created_at"}
        return {name: _from_json(value) if isinstance(value, msgspec.Raw) else value for name, value in written.items()}


class FreshSteps:
    """The events of a request that are not known to be stored, each at its earliest time."""

    def __init__(self, is_stored: Callable[[EventPlace], bool], occurrences: Occurrences) -> None:
        self._is_stored, self.occurrences = is_stored, occurrences
        self.by_id: dict[EventPlace, Step] = {}

    def add(self, at: int, span: Span, conversation: str, key: str) -> StepPayload | None:
        """Add an event and return its payload, to be filled in; None if it is stored, or already present with an
        earlier time."""
        place = conversation, key
        known = self.by_id.get(place)
        if known.at <= at if known is not None else self._is_stored(place):
            return None
        payload = StepPayload(
            id=key, conversation_id=conversation, created_at=_moment(at), trace_id=span.trace_id, span_id=span.span_id
        )
        self.by_id[place] = Step(at, conversation, key, payload)
        return payload


def add_steps(span: Span, facts: SpanFacts, place: FiledUnder, fresh: FreshSteps) -> None:
    """Add the events of a span in order, without those that are already known."""
    builder = _SpanEventBuilder(span, place, fresh)
    if facts.kind == "agent":
        builder.begin_run()
    if facts.kind == "handoff":
        builder.hand_over(*facts.handoff)
    if span.is_pending:
        if facts.kind == "tool" and facts.call:
            builder.begin_call(facts.call, *builder.of_span(facts.call), span.start)
        return
    if facts.inputs or facts.outputs:
        builder.say_all(facts)
    if facts.kind == "tool" and facts.call:
        builder.call(facts.call, facts.output)
    if facts.kind == "model" and not span.is_log:
        builder.answer(facts)
    if facts.kind == "agent":
        builder.end_run()


class _SpanEventBuilder:
    """Builds the events of one span."""

    __slots__ = ("_agent", "_conversation", "_fresh", "_span")

    def __init__(self, span: Span, place: FiledUnder, fresh: FreshSteps) -> None:
        self._span, self._fresh = span, fresh
        self._conversation, self._agent = place

    def begin_run(self) -> None:
        """Add the start of an agent's run."""
        span = self._span
        if (run := self._of_span("run.started", span.start)) is not None:
            run.run_id, run.attempt = span.span_id, 1
            run.worker = str(span.source.resource.get("service.name") or span.source.scope)

    def end_run(self) -> None:
        """Add the end of the run."""
        span = self._span
        run = self._of_span("run.done" if span.error is None else "run.failed", span.end)
        if run is None:
            return
        run.run_id, run.duration_ms = span.span_id, self._duration_ms()
        if span.error is not None:
            run.reason, run.error = "error", _json(cut(span.error))

    def hand_over(self, giver: str, taker: str) -> None:
        """Add a handoff."""
        if (handoff := self._of_span("agent.handoff", self._span.end)) is not None:
            handoff.agent, handoff.from_agent, handoff.to_agent = giver, giver, taker

    def answer(self, facts: SpanFacts) -> None:
        """Add a model call with its usage."""
        if (answer := self._of_span("model.call", self._span.end)) is None:
            return
        answer.model, answer.duration_ms = facts.model, self._duration_ms()
        if facts.usage is not NOTHING_SPENT:
            answer.usage = _usage(facts.usage)
        if self._span.error is not None:
            answer.error = _json(cut(self._span.error))

    def say_all(self, facts: SpanFacts) -> None:
        """Add the messages of a history and of an answer, and those calls in them that have no span of their own."""
        uses: Uses = {}
        calls: dict[str, Call] = {}
        has_own_spans = facts.has_tool_spans or facts.kind == "tool"
        for messages, at in ((facts.inputs, self._span.start), (facts.outputs, self._span.end)):
            is_answer = messages is facts.outputs and facts.kind == "model"
            for message in messages:
                if message.text:
                    self._say(message, uses, at, is_answer=is_answer)
                if has_own_spans:
                    continue
                for call in message.calls:
                    calls[call.id or call.name] = call
                    self.begin_call(call, *self._of_message(call, uses), at)
                for result in message.results:
                    self._end_told(result, calls, uses, at)

    def call(self, call: Call, output: Any) -> None:
        """Add the call that a span stands for, with its end."""
        span = self._span
        key, call_id = self.of_span(call)
        self.begin_call(call, key, call_id, span.start)
        end = self._end_call(call.name, key, call_id, output, span.end)
        if end is not None:
            end.duration_ms = self._duration_ms()
            if span.error is not None:
                end.status, end.error = "error", _json(cut(span.error))

    def begin_call(self, call: Call, key: str, call_id: str, at: int) -> None:
        """Add the start of a tool call."""
        start = self._step("tool_step", at, digest(key, "start"))
        if start is None:
            return
        start.name, start.status, start.tool_call_id = call.name, "start", call_id
        args = call.args
        if isinstance(args, dict):
            start.args = fitting(args)
        elif args is not None:
            start.args_raw = cut(args if isinstance(args, str) else encoded(args))

    def of_span(self, call: Call) -> tuple[str, str]:
        """Return the key of a span's call, and the id that joins its events."""
        if _is_unique(call.id):
            return digest("call", call.id), call.id
        if len(call.id) >= SURE:
            content = _content_of(call)
            return digest(content, str(self._number_of(content, 1))), call.id
        return digest("call", self._span.trace_id, self._span.span_id), call.id or self._span.span_id

    def _of_message(self, call: Call, uses: Uses) -> tuple[str, str]:
        if _is_unique(call.id):
            return digest("call", call.id), call.id
        content = _content_of(call)
        uses[content,] = nth = uses.get((content,), 0) + 1
        key = digest(content, str(nth))
        return key, call.id or key[:16]

    def _end_told(self, result: Result, calls: dict[str, Call], uses: Uses, at: int) -> None:
        """Add the end of a call in the history; if its start was not there, add that too."""
        call = calls.get(result.id)
        if call is None:
            call = Call(result.id, "tool", None)
            self.begin_call(call, *self._of_message(call, uses), at)
        elif not _is_unique(call.id):
            content = _content_of(call)
            uses[content,] = uses.get((content,), 0) - 1
        self._end_call(call.name, *self._of_message(call, uses), result.output, at)

    def _end_call(self, name: str, key: str, call_id: str, output: Any, at: int) -> StepPayload | None:
        if (end := self._step("tool_step", at, digest(key, "end"))) is not None:
            end.name, end.status, end.tool_call_id = name, "success", call_id
            end.output = fitting(output)
        return end

    def _say(self, message: Message, uses: Uses, at: int, *, is_answer: bool) -> None:
        role, text = words = message.role, message.text
        uses[words] = nth = uses.get(words, 0) + 1
        content = (_digest_again if len(text) <= SMALL else digest)(role, text)
        if is_answer and role == "assistant":
            nth = self._number_of(content, nth)
        if (payload := self._fresh.add(at, self._span, self._conversation, _message_key(content, nth))) is None:
            return
        if role == "assistant":
            payload.event, payload.agent, payload.text = "output", self._agent, cut(text)
            if message.reasoning:
                payload.reasoning = cut(message.reasoning)
        else:
            payload.type = "control" if role == "system" else "message"
            payload.sender, payload.recipient, payload.content = role, f"chat:{self._conversation}", cut(text)

    def _number_of(self, content: str, nth: int) -> int:
        return self._fresh.occurrences.number_of((self._conversation, content), nth, self._span.trace_id)

    def _of_span(self, kind: str, at: int) -> StepPayload | None:
        return self._step(kind, at, digest(kind, self._span.trace_id, self._span.span_id))

    def _step(self, kind: str, at: int, key: str) -> StepPayload | None:
        if (payload := self._fresh.add(at, self._span, self._conversation, key)) is not None:
            payload.event, payload.agent = kind, self._agent
        return payload

    def _duration_ms(self) -> float | None:
        took = (self._span.end - self._span.start) / 1e6
        return round(took, 3) if self._span.start > 0 and 0 <= took <= 1e12 else None


def digest(*parts: str) -> str:
    """Return an id derived from texts."""
    return text_digest("\n".join(parts))[:32]


def _is_unique(call_id: str) -> bool:
    return len(call_id) >= SURE and not _COUNTED.fullmatch(call_id)


def _content_of(call: Call) -> str:
    args = decoded(call.args) if len(call.id) >= SURE else call.args
    return digest("told", call.id, call.name, encoded(args))


_digest_again = lru_cache(4096)(digest)  # of messages, which each later history repeats


@lru_cache(4096)
def _message_key(content: str, nth: int) -> str:
    return digest("message", content, str(nth))


def cut(text: str) -> str:
    """Shorten a text to what one event can hold, beside another text."""
    if len(text) <= MAX_VALUE and fits(text):
        return text
    most = fitting_length(text[:MAX_VALUE])
    return f"{text[:most]}… [{len(text):,} characters]"


def fitting(value: Any) -> Any:  # any JSON
    """Return the JSON of a value, or of its beginning if one event cannot hold it."""
    if value is None:
        return None
    if isinstance(value, str):
        return _json(cut(value))
    written = _json(value)
    if isinstance(written, msgspec.Raw) and len(written) <= SURE_BYTES:
        return written
    text = encoded(value)
    return written if len(text) <= MAX_VALUE and fits(text) else _json(cut(text))


def _json(value: Any) -> Any:  # Raw
    """Return the JSON of a value; what has none stays as it is, and its event is refused when it is written."""
    try:
        return msgspec.Raw(_encode(value))
    except (ValueError, OverflowError, RecursionError):
        return value


def _usage(usage: Usage) -> Body | None:
    if not usage.input and not usage.output:
        return None
    return {"input_tokens": usage.input, "output_tokens": usage.output} | usage.of_cache


def _moment(at: int) -> str | None:
    """Return a time (ns since 1970) in µs as text; None for none, or one after the year 9999."""
    if at <= 0:
        return None
    second, micros = divmod((at + 500) // 1_000, 1_000_000)
    if (begun := _second(second)) is None:
        return None
    return f"{begun}.{micros:06d}+00:00" if micros else f"{begun}+00:00"


@lru_cache(1024)
def _second(at: int) -> str | None:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()[:19]
    except (ValueError, OverflowError, OSError):
        return None
