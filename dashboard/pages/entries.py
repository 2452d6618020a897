"""Draw the entries of a page of history, with the turns that are still being written. For the conversation page."""

from collections.abc import Mapping
from heapq import merge
from operator import attrgetter
from types import MappingProxyType

from markupsafe import Markup

from conversations import tool_names
from conversations.deliveries import Delivery
from conversations.fragments.drawing import Fragment, Pen
from conversations.fragments.environment import macro
from conversations.fragments.lanes import LanePen
from conversations.fragments.who import Who
from conversations.log import Page, Stored

Ends = tuple[Who, Who | None]


def entries_of(page: Page, told: Mapping[int, Delivery] = MappingProxyType({})) -> list[Markup]:
    """Draw a page in seq order; the tokens of an open turn are one block, where its first one stands.

    What happened inside a call stands in the call's block, when that is on this page. `told` is what became of
    messages, by their seqs: it stands under them.
    """
    return [entry.drawn() for entry in _sheet_of(page, Pen(page.key, page.preview_after, page.previous), told).entries]


def cards_of(page: Page) -> list[tuple[Markup, Ends]]:
    """Draw a page for lanes, in seq order: each card with whose lane it is in, and whose it points at."""
    sheet = _sheet_of(page, LanePen(page.key, page.preview_after, page.previous), {})
    return [(entry.html, entry.ends) for entry in sheet.entries if entry.ends is not None]


def _sheet_of(page: Page, pen: Pen, told: Mapping[int, Delivery]) -> "_Sheet":
    tool_names.learn(page.events)
    sheet = _Sheet()
    turns: dict[str, _OpenTurn] = {}
    for event in merge(page.events, page.open_tokens, key=attrgetter("seq")):
        fragment = pen.draw(event, page.calls.get(event.seq))
        if fragment.html is not None:
            html = fragment.html
            html = _with(told[event.seq], html) if event.seq in told else html
            sheet.place(_Entry(html, fragment.ends), fragment)
        elif fragment.group is not None:
            if fragment.group not in turns:
                turns[fragment.group] = _OpenTurn(sheet.place(_Entry(Markup(), fragment.ends), fragment), event)
            turns[fragment.group].texts.append(fragment.text or "")
    for group, turn in turns.items():
        turn.entry.html = pen.open_block(group, "".join(turn.texts), turn.first)
    return sheet


def _with(told: Delivery, html: Markup) -> Markup:
    """Put what became of a message in its place."""
    slot, drawn = macro("macros/delivery.html", "slot"), macro("macros/delivery.html", "drawn")
    return html.replace(Markup(slot()), Markup(drawn(told)), 1)


class _Entry:
    """A drawn event and what stands in it."""

    def __init__(self, html: Markup, ends: Ends | None = None) -> None:
        self.html, self.ends = html, ends
        self.inner: list[_Entry] = []

    def drawn(self) -> Markup:
        """Answer it whole."""
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
