"""Draw the entries of a page of history, with the turns that are still being written. For the conversation page."""

import re
from collections.abc import Mapping
from heapq import merge
from itertools import zip_longest
from operator import attrgetter
from types import MappingProxyType

from markupsafe import Markup

from conversations.conversation.delivery_status import DeliveryStatus
from conversations.events.log import EventWindow, Stored
from conversations.rendering.event_renderer import EventRenderer, Fragment
from conversations.rendering.jinja_environment import macro
from conversations.rendering.lane_cards import LaneRenderer
from conversations.rendering.participant_marks import ParticipantMark
from conversations.tool_calls import tool_name_cache

HEAD = 4000  # characters of a card, in which its element begins
_FOLDED = re.compile(r' data-folds="(\d+)"')
Ends = tuple[ParticipantMark, ParticipantMark | None]


def entries_of(page: EventWindow, deliveries: Mapping[int, DeliveryStatus] = MappingProxyType({})) -> list[Markup]:
    """Draw a page in seq order; the tokens of an open turn are one block, where its first one stands.

    What happened inside a call stands in the call's block, when that is on this page. `deliveries` is what became of
    messages, by their seqs: it stands under them.
    """
    return [
        entry.drawn()
        for entry in _sheet_of(page, EventRenderer(page.key, page.preview_after, page.previous), deliveries).entries
    ]


def cards_of(page: EventWindow) -> list[tuple[Markup, Ends]]:
    """Draw a page for lanes, in seq order: each card with whose lane it is in, and whose it points at."""
    sheet = _sheet_of(page, LaneRenderer(page.key, page.preview_after, page.previous), {})
    cards = [(entry.html, entry.ends) for entry in sheet.entries if entry.ends is not None]
    return [card for card, after in zip_longest(cards, cards[1:]) if after is None or not _folds(after[0], card[0])]


def _folds(card: Markup, before: Markup) -> bool:
    """Return whether a card stands for the one right before it: a message that repeats an output."""
    folded = _FOLDED.search(card[:HEAD])
    return folded is not None and f' id="e{folded[1]}"' in before[:HEAD]


def _sheet_of(page: EventWindow, renderer: EventRenderer, deliveries: Mapping[int, DeliveryStatus]) -> "_Sheet":
    tool_name_cache.load_names(page.events)
    sheet = _Sheet()
    turns: dict[str, _OpenTurn] = {}
    for event in merge(page.events, page.open_tokens, key=attrgetter("seq")):
        fragment = renderer.draw(event, page.calls.get(event.seq))
        if fragment.html is not None:
            html = fragment.html
            html = _with(deliveries[event.seq], html) if event.seq in deliveries else html
            sheet.place(_Entry(html, fragment.ends), fragment)
        elif fragment.group is not None:
            if fragment.group not in turns:
                turns[fragment.group] = _OpenTurn(sheet.place(_Entry(Markup(), fragment.ends), fragment), event)
            turns[fragment.group].texts.append(fragment.text or "")
    for group, turn in turns.items():
        cut = page.cuts.get((turn.first.run, turn.first.turn if turn.first.run else None))
        turn.entry.html = renderer.open_block(group, "".join(turn.texts), turn.first, cut)
    return sheet


def _with(delivery: DeliveryStatus, html: Markup) -> Markup:
    """Put what became of a message in its place."""
    slot, drawn = macro("macros/delivery.html", "slot"), macro("macros/delivery.html", "drawn")
    return html.replace(Markup(slot()), Markup(drawn(delivery)), 1)


class _Entry:
    """A drawn event and what stands in it."""

    def __init__(self, html: Markup, ends: Ends | None = None) -> None:
        self.html, self.ends = html, ends
        self.inner: list[_Entry] = []

    def drawn(self) -> Markup:
        """Return it whole."""
        if not self.inner:
            return self.html
        slot = Markup(macro("events/parts.html", "slot")())
        before, _, after = slot.partition("</div>")
        whole = before + Markup("\n").join(entry.drawn() for entry in self.inner) + Markup("</div>") + after
        return self.html.replace(slot, whole, 1)


class _Sheet:
    """The entries of a page, and the blocks among them that others may stand in."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self._blocks: dict[str, _Entry] = {}

    def place(self, entry: _Entry, fragment: Fragment) -> _Entry:
        """Put an entry in its call's block, else at the end."""
        block = self._blocks.get(fragment.within)
        (self.entries if block is None else block.inner).append(entry)
        if fragment.group is not None and fragment.group.startswith("call:"):
            self._blocks[fragment.group] = entry
        return entry


class _OpenTurn:
    """A turn without an output yet: its block, its first token, its text so far."""

    def __init__(self, entry: _Entry, first: Stored) -> None:
        self.entry, self.first = entry, first
        self.texts: list[str] = []
