"""Spans of the Agents SDK → events of a conversation: who speaks, calls with their ids, what was spent.

Called by `agent_watch`'s thread, with the facts of each span in the order in which they happened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from switchboard import topics
from switchboard.agent_approvals import ApprovalRequest, RequestedCall
from switchboard.bus import BusMessage
from switchboard.known_traces import Call, KnownTraces, Run, Span, Trace
from switchboard.span_facts import ModelAnswer, SpanFacts, clipped, field, texts

WITHHELD = "The content is not recorded."
Event = dict[str, Any]  # JSON


class SpanEvents:
    """What is known of the traces of a process, and the events that the next span makes. For one thread."""

    def __init__(self, *, agent: str = "", conversation: str = "", has_content: bool = True) -> None:
        """`agent` is in front of all names, for a token that speaks for it; `conversation` takes the place of the
        groups' and traces' own."""
        self._agent, self._conversation, self._has_content = agent.removeprefix("agent:"), conversation, has_content
        self._traces = KnownTraces()
        self._readers: dict[tuple[str, bool], Callable[[Trace, SpanFacts], Iterator[Event]]] = {
            ("function", False): self._call_begins,
            ("approval", True): self._approval_requested,
            ("decision", True): self._approval_decided,
            ("function", True): self._call_ends,
            ("response", True): self._answered,
            ("generation", True): self._answered,
            ("handoff", True): self._handed_off,
            ("guardrail", True): self._guarded,
            ("agent", True): self._agent_ends,
            ("task", True): self._run_ends,
        }

    def trace(self, trace_id: str, group_id: str | None) -> None:
        """Take note of a trace; its events are the conversation of its group, else its own."""
        if self._traces.get(trace_id) is None:
            self._traces.keep(Trace(trace_id, conversation_id(self._conversation or group_id or trace_id)))

    def conversation_of(self, trace_id: str) -> str:
        """Return the conversation of a trace."""
        return self._trace_of(trace_id).conversation

    def of(self, facts: SpanFacts) -> list[BusMessage]:
        """Return what a span says, as messages for the stream of its conversation."""
        trace = self._trace_of(facts.trace_id)
        topic = f"stream:{trace.conversation}"
        events = [] if facts.is_end else list(self._begin(trace, facts))
        if (read := self._readers.get((facts.kind, facts.is_end))) is not None:
            events += read(trace, facts)
        if facts.is_end and facts.kind not in ("approval", "decision"):  # which are not spans
            trace.end(facts.span_id)
            self._traces.keep(trace)
        place = f"{facts.span_id}:{'end' if facts.is_end else 'start'}"
        for number, event in enumerate(events):
            event["id"], event["conversation_id"] = f"{place}:{number}", trace.conversation
            if "created_at" not in event:
                event["created_at"] = _iso(facts.at)
        return [BusMessage(topic, event, event["id"]) for event in events]

    def _trace_of(self, trace_id: str) -> Trace:
        trace = self._traces.get(trace_id) or Trace(trace_id, conversation_id(self._conversation or trace_id))
        self._traces.keep(trace)
        return trace

    def _begin(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Remember a span, and send the start of the run that begins with it."""
        parent = trace.spans.get(facts.parent_id or "")
        agent = facts.detail.name if facts.kind == "agent" else parent.agent if parent else ""
        run = parent.run if parent else None
        is_run = facts.kind == "task" or (facts.kind == "agent" and (parent is None or parent.kind != "task"))
        if is_run:
            outer = parent.call if parent else None
            run = Run(facts.span_id, facts.at, outer.call_id if outer else None)
        span = trace.begin_span(facts.span_id, Span(facts.kind, agent, run, facts.at))
        self._traces.keep(trace)
        if parent and facts.kind not in ("task", "agent"):
            span.call = parent.call
        if facts.kind == "agent" and run is not None and not run.agent:
            run.agent = agent
            yield self._event("run.started", agent, run, trace_id=facts.trace_id, attempt=1)

    def _answered(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Tell what a model was told again, what it spent and what it said, and remember what it calls."""
        span, answer = self._around(trace, facts), facts.detail
        run = span.run or Run(facts.span_id, facts.at, None)
        for text in answer.inputs:
            yield from self._input(run, text)
        yield from self._settle(run)
        began = span.at if span.kind == "turn" else facts.at
        spent: Event = {"usage": _usage(answer.usage), "duration_ms": round((facts.at - began) * 1000, 1) or None}
        if facts.error:
            spent["error"] = self._note_error(run, facts.error)
        else:
            run.error = "" if not run.is_tripped else run.error
            run.turn += 1
        yield self._event("model.call", span.agent, run, model=answer.model or None, **spent)
        yield from self._output(span.agent, run, answer)

    def _input(self, run: Run, text: str) -> Iterator[Event]:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest in run.inputs or not text.strip():
            return
        run.inputs.add(digest)
        yield {"event": "user_message", "text": self._words(text)}

    def _output(self, agent: str, run: Run, answer: ModelAnswer) -> Iterator[Event]:
        """Tell what a model said; remember its calls, and tell those that its provider has run already."""
        for item in answer.output:
            kind = field(item, "type") or "message"
            if kind == "message":
                yield from self._message(agent, run, item)
            elif kind == "function_call":
                call = Call(*(field(item, name) for name in ("name", "namespace", "call_id", "arguments")))
                run.calls.append(call)
            elif kind.endswith("_call"):
                yield self._hosted(agent, run, item, kind)

    def _message(self, agent: str, run: Run, item: Any) -> Iterator[Event]:
        content = field(item, "content")
        text = "\n".join(texts(content))
        parts = () if isinstance(content, str) else content or ()
        refusal = "\n".join(str(field(part, "refusal")) for part in parts if field(part, "type") == "refusal")
        if text or refusal:
            more = {"refusal": True} if refusal else {}
            yield self._event("output", agent, run, text=self._words(text or refusal), **more)
        calls = item.get("tool_calls") if isinstance(item, dict) else None
        for call in calls or ():  # of a bare message of Chat Completions, which is JSON
            function = field(call, "function")
            run.calls.append(Call(field(function, "name"), None, field(call, "id"), field(function, "arguments")))

    def _hosted(self, agent: str, run: Run, item: Any, kind: str) -> Event:
        """Tell a call that the model's provider made."""
        is_bad = field(item, "status") in ("failed", "incomplete")
        call = Call(
            field(item, "name") or kind.removesuffix("_call"),
            None,
            field(item, "call_id") or field(item, "id"),
            field(item, "arguments"),
        )
        step = self._step(agent, run, call, "error" if is_bad else "success")
        return step | {"origin": "hosted", "mcp_server": field(item, "server_label")}

    def _call_begins(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Tell that a function is entered; its span has the name, and the arguments a moment later."""
        span = trace.spans[facts.span_id]
        span.run = span.run or Run(facts.span_id, facts.at, None)
        span.call, is_resumed = _join(trace, span.run, facts.detail.name, facts.detail.input)
        if not is_resumed:
            trace.begin(span.call)
            yield self._step(span.agent, span.run, span.call, "start")

    def _approval_requested(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Record the call that needs approval, unless it is recorded, and tell it to who requests its approval."""
        request: ApprovalRequest = facts.detail
        key = request.key
        span = self._around(trace, facts)
        run = span.run
        call = next((call for call in run.calls if trace.key(call) == key), None) if run else None
        if call is not None and run is not None:
            run.calls.remove(call)
            trace.paused.append(call)
            trace.begin(call)
            yield self._step(span.agent, run, call, "start")
        call = trace.begun.get(key)
        if call is not None:
            sent = clipped(call.arguments or "{}") if self._has_content else "{}"
            agent = self._name(span.agent)
            request.calls.append(RequestedCall(trace.conversation, agent, call.name, key.call_id, sent))

    def _approval_decided(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Count a call's time from the decision on: before it, the call waited."""
        span = trace.spans.get(facts.parent_id or "")
        if span is not None and span.kind == "function":
            span.at = facts.at
        return iter(())

    def _call_ends(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Tell what a function gave. Nothing may mean that it waits for an approval: the run's next step says."""
        span = trace.spans.get(facts.span_id)
        if span is None or span.run is None or span.call is None:
            return
        if facts.detail[2] is None and not facts.error:
            span.run.unclear.append((span, facts))
            return
        yield self._end(span, facts)

    def _end(self, span: Span, facts: SpanFacts) -> Event:
        assert span.run is not None
        assert span.call is not None
        _, _, output, server = facts.detail
        step = self._step(span.agent, span.run, span.call, "error" if facts.error else "success")
        step |= {"duration_ms": round((facts.at - span.at) * 1000, 1), "created_at": _iso(facts.at)}
        if server:
            step |= {"origin": "mcp", "mcp_server": server}
        if facts.error:
            step["error"] = self._note_error(span.run, facts.error)
        elif output is not None and self._has_content:
            step["output"] = clipped(output) if isinstance(output, str) else output
        return step

    def _note_error(self, run: Run, error: Any) -> str:
        """Note what went wrong in a run, and return it; a cancellation may follow from an error before it."""
        text = _error(error, self._has_content)
        if not (run.error and _is_cancelled(error)):
            run.error = text
        return text

    def _settle(self, run: Run) -> Iterator[Event]:
        """Tell the ends of calls that gave nothing, once the run has gone on after them."""
        ends, run.unclear = run.unclear, []
        for span, facts in ends:
            yield self._end(span, facts)

    def _agent_ends(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Note what went wrong; a run that ends after calls that gave nothing waits for approvals of them."""
        run = self._around(trace, facts).run
        if run is None:
            return
        if facts.error:
            self._note_error(run, facts.error)
        if run.unclear and not run.error:
            trace.paused += [span.call for span, _ in run.unclear if span.call is not None]
            run.unclear, run.is_paused = [], True
        if run.id == facts.span_id:
            yield from self._run_ends(trace, facts)

    def _run_ends(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        span = trace.spans.get(facts.span_id)
        run = span.run if span else None
        if run is None or not run.agent:
            return
        yield from self._settle(run)
        duration_ms = round((facts.at - run.at) * 1000, 1)
        if facts.error or run.error:
            error = _error(facts.error, self._has_content) if facts.error else run.error
            reason = "cancelled" if _is_cancelled(facts.error) else "error"
            yield self._event("run.failed", run.agent, run, reason=reason, error=error, duration_ms=duration_ms)
        elif run.is_paused:
            yield self._event("run.waiting", run.agent, run, reason="approval")
        else:
            usage = _usage(field(facts.detail, "usage"))
            yield self._event("run.done", run.agent, run, usage=usage, duration_ms=duration_ms)

    def _handed_off(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        span = self._around(trace, facts)
        giver, taker = facts.detail
        if span.run is not None:
            ends = {"from_agent": self._name(giver or span.agent), "to_agent": self._name(taker)}
            yield self._event("agent.handoff", giver or span.agent, span.run, **ends)

    def _guarded(self, trace: Trace, facts: SpanFacts) -> Iterator[Event]:
        """Tell what a guardrail found; one that trips ends the run."""
        span = self._around(trace, facts)
        name, is_tripped = facts.detail
        if span.run is None:
            return
        if is_tripped:
            span.run.error, span.run.is_tripped = f"The guardrail {name} was triggered.", True
        text = f"guardrail {name}: {'triggered' if is_tripped else 'passed'}"
        level = "warning" if is_tripped else "info"
        yield self._event("log", span.agent, span.run, level=level, component="guardrail", text=text)

    def _step(self, agent: str, run: Run, call: Call, status: str) -> Event:
        sent = call.arguments if self._has_content else None
        return self._event(
            "tool_step", agent, run, name=call.name, namespace=call.namespace, tool_call_id=call.call_id,
            status=status, args_raw=clipped(sent) if sent else None,
        )  # fmt: skip

    def _event(self, kind: str, agent: str, run: Run, **fields: Any) -> Event:
        """Write an event of a run; a field of None is left out."""
        event: Event = {"event": kind, "agent": self._name(agent), "run_id": run.id}
        if run.parent_call is not None:
            event["parent_call"] = run.parent_call
        event |= {name: value for name, value in fields.items() if value is not None}
        if run.turn:
            event["turn"] = run.turn
        return event

    def _around(self, trace: Trace, facts: SpanFacts) -> Span:
        """Return a span that is known, else the one around it."""
        for id in (facts.span_id, facts.parent_id or ""):
            if span := trace.spans.get(id):
                return span
        return Span("", "", None, facts.at)

    def _name(self, agent: str) -> str:
        """Return an agent's name here: that of the program in front, where it has one."""
        if not self._agent or agent in ("", self._agent):
            return self._agent or agent or "agent"
        return f"{self._agent}/{agent}"[: topics.MAX_SUFFIX - len("agent:")]

    def _words(self, text: str) -> str:
        return clipped(text) if self._has_content else WITHHELD


def conversation_id(name: str) -> str:
    """Return a group's name as a conversation's id: itself, or what stands for one that no topic takes."""
    if topics.fault(f"stream:{name}") is None:
        return name
    return f"group-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _join(trace: Trace, run: Run, name: str, arguments: str | None) -> tuple[Call, bool]:
    """Return the call that a function's span is of, and whether it goes on after an approval: the first of this name
    with these arguments, else the first of this name."""
    waiting = [call for call in (*trace.paused, *run.calls) if call.fits(name)]
    call = next((call for call in waiting if call.arguments == arguments), waiting[0] if waiting else None)
    if call is None:
        return Call(name, None, None, arguments), False
    is_resumed = call in trace.paused
    (trace.paused if is_resumed else run.calls).remove(call)
    return call, is_resumed


def _usage(usage: Any) -> Event | None:
    """Return what was spent, in the words of events."""
    if not usage:
        return None
    names = ("input_tokens", "output_tokens", "total_tokens")
    counts = {name: value for name in names if isinstance(value := field(usage, name), int)}
    details = field(usage, "input_tokens_details") or {}
    of_cache = {name: number for name in ("cached_tokens", "cache_write_tokens") if (number := field(details, name))}
    return counts | of_cache or None


def _error(error: Any, has_content: bool) -> str:
    """Return an error in a line."""
    message, data = str(field(error, "message") or "error"), field(error, "data")
    detail = data.get("error") if isinstance(data, dict) and has_content else None
    return f"{message}: {detail}"[:8000] if detail else message


def _is_cancelled(error: Any) -> bool:
    return bool(error and field(error, "is_cancelled"))


def _iso(at: float) -> str:
    second, ms = divmod(int(at * 1000), 1000)
    return f"{_second(second)}.{ms:03}Z"


@lru_cache(16)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()[:19]
