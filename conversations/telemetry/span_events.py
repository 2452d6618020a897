"""Make the payloads of stream events and envelopes of what was read of a span.

Each has an id made of what it tells, so that the record keeps it once however often and in whatever order it is sent:

| what | id made of |
|---|---|
| a message | its role and words, and the how-manieth of these words it is in its history |
| a tool call | the id that the model gave it, where that is long enough to be the only one; else trace and span |
| an agent's run, an answer of a model, a handoff | trace and span |

A call is told by two events, its start and its end, always both once it has ended: whichever of them came before is the
same event, so a start that comes late opens nothing.
"""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from conversations.core.json_size import fits, fitting_length
from conversations.telemetry.message_shapes import MAX_VALUE, encoded
from conversations.telemetry.reading import NOTHING_SPENT, Call, Message, Result, SpanReading, Usage
from conversations.telemetry.span import Span

SMALL = 8 << 10  # characters of a message whose digest is remembered
SURE = 9  # characters from which on a call's id is taken for the only one of its kind; `call_1` is none
Body = dict[str, Any]  # a payload: any JSON
Uses = dict[tuple[str, ...], int]  # how often: a message by its role and text, a call by its digest


IsKnown = Callable[[str, str, int], bool]  # whether an event of a conversation need not be told, at this time


class FiledUnder(NamedTuple):
    """The conversation and agent of a span."""

    conversation: str
    agent: str


class Step(msgspec.Struct, gc=False):
    """A payload to store, when it happened (ns since 1970), and its conversation."""

    at: int
    conversation: str
    id: str
    body: Body


def steps(span: Span, reading: SpanReading, place: FiledUnder, is_known: IsKnown) -> list[Step]:
    """Return the events of a span in order, without messages that are already known."""
    builder = _SpanEventBuilder(span, place, is_known)
    if reading.kind == "agent":
        builder.begin_run()
    if reading.kind == "handoff":
        builder.hand_over(*reading.handoff)
    if span.is_pending:
        if reading.kind == "tool" and reading.call:
            builder.begin_call(reading.call, *builder.of_span(reading.call), span.start)
        return builder.steps
    if reading.inputs or reading.outputs:
        builder.say_all(reading)
    if reading.kind == "tool" and reading.call:
        builder.call(reading.call, reading.output)
    if reading.kind == "model" and not span.is_log:
        builder.answer(reading)
    if reading.kind == "agent":
        builder.end_run()
    return builder.steps


class _SpanEventBuilder:
    """Builds the events of one span."""

    __slots__ = ("_agent", "_conversation", "_is_known", "_span", "_trace", "steps")

    def __init__(self, span: Span, place: FiledUnder, is_known: IsKnown) -> None:
        self._span, self._is_known = span, is_known
        self._conversation, self._agent = place
        self._trace = f"{span.trace_id}\n{span.span_id}"
        self.steps: list[Step] = []

    def begin_run(self) -> None:
        """Add the start of an agent's run."""
        span = self._span
        worker = str(span.source.resource.get("service.name") or span.source.scope)
        self._of_span("run.started", span.start, {"run_id": span.span_id, "attempt": 1, "worker": worker})

    def end_run(self) -> None:
        """Add the end of the run."""
        span, fields = self._span, self._timed({"run_id": self._span.span_id})
        if span.error is None:
            self._of_span("run.done", span.end, fields)
        else:
            self._of_span("run.failed", span.end, {**fields, "reason": "error", "error": cut(span.error)})

    def hand_over(self, giver: str, taker: str) -> None:
        """Add a handoff."""
        fields = {"agent": giver, "from_agent": giver, "to_agent": taker}
        self._of_span("agent.handoff", self._span.end, fields)

    def answer(self, reading: SpanReading) -> None:
        """Add a model call with its usage."""
        fields: Body = {"model": reading.model}
        if reading.usage is not NOTHING_SPENT and (usage := _usage(reading.usage)):
            fields["usage"] = usage
        self._timed(fields)
        if self._span.error is not None:
            fields["error"] = cut(self._span.error)
        self._of_span("model.call", self._span.end, fields)

    def say_all(self, reading: SpanReading) -> None:
        """Add the messages of a history and of an answer, and those calls in them that have no span of their own."""
        uses: Uses = {}
        calls: dict[str, Call] = {}
        has_own_spans = reading.has_tool_spans or reading.kind == "tool"
        for messages, at in ((reading.inputs, self._span.start), (reading.outputs, self._span.end)):
            for message in messages:
                if message.text:
                    self._say(message, uses, at)
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
        ending: Body = {"status": "success"} if span.error is None else {"status": "error", "error": cut(span.error)}
        self._end_call(call.name, key, call_id, output, span.end, self._timed(ending))

    def begin_call(self, call: Call, key: str, call_id: str, at: int) -> None:
        """Add the start of a tool call."""
        fields: Body = {"name": call.name, "status": "start", "tool_call_id": call_id}
        args = call.args
        if isinstance(args, dict):
            fields["args"] = fitting(args)
        elif args is not None:
            fields["args_raw"] = cut(args if isinstance(args, str) else encoded(args))
        self._step("tool_step", at, digest(key, "start"), fields)

    def of_span(self, call: Call) -> tuple[str, str]:
        """Return the key of a span's call, and the id that joins its events."""
        if len(call.id) >= SURE:
            return digest("call", call.id), call.id
        return digest("call", self._trace), call.id or self._span.span_id

    def _of_message(self, call: Call, uses: Uses) -> tuple[str, str]:
        if len(call.id) >= SURE:
            return digest("call", call.id), call.id
        content = digest("told", call.id, call.name, encoded(call.args))
        uses[content,] = nth = uses.get((content,), 0) + 1
        key = digest(content, str(nth))
        return key, call.id or key[:16]

    def _end_told(self, result: Result, calls: dict[str, Call], uses: Uses, at: int) -> None:
        """Add the end of a call in the history; if its start was not there, add that too."""
        call = calls.get(result.id)
        if call is None:
            call = Call(result.id, "tool", None)
            self.begin_call(call, *self._of_message(call, uses), at)
        elif len(call.id) < SURE:
            content = digest("told", call.id, call.name, encoded(call.args))
            uses[content,] = uses.get((content,), 0) - 1
        key, call_id = self._of_message(call, uses)
        self._end_call(call.name, key, call_id, result.output, at, {"status": "success"})

    def _end_call(self, name: str, key: str, call_id: str, output: Any, at: int, ending: Body) -> None:
        fields: Body = {"name": name, "tool_call_id": call_id}
        if (output := fitting(output)) is not None:
            fields["output"] = output
        self._step("tool_step", at, digest(key, "end"), {**fields, **ending})

    def _say(self, message: Message, uses: Uses, at: int) -> None:
        role, text = words = message.role, message.text
        uses[words] = nth = uses.get(words, 0) + 1
        key = (_key_again if len(text) <= SMALL else _key_of)(role, text, nth)
        if self._is_known(self._conversation, key, at):
            return
        body: Body = {"id": key, "conversation_id": self._conversation}
        if role == "assistant":
            body["event"], body["agent"], body["text"] = "output", self._agent, cut(text)
            if message.reasoning:
                body["reasoning"] = cut(message.reasoning)
        else:
            body["type"] = "control" if role == "system" else "message"
            body["sender"], body["recipient"], body["content"] = role, f"chat:{self._conversation}", cut(text)
        self._add(at, key, body)

    def _of_span(self, kind: str, at: int, fields: Body) -> None:
        self._step(kind, at, digest(kind, self._trace), fields)

    def _step(self, kind: str, at: int, key: str, fields: Body) -> None:
        body = {"id": key, "conversation_id": self._conversation, "event": kind, "agent": self._agent, **fields}
        self._add(at, key, body)

    def _add(self, at: int, key: str, body: Body) -> None:
        span = self._span
        body["created_at"], body["trace_id"], body["span_id"] = _moment(at), span.trace_id, span.span_id
        self.steps.append(Step(at, self._conversation, key, body))

    def _timed(self, fields: Body) -> Body:
        """Add the duration to the fields, if known; return the same fields."""
        took = (self._span.end - self._span.start) / 1e6
        if self._span.start > 0 and 0 <= took <= 1e12:
            fields["duration_ms"] = round(took, 3)
        return fields


def digest(*parts: str) -> str:
    """Return an id derived from texts."""
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _key_of(role: str, text: str, nth: int) -> str:
    return digest("message", digest(role, text), str(nth))


_key_again = lru_cache(4096)(_key_of)


def cut(text: str) -> str:
    """Shorten a text to what one event can hold, beside another text."""
    most = fitting_length(text[:MAX_VALUE])
    return text if most == len(text) else f"{text[:most]}… [{len(text):,} characters]"


def fitting(value: Any) -> Any:  # any JSON
    """Return a value as it is, or the beginning of its JSON if one event cannot hold it."""
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, int | float):
        return value
    text = encoded(value)
    return value if len(text) <= MAX_VALUE and fits(text) else cut(text)


def _usage(usage: Usage) -> Body | None:
    if not usage.input and not usage.output:
        return None
    cached = {"input_tokens_details": {"cached_tokens": usage.cached}} if usage.cached else {}
    return {"input_tokens": usage.input, "output_tokens": usage.output} | cached


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
