"""`watch_agents()`: what agents of the OpenAI Agents SDK do in this process, live in Switchboard.

One line in a program. A trace processor reads each span within the program's run (`span_facts`), and a thread makes
events of them (`span_events`) and publishes them. Nothing here raises, waits or speaks to the network in the program's
own threads. What the thread has not published yet is in memory, bounded; what it has is with the server or spooled.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import util as multiprocessing_util
from typing import Any, NamedTuple

from switchboard.agent_approvals import NO_TRACE, ApprovalRequest, Approvals, CallKey, RequestedCall
from switchboard.bus import Bus, BusMessage
from switchboard.current import get_bus
from switchboard.errors import BusError
from switchboard.http_bus import HttpBus
from switchboard.ids import new_id
from switchboard.span_events import SpanEvents
from switchboard.span_facts import SpanFacts, cancellation, of_end, of_start

MAX_SPANS, MAX_BYTES = 10_000, 32 << 20  # spans in memory, and about how much they keep alive
TOGETHER_S = 0.2  # seconds: what happens within goes in one request
CLOSE_S = 5.0  # seconds that a program's end waits for the server at most
SWITCH = "OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA"  # the SDK's own
_log = logging.getLogger("switchboard")
_lock = threading.Lock()
_current: AgentWatch | None = None


class _TraceBegan(NamedTuple):
    trace_id: str
    group_id: str | None


def watch_agents(
    *,
    bus: Bus | None = None,
    agent: str | None = None,
    conversation: str = "",
    content: bool | None = None,
    approve: bool = False,
) -> AgentWatch:
    """Have all runs of the OpenAI Agents SDK in this process seen in Switchboard, from now on; once a process.

    bus: left out, that of `get_bus()`, by the environment; where that names none, nothing is watched, and it is logged.
    agent: what is put in front of the agents' names; left out, `AGENT_NAME`, the agent that the token speaks for.
    conversation: the id for all runs; left out, a run's `group_id`, else its trace.
    content: False records no words, arguments and outputs; left out, as the SDK's own
    `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA` says.
    approve: True has the calls of tools that need an approval decided in the inbox; see `agent_approvals`.
    """
    global _current
    with _lock:
        if _current is None:
            name = os.environ.get("AGENT_NAME", "").strip() if agent is None else agent
            has_content = _is_content_wanted() if content is None else content
            events = SpanEvents(agent=name, conversation=conversation, has_content=has_content)
            _current = AgentWatch(bus or _bus(), events)
            _register(_current)
            if approve:
                _current._contained(_current.ask_for_approvals)
        return _current


def _bus() -> Bus | None:
    try:
        return get_bus()
    except (BusError, OSError, ValueError) as error:
        _log.error("agents are not recorded: %s", error)
        return None


def _is_content_wanted() -> bool:
    return os.environ.get(SWITCH, "true").strip().lower() in ("1", "true", "yes", "on")


def _register(watch: AgentWatch) -> None:
    try:
        from agents import add_trace_processor

        add_trace_processor(watch)  # type: ignore[arg-type]  # it has the methods; its class is the SDK's own
        if _is_tracing_disabled():
            _log.warning("agents are not recorded: tracing of the OpenAI Agents SDK is disabled")
    except Exception:
        _log.exception("agents are not watched: the OpenAI Agents SDK could not be reached")


def _is_tracing_disabled() -> bool:
    from agents.tracing import get_trace_provider

    return get_trace_provider().create_trace("switchboard").trace_id == NO_TRACE  # it is never started


def _trace_around(trace_id: str) -> Any:
    """Return the program's current trace if a run continues in it instead of starting a new one."""
    from agents.tracing import get_current_trace

    trace = get_current_trace()
    return trace if trace is not None and trace.trace_id == trace_id else None


class AgentWatch:
    """The trace processor. Its `on_…` methods are called by the SDK, within the program's runs."""

    def __init__(self, bus: Bus | None, events: SpanEvents) -> None:
        self.lost = 0  # spans and events that were not published
        self._bus, self._events = bus, events
        self._bus_lock = threading.Lock()
        self._news = threading.Condition()  # guards all below
        self._facts: list[SpanFacts | _TraceBegan] = []
        self._size = 0
        self._queued = self._published = 0  # facts so far
        self._gaps: Counter[str] = Counter()  # by trace, spans that found no room
        self._is_closing = False
        self._has_thread = False
        self._traces: set[str] = set()  # whose beginning was seen, up to a bound
        self._began_in: dict[str, int] = {}  # by span: the id of the cancellation that was handled when it began
        self._problems: set[str] = set()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        multiprocessing_util.register_after_fork(self, _publish_at_exit)
        if multiprocessing.parent_process() is not None:
            _publish_at_exit(self)

    def on_trace_start(self, trace: Any) -> None:
        """Record a trace."""
        self._contained(self._trace, trace)

    def on_trace_end(self, trace: Any) -> None:
        """Do nothing: the runs of a trace record how they ended."""

    def on_span_start(self, span: Any) -> None:
        """Record the start of a span."""
        self._contained(self._start, span)

    def on_span_end(self, span: Any) -> None:
        """Record the end of a span."""
        self._contained(self._end, span)

    def force_flush(self) -> bool:
        """Do as `flush` does."""
        return self.flush()

    def flush(self, timeout_s: float = CLOSE_S) -> bool:
        """Wait until what was recorded before this call is published, to the server or to the spool; return False after
        the timeout."""
        with self._news:
            number = self._queued
            return self._news.wait_for(lambda: self._published >= number, timeout_s)

    def shutdown(self, timeout: float | None = None) -> None:
        """Publish what is queued, within `timeout` seconds (5 at most); what the server does not accept is spooled."""
        self._contained(self._close, CLOSE_S if timeout is None else min(timeout, CLOSE_S))

    def ask_for_approvals(self) -> None:
        """Send approval requests to the inbox from now on."""
        if isinstance(self._bus, HttpBus):
            Approvals(self._http_bus, self._record_requested_call, self._record_decision).install()
        elif self._bus is not None:
            _log.error("approvals are not sent to the inbox: this requires SWITCHBOARD_URL and SWITCHBOARD_TOKEN")

    def _record_requested_call(self, span_id: str | None, key: CallKey) -> RequestedCall | str:
        """Record the call that needs approval, and return it, or why it cannot be recorded."""
        place = f"{span_id}:{new_id()}"  # of this request alone: calls may share an id
        request = ApprovalRequest(key, [])
        facts = SpanFacts(True, "approval", key.trace_id, place, span_id, time.time(), request)
        self._put(facts, facts.size)
        if not self.flush():
            return "it could not be recorded in time"
        return request.calls[0] if request.calls else "its model records no generation or response span"

    def _record_decision(self, span_id: str | None, key: CallKey) -> None:
        """Record that the wait of a call is over: it did not work until now."""
        facts = SpanFacts(True, "decision", key.trace_id, f"{span_id}:{new_id()}", span_id, time.time())
        self._put(facts, facts.size)

    def _http_bus(self) -> HttpBus:
        """Return the bus of this process: a forked one gets its own, once. Raises BusError, OSError."""
        with self._bus_lock:
            assert isinstance(self._bus, HttpBus)
            self._bus = self._bus.of_this_process()
            return self._bus

    def _close(self, timeout_s: float) -> None:
        with self._news:
            self._is_closing = True
            self._news.notify_all()
        if not self.flush(timeout_s * 0.7) and isinstance(self._bus, HttpBus):
            self._bus.save()
            self.flush(timeout_s * 0.2)

    def _trace(self, trace: Any) -> None:
        if len(self._traces) >= MAX_SPANS:
            self._traces.clear()
        self._traces.add(trace.trace_id)
        group = getattr(trace, "group_id", None)  # of any type: the SDK does not check it
        self._put(_TraceBegan(trace.trace_id, None if group is None else str(group)), 100)

    def _start(self, span: Any) -> None:
        if span.trace_id not in self._traces and (trace := _trace_around(span.trace_id)) is not None:
            self._trace(trace)
        if (error := cancellation(span.span_data.type)) is not None and len(self._began_in) < MAX_SPANS:
            self._began_in[span.span_id] = id(error)
        if (facts := of_start(span, time.time())) is not None:
            self._put(facts, facts.size)

    def _end(self, span: Any) -> None:
        facts = of_end(span, time.time(), began_in=self._began_in.pop(span.span_id, None))
        self._put(facts, facts.size)

    def _put(self, facts: SpanFacts | _TraceBegan, size: int) -> None:
        """Queue it for the thread; count it as lost if there is no room."""
        if self._bus is None:
            return
        with self._news:
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="switchboard-watch", daemon=True).start()
            # What a trace belongs to is small, and needed.
            most = MAX_SPANS if isinstance(facts, SpanFacts) else 2 * MAX_SPANS
            if len(self._facts) >= most or (self._size + size > MAX_BYTES and self._facts):
                self._gaps[facts.trace_id] += 1
                self.lost += 1
                return
            self._facts.append(facts)
            self._queued += 1
            self._size += size
            if len(self._facts) == 1:
                self._news.notify_all()

    def _forked(self) -> None:
        """Start again in a forked process: the parent publishes what was queued before."""
        self._news, self._bus_lock = threading.Condition(), threading.Lock()
        self._facts, self._size, self._gaps = [], 0, Counter()
        self._published, self._has_thread = self._queued, False

    def _run(self) -> None:
        while self._wait():
            facts, gaps = self._take()
            self._contained(self._publish, facts, gaps)
            with self._news:
                self._published += len(facts)
                self._news.notify_all()

    def _wait(self) -> bool:
        with self._news:
            self._news.wait_for(lambda: self._facts or self._is_closing)
            if self._is_closing and not self._facts:
                return self._news.wait_for(lambda: self._facts)  # type: ignore[return-value]
            if not self._is_closing:
                self._news.wait_for(lambda: self._is_closing, TOGETHER_S)
            return True

    def _take(self) -> tuple[list[SpanFacts | _TraceBegan], Counter[str]]:
        with self._news:
            facts, self._facts, self._size = self._facts, [], 0
            gaps, self._gaps = self._gaps, Counter()
            return facts, gaps

    def _publish(self, facts: list[SpanFacts | _TraceBegan], gaps: Counter[str]) -> None:
        messages: list[BusMessage] = []
        for each in facts:
            if isinstance(each, _TraceBegan):
                self._events.trace(each.trace_id, each.group_id)
            else:
                messages += self._contained(self._events.of, each) or []
        messages += [self._gap(trace_id, lost) for trace_id, lost in gaps.items()]
        if messages and self._bus is not None:
            bus = self._http_bus() if isinstance(self._bus, HttpBus) else self._bus
            outcomes = _publish_all(bus, messages)
            for error in filter(None, outcomes):
                self.lost += 1
                self._complain(f"an event was not recorded: {error}", type(error).__name__)

    def _gap(self, trace_id: str, lost: int) -> BusMessage:
        """Report a gap where events found no room."""
        conversation = self._events.conversation_of(trace_id)
        event = {"event": "record.gap", "id": new_id(), "conversation_id": conversation, "lost": lost}
        event["reason"] = "the program was quicker than the server"
        return BusMessage(f"stream:{conversation}", event, str(event["id"]))

    def _contained(self, work: Callable[..., Any], *args: Any) -> Any:
        """Run a function; log its errors, each kind once, and never pass them on to the program."""
        try:
            return work(*args)
        except Exception as error:
            self._complain("watching agents failed, the program is not affected", repr(error)[:200], exc_info=True)
            return None

    def _complain(self, message: str, kind: str, **more: Any) -> None:
        if kind not in self._problems and len(self._problems) < 100:
            self._problems.add(kind)
            _log.warning("%s (further ones are not logged)", message, **more)


def _publish_at_exit(watch: AgentWatch) -> None:
    """Have a process of `multiprocessing` publish what is queued before it ends: by `os._exit`, without `atexit`."""
    multiprocessing_util.Finalize(watch, watch.shutdown, exitpriority=10)


def _publish_all(bus: Bus, messages: list[BusMessage]) -> list[BaseException | None]:
    if isinstance(bus, HttpBus):
        return bus.publish_all(messages, is_kept=True)
    outcomes: list[BaseException | None] = []
    for message in messages:
        try:
            bus.publish(message.topic, message)
            outcomes.append(None)
        except Exception as error:  # a bus of the program's own, or Redis's refusal: it costs this message alone
            outcomes.append(error)
    return outcomes
