"""Draw a conversation's events for its feed, as they are committed or for who catches up. Called in threads by the hub,
which pushes what is drawn to the feed (`feed.py`). `EventRenderer.draw` (`rendering/event_renderer.py`) draws one
event: by its type (`event_rows.py`), or from its cache."""

from collections.abc import Sequence

from conversations.events import log
from conversations.events.log.records import Stored
from conversations.events.types.redaction import REDACTED
from conversations.realtime import frames
from conversations.rendering import agent_colors, conversation_hues, event_renderer, participant_marks
from conversations.rendering.event_renderer import EventRenderer
from conversations.rendering.lane_cards import LaneRenderer
from conversations.tool_calls import tool_name_cache

_RENDERERS = {"lanes": LaneRenderer}  # by the mode; any other draws transcripts


class LiveRenderer:
    """Draws a conversation's events in series, and starts again if events are missing between two. Runs in a thread."""

    def __init__(self, key: str, mode: str = "html") -> None:
        self._key = key
        self._make_renderer = _RENDERERS.get(mode, EventRenderer)
        self._renderer: EventRenderer | None = None
        self._hues = conversation_hues.ConversationHues("")
        self._last = 0

    def draw(self, events: Sequence[Stored]) -> list[tuple[int, str]]:
        """Return each event as (seq, JSON of §3.5), or only the first of them if their calls need too much data."""
        if not events:
            return []
        try:
            calls = log.calls_of(self._key, events)
        except log.TooManyBytes:
            return self.draw(events[: len(events) // 2])
        if self._renderer is None or events[0].seq != self._last + 1:
            before = log.neighbours(self._key, events[0].seq)
            self._hues = conversation_hues.of_conversation(self._key)
            preview_after = log.preview_before(self._key, events[0].seq - 1)
            self._renderer = self._make_renderer(self._key, preview_after, before)
        for event in events:
            if event.kind == REDACTED:  # whoever redacted may be another process
                event_renderer.forget_redacted(event)
        agent_colors.refresh_colors()
        tool_name_cache.load_names(events)
        self._last = events[-1].seq
        ended = log.ended_by(self._key, events)
        with participant_marks.in_conversation(conversation_hues.follow(self._key, self._hues, events)):
            return [
                (
                    event.seq,
                    frames.drawn(event, self._renderer.draw(event, calls.get(event.seq), ended.get(event.seq, ()))),
                )
                for event in events
            ]
