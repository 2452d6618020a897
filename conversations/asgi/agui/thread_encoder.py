"""Convert a conversation's events to the runs of our agents in it, one after another, as AG-UI events, each with a
cursor: `SEQ.N` is the Nth stream event made at the recorded event `SEQ`, `SEQ` all of them.

The protocol has one run open at a time, so the events of a run beside the open one are held until that one ends or
waits for a decision, and are streamed at the event that ends it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from ag_ui.core import RunAgentInput, UserMessage

from conversations.asgi.agui.run_encoder import (
    ENDS,
    Events,
    RunEncoder,
    RunSegment,
    as_sse,
    is_shown,
    is_streamed,
    read,
)
from conversations.core.errors import Invalid
from conversations.core.url_converters import whole_number
from conversations.events import payload, registry, response_ids
from conversations.events.log.records import Stored
from conversations.events.payload import clean_text

ASKING = registry.names_with("agent_input")
MAX_INPUTS = 50  # the newest ones, whose words are remembered until their runs begin
MAX_RUNS = 10_000  # that are queued or under way; those queued beyond them are not streamed
MAX_HELD = 4 << 20  # characters of the events of runs beside the open one; a run that exceeds them is left out
LAST = 1 << 30  # of the events that one event makes
MAX_SEQ = (1 << 53) - 1


class ThreadCursor(NamedTuple):
    """A position in the stream."""

    seq: int
    nth: int = LAST


class _LiveRun(NamedTuple):
    """A run that is queued or under way. `input_seq`: the event that it answers."""

    agent: str
    response: str
    input_seq: int


class ThreadEncoder:
    """Tracks the current run. `only`: the single run to stream; empty for all."""

    def __init__(self, key: str, after: ThreadCursor, only: str = "") -> None:
        self._key, self._after, self._only = key, after, only
        self.is_over = False
        self._inputs: OrderedDict[int, str] = OrderedDict()
        self._live: dict[str, _LiveRun] = {}
        self._run: RunEncoder | None = None
        self._segments: dict[str, tuple[int, RunEncoder]] = {}  # of runs under way: how many, the last one
        self._held_events: dict[str, list[Stored]] = {}  # by run, of runs beside the open one
        self._held_size = 0  # characters

    def encode(self, event: Stored) -> list[bytes]:
        """Return the stream events for an event after the cursor."""
        self._note(event)
        made = [*self._events_of(event), *self._release()]
        new = [(nth, streamed) for nth, streamed in enumerate(made) if ThreadCursor(event.seq, nth) > self._after]
        return [as_sse(streamed, f"{event.seq}.{nth}") for nth, streamed in new]

    def _note(self, event: Stored) -> None:
        """Remember the input of a run, and the run until its end."""
        if event.kind in ASKING:
            fields = payload.decoded(event.body)
            words = response_ids.words_of(fields.get("input")) or fields.get("content") or fields.get("text")
            self._inputs[event.seq] = words if isinstance(words, str) else ""
            while len(self._inputs) > MAX_INPUTS:
                self._inputs.popitem(last=False)
        elif event.kind == "run.queued" and event.run and len(self._live) < MAX_RUNS:
            fields = payload.decoded(event.body)
            if fields.get("run_kind", "agent") == "agent" and (not self._only or event.run == self._only):
                live_run = _LiveRun(
                    str(fields.get("agent")), fields.get("response_id") or "", fields.get("input_seq", 0)
                )
                self._live[event.run] = live_run

    def _events_of(self, event: Stored) -> Events:
        run = event.run
        if run is None or run not in self._live:
            return []
        if (encoder := self._open_run()) is not None and encoder.segment.run != run:
            self._hold(event, run)
            return []
        return self._stream(event, run)

    def _open_run(self) -> RunEncoder | None:
        return None if self._run is None or self._run.is_over else self._run

    def _stream(self, event: Stored, run: str) -> Events:
        """Return the stream events of an event whose run is open, or can begin."""
        begun = [] if self._open_run() is not None else self._begin(event, run)
        encoder = self._open_run()
        made = [*begun, *encoder.encode(event)] if encoder is not None else []
        if event.kind in ENDS:
            self._forget(run)
            self.is_over = bool(self._only)
        return made

    def _begin(self, event: Stored, run: str) -> Events:
        """Start the run, or its next segment, if the event is to be streamed."""
        if not is_streamed(event.kind):
            return []
        live_run, (count, before) = self._live[run], self._segments.get(run, (0, None))
        shown = f"{run}.{count + 1}" if count else run
        segment = RunSegment(self._key, shown, run, live_run.response, live_run.agent)
        if before is not None:
            calls, ended = frozenset(before.calls), frozenset(before.ended)
            segment = segment._replace(calls=calls, ended=ended, turns=before.finished_turns)
        self._run = RunEncoder(segment, before.interrupts if before is not None else ())
        self._segments[run] = count + 1, self._run
        words = self._inputs.get(live_run.input_seq, "")
        begun = self._run.begin(None if count else _input(self._key, shown, f"input_{run}", words))
        for streamed in begun:
            streamed.timestamp = event.at // 1000
        return begun

    def _hold(self, event: Stored, run: str) -> None:
        """Hold an event until no run is open. A run that another one only takes in has nothing to stream."""
        if event.kind == "run.delivered":
            self._forget(run)
        elif is_streamed(event.kind) and is_shown(event.kind, fields := read(event.body)):
            if event.kind == "output":
                self._drop_tokens(run, fields.turn)
            self._put_held(run, [event])
            if self._held_size > MAX_HELD:
                self._forget(run)

    def _release(self) -> Events:
        """Stream what was held of the run that came first, until nothing is held or a run remains open."""
        made: Events = []
        while self._held_events and self._open_run() is None:
            run = next(iter(self._held_events))
            held = self._take_held(run)
            for at, event in enumerate(held):
                if at and self._open_run() is None:  # it waits for a decision, or is over
                    self._put_held(run, held[at:])
                    break
                made += self._stream(event, run)
        return made

    def _drop_tokens(self, run: str, turn: int | None) -> None:
        """Drop the tokens of a turn, since its output contains them."""
        held = self._held_events.get(run, [])
        left = [event for event in held if event.kind != "token" or read(event.body).turn != turn]
        self._held_size += _size_of(left) - _size_of(held)
        held[:] = left

    def _put_held(self, run: str, events: list[Stored]) -> None:
        if run in self._live:
            self._held_events.setdefault(run, []).extend(events)
            self._held_size += _size_of(events)

    def _take_held(self, run: str) -> list[Stored]:
        events = self._held_events.pop(run, [])
        self._held_size -= _size_of(events)
        return events

    def _forget(self, run: str) -> None:
        self._live.pop(run, None)
        self._segments.pop(run, None)
        self._take_held(run)


def _size_of(events: Sequence[Stored]) -> int:
    return sum(len(event.body) for event in events)


def cursor_of(text: str) -> ThreadCursor:
    """Parse a cursor. Raises Invalid."""
    seq, _, nth = text.partition(".")
    if len(text) > 40 or (nth and not (nth.isascii() and nth.isdecimal() and len(nth) < 9)):
        raise Invalid("must be the id of an event of this stream", field="after")
    return ThreadCursor(whole_number(seq, "after", 0, MAX_SEQ), int(nth) if nth else LAST)


def _input(thread: str, run: str, id_: str, words: str) -> RunAgentInput | None:
    """Return the input to send to clients that did not send it themselves; None if its text is unknown."""
    if not words:
        return None
    message = UserMessage(id=id_, content=clean_text(words))
    return RunAgentInput(thread_id=thread, run_id=run, messages=[message], tools=[], context=[])
