"""Event → HTML, no query (§1): an `EventRenderer` draws one conversation's events in seq order, each by
`event_rows.draw` or from its cache. Called by pages and, live, by `LiveRenderer`."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.errors import SwitchboardError
from conversations.events import payload
from conversations.events.log.call_events import STEPS
from conversations.events.log.records import CallEvents, Cut, Stored
from conversations.events.payload import ParsedPayload
from conversations.events.projections import ECHOING, SpokenMessages
from conversations.events.types.redaction import redactions_of
from conversations.rendering import (
    annotation_rows,
    control_action_rows,
    event_rows,
    fork_rows,
    offered_tools,
    participant_marks,
    response_rows,
    run_rows,
    tool_call_block,
    transport_rows,
)
from conversations.rendering.event_rows import Repeat
from conversations.rendering.participant_marks import ParticipantMark
from conversations.rendering.render_cache import DrawnCache

logger = logging.getLogger(__name__)

# Imported for their views, which event types name.
ROWS = (annotation_rows, control_action_rows, event_rows, fork_rows, response_rows, run_rows, transport_rows)
_cache = DrawnCache()


class Fragment(NamedTuple):
    """A drawn event. `html` replaces the block of `group` or is appended; `text` is added to that block's text.

    - `within`: the group of the tool call's block that this event belongs inside. Empty: none.
    - `ends`: only for lanes, the sender (whose lane it is in) and the recipient (to whom its arrow points), if any.
    - `also`: new HTML of earlier events' blocks that this event changed, by group.
    - `opens`: with the first token of a group, the empty block, for a client that does not show this group yet.
    """

    group: str | None = None
    html: Markup | None = None
    text: str | None = None
    opens: Markup | None = None
    also: tuple[tuple[str, Markup], ...] = ()
    within: str = ""
    ends: tuple[ParticipantMark, ParticipantMark | None] | None = None


class EventRenderer:
    """Draws the events of one conversation, given in seq order, and tracks the groups they belong to (§3.5).

    `preview_after` is the seq of the last output without a run before the first event to draw; `before` are earlier
    events that decide what is drawn as a repetition (`log.neighbours`).
    """

    cache_variant = ""  # part of the cache key, for a subclass that draws differently

    def __init__(self, conversation: str, preview_after: int = 0, before: Iterable[Stored] = ()) -> None:
        self.conversation = conversation
        self._preview_after = preview_after
        self._repeats = RepeatWatch(before)
        self._opened: set[str] = set()

    def draw(self, event: Stored, call: CallEvents | None = None, ended: Sequence[CallEvents] = ()) -> Fragment:
        """Draw the next event; a step of a call needs its `call`, so that it is one block with the other steps. `ended`
        are calls that the event ended without being one of their steps (the end of their run).

        An event that cannot be drawn affects nothing else: its place and its text are shown.
        """
        try:
            repeat = self._repeats.of(event)
            fragment = self._draw(event, call, repeat)
            if within := event_rows.parent_group(call.called if call else event):
                fragment = fragment._replace(within=within)
            if ended:
                fragment = fragment._replace(also=tuple(self._block(ended_call) for ended_call in ended))
        except Exception:
            logger.exception("event %s of %r could not be drawn", event.seq, event.conversation)
            fragment = Fragment(html=self._failed(event))
        return fragment

    def _draw(self, event: Stored, call: CallEvents | None, repeat: Repeat) -> Fragment:
        if event.kind == "token":
            return self._token(event)
        is_step = event.kind == "tool_step" or (call is not None and event.kind in STEPS)
        return self._call(event, call) if is_step else self._event(event, repeat)

    def group(self, event: Stored) -> str:
        """Return the block of a token, or of an output to come."""
        if event.run is not None:
            return f"turn:{event.run}:{event.turn or 0}"
        return f"stream:{self.conversation}:{self._preview_after}"

    def open_block(self, group: str, text: str, event: Stored, cut: Cut | None = None) -> Markup:
        """Draw the block of a turn that is still being written: `text` so far, `event` its first token, `cut` what is
        left out before the text."""
        return event_rows.open_turn(event, group, text, cut)

    def _token(self, event: Stored) -> Fragment:
        group = self.group(event)
        opens = None if group in self._opened else self.open_block(group, "", event)
        self._opened.add(group)
        text = hidden_characters.spelled_out(_payload(event).text or "")
        return Fragment(group, text=text, opens=opens)

    def _call(self, event: Stored, call: CallEvents | None) -> Fragment:
        if call is not None:
            return Fragment(*self._block(call))
        lone = tool_call_block.lone(event)
        return Fragment(None, self._drawn(lone, None))

    def _block(self, call: CallEvents) -> tuple[str, Markup]:
        group = f"call:{call.id}"
        return group, self._drawn(call, group)

    def _drawn(self, call: CallEvents, group: str | None) -> Markup:
        key = (self.conversation, call.seqs, call.called.at, call.id, call.status, self.cache_variant)
        return _cache.get(key, self.conversation, call.seqs, partial(self._render_call, call, group))

    def _render_call(self, call: CallEvents, group: str | None) -> Markup:
        return tool_call_block.draw(call, group)

    def _render_event(self, event: Stored, group: str | None, repeat: Repeat) -> Markup:
        return event_rows.draw(event, group, repeat)

    def _failed(self, event: Stored) -> Markup:
        return event_rows.draw_failed(event)

    def _event(self, event: Stored, repeat: Repeat) -> Fragment:
        group = self._turn(event) if event.kind == "output" else None
        names = offered_tools.learned() if event.kind == "model.turn" else 0
        key = (self.conversation, event.seq, event.at, group, repeat, names, self.cache_variant)
        make = partial(self._render_event, event, group, repeat)
        return Fragment(group, _cache.get(key, self.conversation, (event.seq,), make))

    def _turn(self, output: Stored) -> str | None:
        """Return the block that this output ends; None if it is from before `preview_after`, so no block is left to
        replace."""
        if output.run is None and output.seq <= self._preview_after:
            return None
        group = self.group(output)
        self._opened.discard(group)
        if output.run is None:
            self._preview_after = output.seq
        return group


class RepeatWatch:
    """Recognizes events that repeat another event's text; it must see every event in order."""

    def __init__(self, before: Iterable[Stored] = ()) -> None:
        self._previous: Stored | None = None
        self._spoken = SpokenMessages()
        for event in before:
            self.of(event)

    def of(self, event: Stored) -> Repeat:
        """Take in the next event and return how it repeats an earlier one. An envelope is the `same` as the output
        right before it, or is `named` by it; a `user_message` is the `same` as its sender's envelope."""
        previous, self._previous = self._previous, event
        parsed = _payload(event) if event.kind in ECHOING else ParsedPayload()
        if self._spoken.is_echo(event.seq, event.kind, parsed):
            return "same"
        if event.kind != "message":
            return ""
        if previous is not None and previous.kind == "output" and previous.seq == event.seq - 1:
            output = _payload(previous)
            is_same = output.speaker in ("", parsed.speaker) and parsed.words == output.words  # as it is counted
            if is_same and not (parsed.metadata is not None and parsed.metadata.repeats_nothing):
                return "same"
        return "named" if parsed.metadata is not None and parsed.metadata.output_id else ""


def _payload(event: Stored) -> ParsedPayload:
    """Parse a body as `event_rows.parse_event` does, without its other fields."""
    try:
        return payload.parse(event.body.encode("utf-8", "replace"))
    except (SwitchboardError, ValueError, RecursionError):
        return ParsedPayload()


def remember_hues(hues: Mapping[str, int]) -> None:
    """Set agents' colors; drawings in other colors are dropped."""
    if participant_marks.remember_hues(hues):
        event_rows.drawn_voice.cache_clear()
        _cache.clear()


def forget(conversation: str, seq: int) -> None:
    """Drop the cached drawings of an event, because it was redacted."""
    _cache.forget(conversation, seq)


def forget_redacted(event: Stored) -> None:
    """Drop the cached drawings of the events that an `event.redacted` names."""
    for redacted in redactions_of(event.body):
        forget(event.conversation, redacted.seq)
