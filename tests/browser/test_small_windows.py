"""Small windows: the top bar of a tablet, a page under much zoom, a request that is higher than the view."""

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser import work
from tests.support.live import Server

# How far each item of the top bar reaches into the next one, px.
OVERLAPS = """() => {
  const items = [...document.querySelectorAll(".nav > *, .topbar > .tools > .jump")];
  const boxes = items.filter((item) => item.checkVisibility()).map((item) => item.getBoundingClientRect());
  return boxes.slice(1).map((box, n) => Math.max(0, Math.round(boxes[n].right - box.left)));
}"""
HEIGHT = "(found) => document.querySelector(found).clientHeight"
# How much of a card's beginning is above what shows it, px.
HIDDEN_TOP = """() => {
  const top = (found) => document.querySelector(found).getBoundingClientRect().top;
  return Math.max(0, Math.round(top(".transcript") - top(".approval:has(decision-form)")));
}"""


@pytest.fixture(scope="module")
def asking(served: Server) -> str:
    """A conversation that waits for an approval."""
    work(served, "t.ask(o, 'asking')")
    return "/conversations/asking/"


@pytest.mark.parametrize("width", [768, 820, 856, 1024])
def test_nothing_in_the_top_bar_lies_on_something_else(window: Page, asking: str, width: int) -> None:
    window.set_viewport_size(ViewportSize(width=width, height=1024))
    window.goto("/")

    assert set(window.evaluate(OVERLAPS)) == {0}
    assert window.evaluate("document.querySelector('.nav > button').offsetHeight") >= 36


def test_a_conversation_can_be_read_at_400_percent(window: Page, asking: str) -> None:
    window.set_viewport_size(ViewportSize(width=320, height=256))

    for view, scroller in (("", ".transcript"), ("?view=timeline", ".waterfall-scroll")):
        window.goto(asking + view)
        assert window.evaluate(HEIGHT, scroller) >= 90, view


def test_a_request_that_is_higher_than_the_view_is_shown_from_its_start(window: Page, asking: str) -> None:
    window.set_viewport_size(ViewportSize(width=360, height=560))
    window.goto(asking)
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    card = window.locator(".approval:has(decision-form)")
    assert card.evaluate("(card) => card.offsetHeight > document.querySelector('.transcript').clientHeight")

    window.keyboard.press("n")

    expect(card).to_be_focused()
    assert window.evaluate(HIDDEN_TOP) == 0
