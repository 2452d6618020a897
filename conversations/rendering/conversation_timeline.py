"""A whole conversation along time: runs, the agents in them, turns, calls, waits, runs inside calls, messages. No
query.

`layout` computes plain rows from any number of events; `timeline_drawing` draws one window of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from conversations.events import payload, registry
from conversations.events.log.records import Stored
from conversations.events.log.timeline_reads import CallTimes, RunTimes, TimelineEvents
from conversations.events.projections import SpokenMessages, mark_output, repeats_output
from conversations.events.response_ids import words_of
from conversations.models.run import EXTERNAL
from conversations.rendering import timeline_external, timeline_scale
from conversations.rendering.event_rows import ParsedEvent, author, line, parse_event
from conversations.rendering.timeline_rows import QUEUE_US, STATES, ModelTime, RequestedTools, TimelineRow, call_row
from conversations.rendering.timeline_scale import TimelineScale, scale_of

ENDS = registry.run_ends()
AGENT_INPUT = registry.names_with("agent_input")
OF_TURN = ("model.call", "output")
DEPTHS = 5  # that are indented; what is deeper stands at the last
BAD = ("failed", "unknown")
KINDS = {"replay": "replay", EXTERNAL: "approval request"}  # of a run; one of ours is a run


class TimelineTotals(NamedTuple):
    """The total duration and its parts, in µs; what overlaps in a part counts once. `is_waiting`: a wait goes on."""

    whole: int
    models: int
    tools: int
    waits: int
    is_waiting: bool = False


class TimelineLayout(NamedTuple):
    """All rows in order, their scale, and the first and last moment (µs UTC; event numbers without `is_timed`)."""

    rows: list[TimelineRow]
    scale: TimelineScale
    first: int
    last: int
    totals: TimelineTotals
    is_timed: bool = True

    def row_of(self, seq: int) -> int:
        """Return the number of the row an event belongs to: the innermost row around it, else the row before."""
        best = 0
        for n, row in enumerate(self.rows):
            if row.seq == seq or row.last_seq == seq:
                return n
            if row.seq < seq and (row.last_seq >= seq or self.rows[best].last_seq < seq):
                best = n
        return best


def layout(read: TimelineEvents, *, failures: bool = False, upto: int = 0) -> TimelineLayout:
    """Compute the rows; with `failures` only rows that failed, and those around them. `upto`: the moment until which
    ongoing waits are drawn (µs UTC), by default that of the last event."""
    calls, events = _Calls(read.calls), _SortedEvents(read.events)
    rows = [[_message(message)] for message in events.messages]
    runs = {run.id: run for run in read.runs}
    for run, of_run in events.by_run.items():
        rows.append(_RunReader(runs.get(run), calls.of_run(run)).rows(of_run))
    external, rest, outputs = timeline_external.rows(events.steps, events.turns, calls.take_rest(events.by_run))
    rows += external + [[call_row(call, 0)] for call in rest]
    rows += [[_message(parse_event(event))] for event in outputs if event.seq not in events.repeated]
    rows.sort(key=lambda block: (block[0].seq, block[0].start))
    rows = rows if read.is_timed else [[_in_order(row) for row in block] for block in rows]
    flat = [row for block in rows for row in (_with_failures(block) if failures else block)]
    everything = [row for block in rows for row in block]
    first = min((row.start for row in everything), default=0)
    newest = max((row.end or row.start for row in everything), default=first)
    if any(row.end is None for row in everything):  # goes on, at least until the last event
        newest = max(read.last_at, newest)
    last = max(upto, newest) if everything else first
    scale = scale_of(_busy(everything, newest), first, last)
    return TimelineLayout(flat, scale, first, last, _totals(everything, first, last), read.is_timed)


def _message(read: ParsedEvent) -> TimelineRow:
    """Return the row of what a participant said; of a client's request with the last words of its input."""
    event, text = read.event, line(read.payload.words or words_of(read.body.get("input")))
    sender = line(author(read)) or "system"
    return TimelineRow(
        *("message", 0, sender, " ".join(text.split()), event.at, event.at, event.seq, event.seq),
        principal=event.principal,
    )


def _in_order(row: TimelineRow) -> TimelineRow:
    """Return a row of a record without times, from its first event to its last."""
    return row._replace(start=row.seq, end=row.last_seq, turns=())


def _with_failures(block: Sequence[TimelineRow]) -> list[TimelineRow]:
    """Return the rows that failed, and those around them."""
    shown: list[TimelineRow] = []
    depth = -1  # below which a row is around one that is shown
    for row in reversed(block):
        if row.state in BAD or row.depth < depth:
            shown.append(row)
            depth = row.depth
    return shown[::-1]


def _busy(rows: Iterable[TimelineRow], last: int) -> Iterable[tuple[int, int]]:
    for row in rows:
        if row.kind in ("agent", "call") and row.state != "waiting":
            yield row.start, row.end if row.end is not None else last
        elif row.kind != "run":
            yield row.start, row.start  # that a wait began is a moment; the wait itself is folded


def _totals(rows: Sequence[TimelineRow], first: int, last: int) -> TimelineTotals:
    models = timeline_scale.covered((turn.start, turn.end) for row in rows for turn in row.turns)
    tools = timeline_scale.covered((row.start, row.end or row.start) for row in rows if row.kind == "call")
    waits = [row for row in rows if row.kind == "wait"]
    waited = timeline_scale.covered((row.start, last if row.end is None else row.end) for row in waits)
    return TimelineTotals(last - first, models, tools, waited, any(row.end is None for row in waits))


class _SortedEvents:
    """Events by what they are drawn as: messages, events of our runs, steps and turns of runs of external programs."""

    def __init__(self, events: Iterable[Stored]) -> None:
        self.messages: list[ParsedEvent] = []
        self.by_run: dict[str, list[tuple[Stored, Mapping[str, Any]]]] = {}
        self.steps: list[tuple[Stored, Mapping[str, Any]]] = []
        self.turns: list[tuple[Stored, Mapping[str, Any]]] = []
        self.repeated: set[int] = set()  # outputs that were sent as messages right after
        self._spoken = SpokenMessages()
        self._output, self._output_mark = 0, ""  # the last one, of no run
        for event in events:
            self._add(event, payload.fields_of(event.body))

    def _add(self, event: Stored, body: Mapping[str, Any]) -> None:
        if event.kind in AGENT_INPUT:
            self._add_message(parse_event(event))
        elif event.run:
            self.by_run.setdefault(event.run, []).append((event, body))
        elif timeline_external.is_step(event, body):
            self.steps.append((event, body))
        elif event.kind in OF_TURN:
            self.turns.append((event, body))
            if event.kind == "output":
                output = parse_event(event).payload
                self._output, self._output_mark = event.seq, mark_output(output.speaker, output.words)

    def _add_message(self, read: ParsedEvent) -> None:
        event = read.event
        if self._spoken.is_echo(event.seq, event.kind, read.payload):
            return
        self.messages.append(read)
        is_next = event.kind == "message" and self._output == event.seq - 1
        if is_next and repeats_output(read.payload, self._output_mark):
            self.repeated.add(self._output)


class _Calls:
    """Tool calls by their runs."""

    def __init__(self, calls: Iterable[CallTimes]) -> None:
        self._by_run: dict[str, list[CallTimes]] = {}
        for call in calls:
            self._by_run.setdefault(call.run or "", []).append(call)

    def of_run(self, run: str) -> list[CallTimes]:
        return self._by_run.get(run, [])

    def take_rest(self, runs: Mapping[str, object]) -> list[CallTimes]:
        """Return the calls of runs that are not drawn."""
        return [call for run, calls in self._by_run.items() if run not in runs for call in calls]


class _Held:
    """A stretch of a run while it is read: the agent in it, or what it waited for."""

    def __init__(self, kind: str, name: str, words: str, event: Stored) -> None:
        self.kind, self.name, self.words = kind, name, words
        self.seq, self.last_seq, self.start = event.seq, event.seq, event.at
        self.first_seq = event.seq  # of its row
        self.end: int | None = None
        self.turns: list[ModelTime] = []
        self.inner: list[_Inner] = []


class _Inner(_Held):
    """A run inside a call."""

    def __init__(self, parent: str, name: str, event: Stored, start: int) -> None:
        super().__init__("agent", name, "", event)
        self.parent, self.start = parent, start


class _RunReader:
    """Reads one run's events into rows: the run, its agents one after the other, calls and waits within."""

    def __init__(self, row: RunTimes | None, calls: Sequence[CallTimes]) -> None:
        self._row, self._calls = row, calls
        self._agent = row.agent if row else ""
        self._requested = RequestedTools()
        self._stretches: list[_Held] = []
        self._open: _Held | None = None
        self._is_over = False
        self._inner: dict[str, _Inner] = {}

    def rows(self, events: Sequence[tuple[Stored, Mapping[str, Any]]]) -> list[TimelineRow]:
        """Return the run's row and those within it, in order."""
        for event, body in events:
            self._read(event, body)
        first, last = events[0][0], events[-1][0]
        start = min([first.at, *(held.start for held in self._stretches)])
        end = max(event.at for event, _ in events) if self._is_over else None
        status = self._row.status if self._row else "running" if end is None else "done"
        name = f"agent:{self._agent_of(events)}"
        last_seq = max([last.seq, *(call.finished_seq or 0 for call in self._calls)])
        run = TimelineRow(
            *("run", 0, name, KINDS.get(self._row.kind if self._row else "", "run"), start),
            *(end, first.seq, last_seq, STATES.get(status, "")),
        )
        return [run, *self._within()]

    def _agent_of(self, events: Sequence[tuple[Stored, Mapping[str, Any]]]) -> str:
        return (self._row.agent if self._row else "") or line(events[0][1].get("agent")) or self._agent or "unknown"

    def _read(self, event: Stored, body: Mapping[str, Any]) -> None:
        kind = event.kind
        if self._open is not None:
            self._open.last_seq = event.seq
        if kind in ("run.queued", "run.resumed"):
            self._begin("queue", event, "", "" if body.get("run_kind") == EXTERNAL else "waiting for a worker")
        elif kind == "run.started":
            self._begin("agent", event, self._agent or line(body.get("agent")))
        elif kind == "agent.handoff":
            self._agent = line(body.get("to_agent")) or self._agent
            self._begin("agent", event, self._agent)
        elif kind == "approval.requested":
            self._requested.request(body)
        elif kind == "run.waiting":
            self._begin("wait", event, "", self._requested.words_of_wait(body))
        elif kind == "model.turn":
            self._turn(event, body)
        elif kind.endswith(".stage"):
            self._stage(body)
        elif kind in ENDS:
            self._end(event)
            self._is_over = True

    def _begin(self, kind: str, event: Stored, name: str, words: str = "") -> None:
        self._end(event)
        self._is_over = False
        self._open = _Held(kind, name, words, event)
        self._stretches.append(self._open)

    def _end(self, event: Stored) -> None:
        ended, self._open = self._open, None
        if ended is None:
            return
        ended.end = event.at
        if ended.kind == "queue" and ended.end - ended.start < QUEUE_US:
            self._stretches.remove(ended)

    def _turn(self, event: Stored, body: Mapping[str, Any]) -> None:
        took = body.get("duration_ms")
        start = event.at - int(took * 1000) if isinstance(took, int | float) and 0 <= took < 1e9 else event.at
        parent, agent = line(body.get("parent_call")), line(body.get("agent"))
        if not parent:
            held = self._of_turn(event, agent, start)
            held.turns.append(ModelTime(max(start, held.start), event.at, event.seq))
            return
        inner = self._inner.get(parent)
        if inner is None or inner.name != agent:
            inner = self._inner[parent] = _Inner(parent, agent, event, start)
            if self._open is not None:
                self._open.inner.append(inner)
        inner.turns.append(ModelTime(start, event.at, event.seq))
        inner.end, inner.last_seq = event.at, event.seq

    def _of_turn(self, event: Stored, agent: str, start: int) -> _Held:
        """Return the stretch of a turn: of one reported after the run's end the last one, of one whose run began before
        what was read a new one."""
        held = self._open or next((held for held in reversed(self._stretches) if held.kind == "agent"), None)
        if held is None:
            held = _Held("agent", agent or self._agent, "", event)
            held.start, held.end = start, event.at if self._is_over else None
            self._open = None if self._is_over else held
            self._stretches.append(held)
        return held

    def _stage(self, body: Mapping[str, Any]) -> None:
        stage = line(body.get("stage")).replace("_", " ")
        if not body.get("parent_call") and self._open is not None and self._open.kind == "agent":
            self._open.words = stage if stage.casefold() != self._open.name.casefold() else ""

    def _within(self) -> Iterable[TimelineRow]:
        waiting = self._take_waiting()
        left = sorted((call for call in self._calls if call not in waiting), key=lambda call: call.place_seq)
        for held, following in zip_longest(self._stretches, self._stretches[1:]):
            until = following.seq if following else 1 << 62
            yield self._row_of(held, 1)
            mine = [call for call in left if call.place_seq < until]
            left = left[len(mine) :]
            yield from self._calls_within(mine, held.inner, 2)
        for call in left:
            yield call_row(call, 1)

    def _take_waiting(self) -> list[CallTimes]:
        """Return the calls that the run waits for now: the row of its wait stands for them, from the first one on."""
        last = self._stretches[-1] if self._stretches else None
        if last is None or last.kind != "wait" or last.end is not None:
            return []
        waiting = [call for call in self._calls if call.status == "waiting"]
        last.first_seq = min([last.seq, *(call.called_seq for call in waiting)])
        return waiting

    def _calls_within(self, calls: Sequence[CallTimes], inner: Sequence[_Inner], depth: int) -> Iterable[TimelineRow]:
        """Yield the calls in order; those of an agent inside a call are in that agent's row."""
        nested: dict[str, list[CallTimes]] = {}
        outer: list[CallTimes] = []
        by_parent: dict[str, list[_Inner]] = {}
        for within in inner:
            by_parent.setdefault(within.parent, []).append(within)
        for call in calls:
            around = next((o for o in reversed(outer) if _holds(o, call) and _speaks(by_parent, o, call)), None)
            if around is None:
                outer.append(call)
            else:
                nested.setdefault(around.id, []).append(call)
        for call in outer:
            yield call_row(call, depth)
            for within in by_parent.pop(call.id, []):
                yield self._row_of(within, depth + 1)
            for inner_call in nested.get(call.id, []):
                yield call_row(inner_call, depth + 2)
        for left in by_parent.values():
            for within in left:
                yield self._row_of(within, depth)

    def _row_of(self, held: _Held, depth: int) -> TimelineRow:
        state = "waiting" if held.kind == "wait" and held.end is None else ""
        name = f"agent:{held.name}" if held.name else ""
        return TimelineRow(
            *(held.kind, depth, name, held.words, held.start, held.end, held.first_seq, held.last_seq, state),
            turns=tuple(held.turns),
        )


def _holds(outer: CallTimes, call: CallTimes) -> bool:
    return outer.called_seq < call.called_seq < (outer.finished_seq or 1 << 62)


def _speaks(by_parent: Mapping[str, Sequence[_Inner]], outer: CallTimes, call: CallTimes) -> bool:
    return any(inner.name == call.agent for inner in by_parent.get(outer.id, ()))
