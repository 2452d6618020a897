"""What `span_events` knows of a process's traces: their runs, spans and calls."""

from __future__ import annotations

from collections import OrderedDict, deque

from switchboard.agent_approvals import CallKey, key_of
from switchboard.span_facts import SpanFacts

MAX_ENDED, MAX_OPEN = 500, 10_000  # traces remembered: those whose spans have ended, and those that are under way
SPANS = 2_000  # remembered of each trace, of those that ended


class Call:
    """A tool call that a model asked for."""

    def __init__(self, name: str, namespace: str | None, call_id: str | None, arguments: str | None) -> None:
        self.name, self.namespace, self.call_id, self.arguments = name, namespace, call_id, arguments

    def fits(self, span_name: str) -> bool:
        """Tell whether a function's span has this call's name, which is the bare or the qualified one."""
        return span_name in (self.name, f"{self.namespace}.{self.name}")


class Run:
    """One run of the SDK, nested ones apart."""

    def __init__(self, id: str, at: float, parent_call: str | None) -> None:
        self.id, self.at, self.parent_call = id, at, parent_call
        self.agent = ""
        self.turn = 0
        self.inputs: set[str] = set()  # what people said in it, by digest
        self.calls: list[Call] = []  # that its models asked for, and that did not begin
        self.unclear: list[tuple[Span, SpanFacts]] = []  # ends of calls that gave nothing: or wait for an approval
        self.error = ""
        self.is_tripped = self.is_paused = False


class Span:
    """A span that others can be inside of."""

    def __init__(self, kind: str, agent: str, run: Run | None, at: float) -> None:
        self.kind, self.agent, self.run, self.at = kind, agent, run, at
        self.call: Call | None = None


class Trace:
    """A trace, and its spans by their ids."""

    def __init__(self, trace_id: str, conversation: str) -> None:
        self.id, self.conversation = trace_id, conversation
        self.spans: dict[str, Span] = {}
        self.open: set[str] = set()  # spans that began and did not end
        self.ended: deque[str] = deque()
        self.paused: list[Call] = []  # that were begun and wait for an approval
        self.begun: OrderedDict[CallKey, Call] = OrderedDict()  # the newest

    def begin(self, call: Call) -> None:
        """Remember a call that was reported."""
        if call.call_id:
            self.begun[self.key(call)] = call
            if len(self.begun) > SPANS:
                self.begun.popitem(last=False)

    def key(self, call: Call) -> CallKey:
        """Return the key by which an approval of a call is requested."""
        return key_of(self.id, call.name, call.call_id or "", call.arguments)

    def begin_span(self, span_id: str, span: Span) -> Span:
        """Remember a span until it ends."""
        self.spans[span_id] = span
        self.open.add(span_id)
        return span

    def end(self, span_id: str) -> None:
        """Let a span that ended go, once many have ended after it: others may still end inside of it."""
        self.open.discard(span_id)
        self.ended.append(span_id)
        if len(self.ended) > SPANS:
            self.spans.pop(self.ended.popleft(), None)


class KnownTraces:
    """The traces of a process. Those that have ended make room first: one that waits may outlast many others."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Trace] = OrderedDict()
        self._ended: OrderedDict[str, Trace] = OrderedDict()

    def get(self, trace_id: str) -> Trace | None:
        """Return a trace, if it is known."""
        return self._open.get(trace_id) or self._ended.get(trace_id)

    def keep(self, trace: Trace) -> None:
        """Remember a trace as the last one used; drop the one that was used longest ago, of its kind."""
        self._open.pop(trace.id, None)
        self._ended.pop(trace.id, None)
        traces, most = (self._open, MAX_OPEN) if trace.open or trace.paused else (self._ended, MAX_ENDED)
        traces[trace.id] = trace
        if len(traces) > most:
            traces.popitem(last=False)
