"""Convert a conversation's events to the runs of our agents in it, one after another, as AG-UI events, each with a
cursor: `SEQ.N` is the Nth stream event made from the recorded event `SEQ`, `SEQ` all of them."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from ag_ui.core import RunAgentInput, UserMessage

from conversations.asgi.agui.run_encoder import ENDS, Events, RunEncoder, RunSegment, as_sse, is_told
from conversations.core.errors import Invalid
from conversations.core.url_converters import whole_number
from conversations.events import payload, registry, response_ids
from conversations.events.log.records import Stored
from conversations.events.payload import clean_text

ASKING = registry.names_with("agent_input")
MAX_INPUTS = 50  # the newest ones, whose words are remembered until their runs begin
MAX_RUNS = 10_000  # that are queued or under way; those queued beyond them are not streamed
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
        self._count = 0  # stretches of this run

    def take(self, event: Stored) -> list[bytes]:
        """Return the stream events for an event after the cursor."""
        self._note(event)
        made = self._events_of(event)
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
        if self._run is None or self._run.segment.run != run or self._run.is_over:
            begun = self._begin(event, run)
            if not begun:
                return self._ended(event, [])
            assert self._run is not None
            return self._ended(event, [*begun, *self._run.take(event)])
        return self._ended(event, self._run.take(event))

    def _begin(self, event: Stored, run: str) -> Events:
        """Start the run, or its next segment, if part of it is to be streamed and no other run is open."""
        if not is_told(event.kind) or (self._run is not None and not self._run.is_over):
            return []
        live_run, before = self._live[run], self._run
        is_next = before is not None and before.segment.run == run
        self._count = self._count + 1 if is_next else 1
        shown = run if self._count == 1 else f"{run}.{self._count}"
        calls, ended = (before.calls, before.ended) if is_next and before is not None else (set(), set())
        earlier = (
            frozenset(calls),
            frozenset(ended),
            before.finished_turns if is_next and before is not None else frozenset(),
        )
        segment = RunSegment(self._key, shown, run, live_run.response, live_run.agent, *earlier)
        candidate = RunEncoder(segment)
        words = self._inputs.get(live_run.input_seq, "")
        echo = _input(self._key, shown, f"input_{run}", words) if self._count == 1 else None
        begun = candidate.begin(echo)
        for streamed in begun:
            streamed.timestamp = event.at // 1000
        self._run = candidate
        return begun

    def _ended(self, event: Stored, made: Events) -> Events:
        if event.kind in ENDS:
            self._live.pop(str(event.run), None)
            self.is_over = bool(self._only)
        return made


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
