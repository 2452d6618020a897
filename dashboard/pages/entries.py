"""Draw the entries of a page of history, with the turns that are still being written. For the conversation page."""

from heapq import merge
from operator import attrgetter

from markupsafe import Markup

from conversations import tool_names
from conversations.fragments.drawing import Pen
from conversations.log import Page, Stored


def entries_of(page: Page) -> list[Markup]:
    """Draw a page in seq order; the tokens of an open turn are one block, where its first one stands."""
    tool_names.learn(page.events)
    pen = Pen(page.key, page.preview_after, page.previous)
    drawn: list[Markup] = []
    turns: dict[str, _OpenTurn] = {}
    for event in merge(page.events, page.open_tokens, key=attrgetter("seq")):
        fragment = pen.draw(event, page.calls.get(event.seq))
        if fragment.html is not None:
            drawn.append(fragment.html)
        elif fragment.group is not None:
            if fragment.group not in turns:
                turns[fragment.group] = _OpenTurn(len(drawn), event)
                drawn.append(Markup())
            turns[fragment.group].texts.append(fragment.text or "")
    for group, turn in turns.items():
        drawn[turn.place] = pen.open_block(group, "".join(turn.texts), turn.first)
    return drawn


class _OpenTurn:
    """A turn without an output yet: where its block stands, its first token, its text so far."""

    def __init__(self, place: int, first: Stored) -> None:
        self.place, self.first = place, first
        self.texts: list[str] = []
