"""The lanes of a conversation: a column per participant, a card per event. Called by the conversation page."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from conversations.events import log
from conversations.rendering.jinja_environment import macro
from conversations.rendering.participant_marks import ParticipantMark
from dashboard.pages.conversation_entries import NO_NOTES, Ends, Notes, cards_of
from dashboard.pages.row_separators import separated

MAX_OWN_LANES = 12  # participants who all have a lane (static/js/lane-places.js)
MAX_LANES = 40  # lanes (static/css/lanes.css)
WINDOW = 28  # cards that are about in view: where participants are many, theirs have lanes


class Lanes(NamedTuple):
    """The participants with a lane, in order of their first event in the window, then the tools, and the cards with
    their positions."""

    heads: list[ParticipantMark]
    cards: list[Markup]
    others: int  # who share the last lane

    @property
    def first_tool(self) -> int:
        """Return the number of the first lane of tools, from 1; 0 without one."""
        return next((n for n, head in enumerate(self.heads, 1) if head.kind == "tool"), 0)


def lanes_of(page: log.EventWindow, notes: Notes = NO_NOTES, event: int = 0) -> Lanes:
    """Draw a window of events in lanes; scrolled to the cards around `event`, else to the newest."""
    cards = cards_of(page, notes)
    voices = _voices(ends for _, ends in cards)
    active = voices if len(voices) <= MAX_OWN_LANES else _voices(ends for _, ends in _in_view(cards, event))
    heads = [voice for key, voice in voices.items() if key in active][: MAX_LANES - 1]
    at = {voice.key: n for n, voice in enumerate(heads, 1)}
    placed = _placed(cards, {key: at.get(key, len(heads) + 1) for key in voices})
    return Lanes(heads, separated(placed), len(voices) - len(heads))


def cards_alone(page: log.EventWindow, notes: Notes = NO_NOTES) -> list[Markup]:
    """Draw the cards of a window without positions, for a page that already has its lanes."""
    return [html for html, _ in cards_of(page, notes)]


def _voices(ends: Iterable[Ends]) -> dict[str, ParticipantMark]:
    voices = {voice.key: voice for both in ends for voice in both if voice is not None}
    return dict(sorted(voices.items(), key=lambda item: item[1].kind == "tool"))


def _in_view(cards: Sequence[tuple[Markup, Ends]], event: int) -> Sequence[tuple[Markup, Ends]]:
    around = next((n for n, (html, _) in enumerate(cards) if f' id="e{event}"' in html), None) if event else None
    start = len(cards) - WINDOW if around is None else around - WINDOW // 2
    return cards[max(0, min(start, len(cards) - WINDOW)) :][:WINDOW]


def _placed(cards: Iterable[tuple[Markup, Ends]], at: dict[str, int]) -> list[Markup]:
    slot = macro("events/lane_card.html", "place")
    return [html.replace(slot(), slot(*_place(ends, at)), 1) for html, ends in cards]


def _place(ends: Ends, at: dict[str, int]) -> tuple[int, int | str, str]:
    sender, recipient = at[ends[0].key], at[ends[1].key] if ends[1] is not None else 0
    if not recipient or recipient == sender:
        return sender, "", ""
    return sender, recipient, "on" if recipient > sender else "back"
