"""Turn the spans of a request into payloads to store: with conversation and agent, in the order of their times, each
once.

A trace's conversation is remembered while the trace is in use, so that its later spans join it (`late_names` moves the
earlier ones, `trace_rows` keeps it in the database); so are the messages that are already stored, since every span
repeats its whole history.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from conversations.events.payload import MAX_KEY, clean_text
from conversations.telemetry import answer_counting, conventions, span_events
from conversations.telemetry.answer_counting import Counted, ReadSpan
from conversations.telemetry.occurrences import Occurrences
from conversations.telemetry.span import Span, of_records
from conversations.telemetry.span_events import EventPlace, FiledUnder, FreshSteps, Step

MAX_TRACES = 10_000
MAX_AGENTS = 1_000  # spans of one trace whose agent is remembered
MAX_STORED = 50_000  # events, and as many again that are older
_NO_NAME = "agent"


class Trace:
    """What is known of a trace: the conversation of its spans without one of their own, and its agents."""

    def __init__(self, own_key: str) -> None:
        self.own_key = own_key  # the conversation of its spans while none has named it
        self.conversation = ""  # empty: no span has named it
        self.is_under_own = False  # spans are in the conversation `own_key`
        self.agents: dict[str, str] = {}  # by span
        self.counted = Counted()
        self.stored = "", ""  # the conversation and what was counted, as the database has them

    def place(self, own_key: str, conversation: str, is_under_own: bool) -> None:
        """Take over where its events are."""
        self.own_key, self.conversation, self.is_under_own = own_key, conversation, is_under_own


class ReadSpans(NamedTuple):
    """The events of a request's spans, the traces that they named, and by the ids of traces that were named late the
    key under which their earlier spans are and the conversation."""

    steps: list[Step]
    named: list[str]
    late_names: dict[str, tuple[str, str]]


class Memory:
    """What earlier requests contained, of each sender (a principal's text) apart: a trace id is not a secret, and what
    one token reports must not decide where another's events are stored. For one thread; the least recently used is
    dropped."""

    def __init__(self) -> None:
        self._traces: OrderedDict[tuple[str, str], Trace] = OrderedDict()  # by sender and id
        self._stored: defaultdict[str, set[EventPlace]] = defaultdict(set)  # by sender
        self._stored_before: defaultdict[str, set[EventPlace]] = defaultdict(set)
        self._count = 0  # of those in `_stored`
        self._occurrences: defaultdict[str, Occurrences] = defaultdict(Occurrences)  # by sender

    def trace(self, sender: str, trace_id: str) -> Trace:
        """Return what is known of a sender's trace."""
        key = sender, trace_id
        if (trace := self._traces.get(key)) is not None:
            self._traces.move_to_end(key)
            return trace
        trace = self._traces[key] = Trace(trace_id)
        if len(self._traces) > MAX_TRACES:
            self._traces.popitem(last=False)
        return trace

    def forget_names(self, sender: str, trace_ids: Iterable[str], *, but: Container[str | None]) -> None:
        """Forget the conversations of these traces, except those in `but`."""
        for trace_id in trace_ids:
            if (trace := self.trace(sender, trace_id)).conversation not in but:
                trace.conversation = ""

    def note_moved(self, sender: str, trace_id: str) -> None:
        """Note that nothing of a trace remains to be moved."""
        self.trace(sender, trace_id).is_under_own = False

    def unnamed(self, sender: str, spans: Iterable[Span]) -> list[str]:
        """Return the traces of these spans whose conversation is unknown."""
        ids = {span.trace_id: None for span in spans}
        known = {trace_id: self._traces.get((sender, trace_id)) for trace_id in ids}
        return [trace_id for trace_id, trace in known.items() if trace is None or not trace.conversation]

    def occurrences(self, sender: str) -> Occurrences:
        """Return what this sender's traces have said or called several times."""
        return self._occurrences[sender]

    def is_stored(self, sender: str, place: EventPlace) -> bool:
        """Return whether this sender's event is known to be stored."""
        return place in self._stored[sender] or place in self._stored_before[sender]

    def note_stored(self, sender: str, places: Iterable[EventPlace]) -> None:
        """Remember what was committed. Old entries are dropped all at once: a dict that loses its first item each time
        has to search for it (25 µs per event at this size)."""
        stored = self._stored[sender]
        before = len(stored)
        stored.update(places)
        self._count += len(stored) - before
        if self._count > MAX_STORED:
            self._stored_before, self._stored, self._count = self._stored, defaultdict(set), 0

    def forget_stored(self) -> None:
        """Forget what was committed, because the database is a different one now."""
        self._stored, self._stored_before, self._count = defaultdict(set), defaultdict(set), 0
        self._occurrences.clear()


def of_spans(spans: Sequence[Span], memory: Memory) -> list[Step]:
    """Return the events of spans that are not known to be stored, in the order in which they happened."""
    return read(spans, memory).steps


def read(spans: Sequence[Span], memory: Memory, *, sender: str = "", fallback_agent: str = "") -> ReadSpans:
    """Return the events like `of_spans`, and which traces now have a name."""
    if spans and spans[0].is_log:
        spans = of_records(list(spans))
    items = [ReadSpan(span, conventions.read(span)) for span in sorted(spans, key=_start_of)]
    traces = {trace_id: memory.trace(sender, trace_id) for trace_id in {span.trace_id: None for span, _ in items}}
    family = _Family(items, traces, fallback_agent)
    fresh = FreshSteps(partial(memory.is_stored, sender), memory.occurrences(sender))
    family.count_once()
    for item in items:
        if item.facts.kind:
            span_events.add_steps(*item, family.place_of(item), fresh)
    steps = sorted(fresh.by_id.values(), key=_time_of)
    return ReadSpans(steps, family.named, family.named_late({step.conversation for step in steps}))


_start_of = attrgetter("start")
_time_of = attrgetter("at")


class _Family:
    """The spans of a request by id: what a span does not say itself may be known from those around it."""

    def __init__(self, items: Sequence[ReadSpan], traces: Mapping[str, Trace], fallback_agent: str) -> None:
        self._fallback_agent, self._items, self._traces = fallback_agent, items, traces
        self._by_id = {(item.span.trace_id, item.span.span_id): item for item in items}
        self.named: list[str] = []  # traces that were named here
        self._places: dict[tuple[str, str, str], FiledUnder] = {}  # by what spans name, and the trace's conversation
        self._around: dict[tuple[str, str], str] = {}  # agents of and around a span
        for span, facts in items:
            trace = self._traces[span.trace_id]
            if not trace.conversation and facts.conversation:
                trace.conversation = _key(facts.conversation)
                self.named.append(span.trace_id)
            if facts.kind == "agent" and facts.agent and len(trace.agents) < MAX_AGENTS:
                trace.agents[span.span_id] = facts.agent[:MAX_KEY]

    def named_late(self, filed: Container[str]) -> dict[str, tuple[str, str]]:
        """Return the own keys and conversations of those traces whose spans are under the former; note the new ones."""
        late: dict[str, tuple[str, str]] = {}
        for trace_id, trace in self._traces.items():
            if not trace.conversation:
                trace.is_under_own = trace.is_under_own or trace.own_key in filed
            elif trace.is_under_own and trace.conversation != trace.own_key:
                late[trace_id] = trace.own_key, trace.conversation
        return late

    def place_of(self, item: ReadSpan) -> FiledUnder:
        """Return a span's conversation and agent."""
        span, facts = item
        trace = self._traces[span.trace_id]
        own = trace.conversation or trace.own_key
        name = facts.agent or self._agent_around(span) or self._fallback_agent or _service_of(span) or _NO_NAME
        named = facts.conversation, own, name
        if (place := self._places.get(named)) is None:
            agent = clean_text(name.removeprefix("agent:") or _NO_NAME)[:MAX_KEY]
            place = self._places[named] = FiledUnder(_key(facts.conversation) or own, agent)
        return place

    def count_once(self) -> None:
        """Leave out the tokens that another span also reports."""
        counted = {trace_id: trace.counted for trace_id, trace in self._traces.items()}
        answer_counting.count_once(self._items, self._by_id, counted)

    def _agent_around(self, span: Span) -> str:
        """Return the agent of the nearest span around one that names any; empty without one. Looked up once for all
        spans within the same one."""
        if not span.parent_id:
            return ""
        place = span.trace_id, span.parent_id
        if (name := self._around.get(place)) is None:
            name = self._around[place] = self._nearest_agent(*place, span.span_id)
        return name

    def _nearest_agent(self, trace_id: str, parent: str, span_id: str) -> str:
        agents, passed, name = self._traces[trace_id].agents, {span_id}, ""
        while not name and parent and parent not in passed:
            passed.add(parent)
            around = self._by_id.get((trace_id, parent))
            name = (around.facts.agent if around else "") or agents.get(parent, "")
            parent = around.span.parent_id if around else ""
        return name


def _service_of(span: Span) -> str:
    service = str(span.source.resource.get("service.name") or "")
    return "" if service.startswith("unknown_service") else service


def _key(conversation: str) -> str:
    """Return a conversation's id as the record can hold it; empty for none."""
    text = clean_text(conversation).strip()
    return text if len(text) <= MAX_KEY else f"{text[: MAX_KEY - 33]}…{span_events.digest(text)}"
