"""Draw the entries of a window of events, with the turns that are still being written. For the conversation page."""

import re
from collections.abc import Collection, Mapping
from heapq import merge
from itertools import zip_longest
from operator import attrgetter
from types import MappingProxyType

from markupsafe import Markup

from conversations.conversation.delivery_status import DeliveryStatus
from conversations.events.log import EventWindow, Stored, annotation_reads
from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.rendering import annotation_rows
from conversations.rendering.event_renderer import EventRenderer, Fragment
from conversations.rendering.jinja_environment import macro
from conversations.rendering.lane_cards import LaneRenderer
from conversations.rendering.participant_marks import ParticipantMark
from conversations.tool_calls import tool_name_cache

HEAD = 4000  # characters of a card, in which its element begins
_FOLDED = re.compile(r' data-folds="(\d+)"')
Ends = tuple[ParticipantMark, ParticipantMark | None]


Notes = Mapping[int, list[RecordedAnnotation]]  # by the events that they are about
NO_NOTES: Notes = MappingProxyType({})
NO_DELIVERIES: Mapping[int, DeliveryStatus] = MappingProxyType({})


def notes_of(conversation: int, page: EventWindow, *, upto: int) -> Notes:
    """Read the annotations of a window's events and of their calls, as of event `upto`. One query if there are none,
    else two."""
    seqs = {event.seq for event in page.events}.union(*(call.seqs for call in page.calls.values()))
    return annotation_reads.of_events(conversation, seqs, upto)


def entries_of(
    page: EventWindow, deliveries: Mapping[int, DeliveryStatus] = NO_DELIVERIES, notes: Notes = NO_NOTES
) -> list[Markup]:
    """Draw a window in event order; the tokens of an open turn are one block, at the place of the first.

    What happened inside a call is drawn inside the call's block if that is in the window. `deliveries`: what happened
    to messages, by event number; `notes`: annotations, drawn below their events.
    """
    renderer = EventRenderer(page.key, page.preview_after, page.before)
    return [entry.drawn() for entry in _sheet_of(page, renderer, deliveries, notes).entries]


def cards_of(page: EventWindow, notes: Notes = NO_NOTES) -> list[tuple[Markup, Ends]]:
    """Draw a window for lanes, in event order: each card with its sender and recipients (`Ends`)."""
    sheet = _sheet_of(page, LaneRenderer(page.key, page.preview_after, page.before), {}, notes)
    cards = [(entry.html, entry.ends) for entry in sheet.entries if entry.ends is not None]
    return [card for card, after in zip_longest(cards, cards[1:]) if after is None or not _folds(after[0], card[0])]


def _folds(card: Markup, before: Markup) -> bool:
    """Return whether a card replaces the one right before it: a message that repeats an output."""
    folded = _FOLDED.search(card[:HEAD])
    return folded is not None and f' id="e{folded[1]}"' in before[:HEAD]


def _sheet_of(
    page: EventWindow, renderer: EventRenderer, deliveries: Mapping[int, DeliveryStatus], notes: Notes
) -> "_Sheet":
    tool_name_cache.load_names(page.events)
    sheet = _Sheet()
    turns: dict[str, _OpenTurn] = {}
    for event in merge(page.events, page.open_tokens, key=attrgetter("seq")):
        call = page.calls.get(event.seq)
        fragment = renderer.draw(event, call)
        if fragment.html is not None:
            html = fragment.html
            html = _with(deliveries[event.seq], html) if event.seq in deliveries else html
            if notes:
                html = _with_notes(notes, html, call.seqs if call else (event.seq,))
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
    """Insert the delivery status of a message."""
    slot, drawn = macro("macros/delivery.html", "slot"), macro("macros/delivery.html", "drawn")
    return html.replace(slot(), drawn(delivery), 1)


def _with_notes(notes: Notes, html: Markup, seqs: Collection[int]) -> Markup:
    """Insert the annotations of these events at the end of their row, or in the last line of a lane's card."""
    those = sorted(note for seq in seqs for note in notes.get(seq, ()))
    if not those:
        return html
    drawn, foot = annotation_rows.under(those), Markup('<div class="lane-foot">')
    if foot in html:
        return html.replace(foot, foot + drawn, 1)
    last = macro("events/parts.html", "slot")()
    before, last, after = html.rpartition(last if last in html else Markup("</article>"))
    return before + drawn + last + after


class _Entry:
    """A drawn event and the entries nested in it."""

    def __init__(self, html: Markup, ends: Ends | None = None) -> None:
        self.html, self.ends = html, ends
        self.inner: list[_Entry] = []

    def drawn(self) -> Markup:
        """Return the entry as HTML, with what is nested in it."""
        if not self.inner:
            return self.html
        slot = macro("events/parts.html", "slot")()
        before, _, after = slot.partition("</div>")
        whole = before + Markup("\n").join(entry.drawn() for entry in self.inner) + Markup("</div>") + after
        return self.html.replace(slot, whole, 1)


class _Sheet:
    """The entries of a window, and the call blocks in which others may be nested."""

    def __init__(self) -> None:
        self.entries: list[_Entry] = []
        self._blocks: dict[str, _Entry] = {}

    def place(self, entry: _Entry, fragment: Fragment) -> _Entry:
        """Add an entry: inside its call's block if there is one, else at the end."""
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
