"""The spans of one run: the agent's, one per model turn, one per tool call (GenAI conventions,
semantic-conventions-genai 0.1). Ids are derived from what they stand for, so what is sent again is the same span.

Without content a span has names, times, tokens and outcomes; with content also messages, arguments and outputs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from conversations.core.errors import SwitchboardError
from conversations.events.payload import ParsedPayload, decoded, parse
from conversations.telemetry_export.ended_runs import EndedRun, StepOfRun

MAX_ATTRIBUTE = 64 << 10  # characters of one attribute
PROVIDER, DEMO = "openai", "switchboard.demo"  # every server that we ask speaks OpenAI's protocol
STEPS = ("run.started", "model.turn", "tool_step", "agent.handoff", "output")  # what spans are made of, beside the end
_FAILED = ("run.failed", "run.interrupted", "run.incompatible")
_FINE = ("success", "start")
Json = Any  # whatever a body holds
Turn = tuple[int | None, str]  # its number, and the agent: those inside a call count for themselves


class RunSurroundings(NamedTuple):
    """A run, with its conversation, its agent and the run around it."""

    end: EndedRun
    agent: str
    outermost: str  # the run that its trace is of
    parent_call: str | None
    queued_at: int  # µs UTC, where nothing tells when it began
    input_body: str = ""  # the body of the event that it answers


def of_run(place: RunSurroundings, steps: Iterable[StepOfRun], *, has_content: bool) -> list[Span]:
    """Return the spans of a run that has ended, its own first."""
    work = _Work(place, has_content)
    for step in steps:
        work.take(step)
    return work.spans()


def span_id(kind: str, of: str) -> bytes:
    """Return the span id of a run, a turn or a call."""
    return hashlib.sha256(f"{kind}\n{of}".encode("utf-8", "surrogatepass")).digest()[:8]


def trace_id(run: str) -> bytes:
    """Return the trace id of a run."""
    return hashlib.sha256(f"trace\n{run}".encode("utf-8", "surrogatepass")).digest()[:16]


class _Work:
    """The spans of one run, built from its events."""

    def __init__(self, place: RunSurroundings, has_content: bool) -> None:
        self._place, self._has_content = place, has_content
        self._trace = trace_id(place.outermost)
        self._root = self._span("agent", place.end.run, f"invoke_agent {place.agent}", place.queued_at)
        self._root.parent_span_id = span_id("call", place.parent_call) if place.parent_call else b""
        _set_attribute(self._root, "gen_ai.operation.name", "invoke_agent")
        _set_attribute(self._root, "gen_ai.agent.name", place.agent)
        self._has_begun, self._last_text = False, ""
        self._turns: dict[Turn, Span] = {}
        self._texts: dict[Turn, str] = {}  # what was said in a turn comes before what it took
        self._calls: dict[str, Span] = {}
        self._others: list[Span] = []

    def take(self, step: StepOfRun) -> None:
        """Add the next event."""
        try:
            payload, fields = parse(step.body.encode("utf-8", "replace")), decoded(step.body.encode("utf-8", "replace"))
        except (SwitchboardError, ValueError):
            return
        if step.kind == "run.started" and not self._has_begun:
            self._root.start_time_unix_nano, self._has_begun = step.at * 1000, True
        elif step.kind == "model.turn":
            self._take_turn(step, fields)
        elif step.kind == "tool_step":
            self._take_call(step, payload, fields)
        elif step.kind == "output":
            self._take_words(step, payload)
        elif step.kind == "agent.handoff":
            event = self._root.events.add(name="agent.handoff", time_unix_nano=step.at * 1000)
            _set_attribute(event, "gen_ai.agent.handoff.from", str(fields.get("from_agent") or ""))
            _set_attribute(event, "gen_ai.agent.handoff.to", str(fields.get("to_agent") or ""))
        elif step.seq == self._place.end.seq:
            self._end(step, fields)

    def spans(self) -> list[Span]:
        """Return all spans; a call without an end has an unknown outcome."""
        for call in self._calls.values():
            call.end_time_unix_nano = self._root.end_time_unix_nano
            self._fail(call, "unknown", "")
        if self._has_content:
            for turn, text in self._texts.items():
                if (span := self._turns.get(turn)) is not None:
                    _set_attribute(span, "gen_ai.output.messages", _messages("assistant", text, "stop"))
            input_words = _words(self._place.input_body)
            _set_attribute(self._root, "gen_ai.input.messages", _messages("user", input_words) if input_words else None)
            _set_attribute(self._root, "gen_ai.output.messages", _messages("assistant", self._last_text, "stop"))
        return [self._root, *self._others]

    def _take_turn(self, step: StepOfRun, fields: dict[str, Json]) -> None:
        model = str(fields.get("model") or "")
        took_ns = int((fields.get("duration_ms") or 0) * 1e6)
        span = self._child("turn", f"{self._place.end.run}\n{step.seq}", f"chat {model}".strip(), step.at, fields)
        span.kind = Span.SPAN_KIND_CLIENT
        span.start_time_unix_nano = max(0, step.at * 1000 - took_ns)
        _set_attribute(span, "gen_ai.operation.name", "chat")
        _set_attribute(span, "gen_ai.provider.name", DEMO if fields.get("demo") else PROVIDER)
        _set_attribute(span, "gen_ai.request.model", model)
        _set_attribute(span, "gen_ai.agent.name", str(fields.get("agent") or self._place.agent))
        usage = fields.get("usage") or {}
        details = usage.get("input_tokens_details")
        details = details if isinstance(details, dict) else usage
        _set_attribute(span, "gen_ai.usage.input_tokens", _count(usage.get("input_tokens")))
        _set_attribute(span, "gen_ai.usage.output_tokens", _count(usage.get("output_tokens")))
        for name, count in (("cache_read", "cached_tokens"), ("cache_creation", "cache_write_tokens")):
            _set_attribute(span, f"gen_ai.usage.{name}.input_tokens", _count(details.get(count)) or None)
        self._turns[step.turn, str(fields.get("agent") or "")] = span
        self._others.append(span)

    def _take_call(self, step: StepOfRun, payload: ParsedPayload, fields: dict[str, Json]) -> None:
        call = payload.tool_call or payload.tool_call_id or f"{self._place.end.run}\n{step.seq}"
        span = self._calls.get(call)
        if span is None:
            span = self._calls[call] = self._child("call", call, f"execute_tool {payload.name}", step.at, fields)
            self._others.append(span)
            _set_attribute(span, "gen_ai.operation.name", "execute_tool")
            _set_attribute(span, "gen_ai.tool.name", payload.name)
            _set_attribute(span, "gen_ai.tool.type", "function")
            _set_attribute(span, "gen_ai.tool.call.id", payload.tool_call_id)
            _set_attribute(span, "gen_ai.agent.name", payload.agent or self._place.agent)
            if self._has_content:
                _set_attribute(span, "gen_ai.tool.call.arguments", fields.get("args_raw") or _text(fields.get("args")))
        if payload.status == "start":
            return
        del self._calls[call]
        span.end_time_unix_nano = step.at * 1000
        if self._has_content:
            _set_attribute(span, "gen_ai.tool.call.result", _text(fields.get("output", fields.get("result_summary"))))
        if payload.status not in _FINE:
            self._fail(span, payload.status or "error", _text(fields.get("error")) or "")

    def _take_words(self, step: StepOfRun, payload: ParsedPayload) -> None:
        if text := payload.text or "":
            self._texts[step.turn, payload.agent or ""] = text
            if '"parent_call":' not in step.body:
                self._last_text = text

    def _end(self, step: StepOfRun, fields: dict[str, Json]) -> None:
        self._root.end_time_unix_nano = step.at * 1000
        if step.kind in _FAILED:
            reason = str(fields.get("reason") or step.kind.partition(".")[2])
            self._fail(self._root, reason, str(fields.get("error") or ""))
        elif step.kind == "run.cancelled":
            _set_attribute(self._root, "switchboard.run.outcome", "cancelled")

    def _fail(self, span: Span, kind: str, words: str) -> None:
        """Mark a span as failed; the error's text counts as content."""
        _set_attribute(span, "error.type", kind)
        span.status.CopyFrom(
            Status(code=Status.STATUS_CODE_ERROR, message=words[:MAX_ATTRIBUTE] if self._has_content else kind)
        )

    def _child(self, kind: str, of: str, name: str, at: int, fields: dict[str, Json]) -> Span:
        """Return a span within the run, or within the call that it belongs to."""
        span = self._span(kind, of, name, at)
        around = fields.get("parent_call")
        span.parent_span_id = span_id("call", str(around)) if around else self._root.span_id
        return span

    def _span(self, kind: str, of: str, name: str, at: int) -> Span:
        span = Span(trace_id=self._trace, span_id=span_id(kind, of), name=name[:200], kind=Span.SPAN_KIND_INTERNAL)
        span.start_time_unix_nano = span.end_time_unix_nano = at * 1000
        _set_attribute(span, "gen_ai.conversation.id", self._place.end.key)
        _set_attribute(span, "switchboard.run.id", self._place.end.run)
        return span


def _count(value: Json) -> int | None:
    """Return a number of tokens; None for what is none: a model's server may send anything."""
    return value if type(value) is int and 0 <= value <= 1 << 53 else None


def _set_attribute(to: Span | Span.Event, name: str, value: str | int | None) -> None:
    """Add an attribute that has a value."""
    if value is None or value == "":
        return
    pair = KeyValue(key=name)
    if isinstance(value, int):
        pair.value.int_value = value
    else:
        pair.value.string_value = value[:MAX_ATTRIBUTE].encode("utf-8", "replace").decode()
    to.attributes.append(pair)


def _messages(role: str, text: str, finish_reason: str = "") -> str | None:
    """Return a message as the conventions have it; None without text. It is shortened before it becomes JSON, so that
    it stays valid."""
    if not text:
        return None
    part = {"type": "text", "content": text[: MAX_ATTRIBUTE // 2]}
    message = {"role": role, "parts": [part]} | ({"finish_reason": finish_reason} if finish_reason else {})
    return json.dumps([message], ensure_ascii=False)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) or value is None else json.dumps(value, ensure_ascii=False)


def _words(body: str) -> str:
    try:
        return parse(body.encode("utf-8", "replace")).words if body else ""
    except SwitchboardError:
        return ""
