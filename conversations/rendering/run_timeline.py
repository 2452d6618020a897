"""Which agent worked in a run from when to when: agents and their stages, runs inside calls, waits for people. No
query.

A run is a list of spans, each with a bar on one scale. Long waits are shortened, so that work stays visible beside
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from conversations.core import hidden_characters
from conversations.events import registry
from conversations.events.log.records import Stored
from conversations.models.run import EXTERNAL
from conversations.rendering import event_rows, timestamps
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.rendering.timeline_rows import QUEUE_US, STATES, RequestedTools
from conversations.rendering.timestamps import When

SHOWN = 12  # spans of a run; earlier ones are counted
WIDTH = 1000.0  # of the scale
MIN_BAR_WIDTH = 8.0  # of a bar, so that it is seen
WAITED = 0.5  # a wait takes at most this part of what the work takes

_ENDS = registry.run_ends()
_WORDS = {"incompatible": "could not resume", "cancelled": "stopped"}
_EXTERNAL_WORDS = {"cancelled": "withdrawn", "done": "decided"}  # of a run that stands for an external agent's request


class TimelineSpan(NamedTuple):
    """One bar: its agent and stage, position and width; `since` instead of `took` while it is ongoing."""

    kind: str  # work, inner (a run inside a call), wait or queue
    mark: ParticipantMark | None
    words: str
    x: float
    width: float
    took: str
    since: When | None
    seq: int


class TimelineRun(NamedTuple):
    """A run: its outcome and its spans. `stop` is its id while it can be stopped."""

    state: str
    word: str
    agent: ParticipantMark
    took: str
    queued: When
    seq: int
    earlier: int
    spans: list[TimelineSpan]
    stop: str


@dataclass(slots=True)
class _Held:
    kind: str
    name: str
    words: str
    seq: int
    start: int  # µs UTC
    end: int | None = None


def lines(runs: Iterable[tuple[str, str, str, str]], events: Sequence[Stored]) -> list[TimelineRun]:
    """Return runs, given as (id, kind, agent, status), drawn from their events in seq order, without those that have
    none."""
    by_run: dict[str, list[Stored]] = {}
    for event in events:
        by_run.setdefault(event.run or "", []).append(event)
    return [_line(*run, by_run[run[0]]) for run in runs if run[0] in by_run]


def _line(run: str, kind: str, agent: str, status: str, events: Sequence[Stored]) -> TimelineRun:
    held = _Reader(agent).read(events)
    first, last = events[0], events[-1]
    is_over = last.kind in _ENDS
    shown = held[-SHOWN:]
    scale = _Scale(shown, last.at)
    return TimelineRun(
        state=STATES.get(status, "unknown"),
        word=(_EXTERNAL_WORDS if kind == EXTERNAL else _WORDS).get(status, status),
        agent=mark_for(f"agent:{agent}"),
        took=timestamps.duration((last.at - first.at) / 1000) if is_over else "",
        queued=_when(first.at),
        seq=first.seq,
        earlier=len(held) - len(shown),
        spans=[_span(entry, scale) for entry in shown],
        stop="" if is_over else hidden_characters.spelled_out(run),
    )


def _span(held: _Held, scale: _Scale) -> TimelineSpan:
    x, end = scale.at(held.start), scale.at(held.end if held.end is not None else scale.last)
    width = max(MIN_BAR_WIDTH, end - x)
    return TimelineSpan(
        kind=held.kind,
        mark=mark_for(f"agent:{held.name}") if held.name else None,
        words=hidden_characters.spelled_out(held.words)[:200] if held.words.casefold() != held.name.casefold() else "",
        x=round(min(x, WIDTH - width), 1),
        width=round(width, 1),
        took=timestamps.duration((held.end - held.start) / 1000) if held.end is not None else "",
        since=_when(held.start) if held.end is None else None,
        seq=held.seq,
    )


class _Reader:
    """Reads a run's events into spans."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._requested = RequestedTools()
        self._spans: list[_Held] = []
        self._open: _Held | None = None
        self._inner: dict[str, _Held] = {}

    def read(self, events: Sequence[Stored]) -> list[_Held]:
        """Return the spans in order of their starts."""
        for event in events:
            self._read(event)
        return sorted(self._spans, key=lambda held: (held.start, held.seq))

    def _read(self, event: Stored) -> None:
        body = event_rows.parse_event(event).body
        if event.kind == "run.queued" or event.kind == "run.resumed":
            self._begin("queue", event, "" if body.get("run_kind") == EXTERNAL else "waiting for a worker")
        elif event.kind == "run.started":
            self._begin("work", event, "")
        elif event.kind == "agent.handoff":
            self._agent = event_rows.line(body.get("to_agent")) or self._agent
            self._begin("work", event, "")
        elif event.kind == "approval.requested":
            self._requested.request(body)
        elif event.kind == "run.waiting":
            self._begin("wait", event, self._requested.words_of_wait(body))
        elif event.kind == "model.turn":
            self._turn(event, event_rows.line(body.get("parent_call")), event_rows.line(body.get("agent")))
        elif event.kind.endswith(".stage"):
            stage, parent, agent = (event_rows.line(body.get(name)) for name in ("stage", "parent_call", "agent"))
            self._inner_stage(event, parent, agent, stage) if parent else self._stage(event, stage)
        elif event.kind in _ENDS:
            self._end(event)

    def _begin(self, kind: str, event: Stored, label: str) -> None:
        self._end(event)
        self._open = _Held(kind, self._agent if kind == "work" else "", label, event.seq, event.at)
        self._spans.append(self._open)

    def _end(self, event: Stored) -> None:
        ended, self._open = self._open, None
        if ended is not None:
            ended.end = event.at
            if ended.kind == "queue" and ended.end - ended.start < QUEUE_US:
                self._spans.remove(ended)

    def _stage(self, event: Stored, text: str) -> None:
        """Set the stage of the current agent; a further stage of the same agent is a span of its own."""
        stage = text.replace("_", " ")
        if self._open is None or self._open.kind != "work" or self._open.words == stage:
            return
        if not self._open.words:
            self._open.words = stage
        else:
            self._begin("work", event, stage)

    def _turn(self, event: Stored, parent: str, agent: str) -> None:
        """Extend the run inside a call: it lasts from its first turn's start to its last turn's end."""
        if not parent:
            return
        duration_ms = event_rows.parse_event(event).payload.duration_ms
        inner = self._inner.get(parent)
        if inner is None or inner.name not in ("", agent):
            inner = self._begin_inner(parent, event, event.at - int((duration_ms or 0) * 1000))
        inner.name, inner.end = agent, event.at

    def _inner_stage(self, event: Stored, parent: str, agent: str, stage: str) -> None:
        """Set the stage of the run inside a call, the first one only: a stage set at its end is for after the call."""
        if parent not in self._inner:
            inner = self._begin_inner(parent, event, event.at)
            inner.name, inner.words = agent, stage.replace("_", " ")

    def _begin_inner(self, parent: str, event: Stored, start: int) -> _Held:
        inner = self._inner[parent] = _Held("inner", "", "inside a tool call", event.seq, start)
        self._spans.append(inner)
        return inner


class _Scale:
    """Maps time to positions; stretches in which nobody works are shortened."""

    def __init__(self, held: Sequence[_Held], last: int) -> None:
        self.last = last
        whole = [replace(entry, end=entry.end if entry.end is not None else last) for entry in held]
        marks = sorted({at for entry in whole for at in (entry.start, entry.end or last)})
        idle = [(entry.start, entry.end or last) for entry in whole if entry.kind in ("wait", "queue")]
        steps = [(a, b, any(x <= a and b <= y for x, y in idle)) for a, b in pairwise(marks)]
        work = sum(b - a for a, b, is_idle in steps if not is_idle) or 1
        most = max(1, int(work * WAITED / max(1, len(idle))))
        self._places = {marks[0]: 0.0} if marks else {}
        for a, b, is_idle in steps:
            self._places[b] = self._places[a] + (min(b - a, most) if is_idle else b - a)
        self._all = max(self._places.values(), default=1.0) or 1.0

    def at(self, moment: int) -> float:
        """Return the position of a moment at which something begins or ends."""
        return self._places.get(moment, 0.0) / self._all * WIDTH


def _when(at: int) -> When:
    return timestamps.of_event(at, "", {}).shown
