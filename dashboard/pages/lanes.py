"""The lanes of a conversation: a column for each voice, a card for each event. Called by the conversation page."""

from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup

from conversations.events import log
from conversations.rendering.jinja_environment import macro
from conversations.rendering.participant_marks import ParticipantMark
from dashboard.pages.conversation_entries import Ends, cards_of

MAX_ITEMS = 40  # lanes; who comes later shares the last one (static/css/lanes.css, static/js/lane-heads.js)


class Lanes(NamedTuple):
    """Who has a lane, in the order of the page's first words, and the cards in their places."""

    heads: list[ParticipantMark]
    cards: list[Markup]
    are_shared: bool  # the last lane is that of all others


def lanes_of(page: log.EventWindow) -> Lanes:
    """Draw a page of the history in lanes."""
    cards = cards_of(page)
    voices = {voice.key: voice for _, ends in cards for voice in ends if voice is not None}
    at = {key: min(n, MAX_ITEMS) for n, key in enumerate(voices, 1)}
    are_shared = len(voices) > MAX_ITEMS
    heads = list(voices.values())[: MAX_ITEMS - 1 if are_shared else MAX_ITEMS]
    return Lanes(heads, _placed(cards, at), are_shared)


def cards_alone(page: log.EventWindow) -> list[Markup]:
    """Draw a page of the history without places: the reader's page knows the lanes."""
    return [html for html, _ in cards_of(page)]


def _placed(cards: Iterable[tuple[Markup, Ends]], at: dict[str, int]) -> list[Markup]:
    slot = macro("events/lane.html", "place")
    empty = Markup(slot())
    return [html.replace(empty, Markup(slot(*_place(ends, at))), 1) for html, ends in cards]


def _place(ends: Ends, at: dict[str, int]) -> tuple[int, int | str, str]:
    sender, recipient = at[ends[0].key], at[ends[1].key] if ends[1] is not None else 0
    if not recipient or recipient == sender:
        return sender, "", ""
    return sender, recipient, "on" if recipient > sender else "back"
