"""Forced colours, as a high contrast theme sets them: without backgrounds and shadows, what is chosen or current still
stands out."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.transcript import Transcript
from tests.support.live import Server

LOOK = """(element) => { const s = getComputedStyle(element);
  return [s.outlineStyle, s.outlineWidth, s.borderTopWidth, s.borderTopStyle, s.fontWeight].join() }"""


@pytest.fixture
def forced(page: Page, server: Server, token: str) -> Iterator[Page]:
    """A conversation with three lines, of which the first is picked, in forced colours."""
    transcript = Transcript(page, server, token, "forced-colors")
    transcript.say("a", "b", "c")
    transcript.open()
    page.emulate_media(forced_colors="active")
    page.keyboard.press("j")
    yield page
    page.emulate_media(forced_colors="none")


def is_marked(page: Page, chosen: str, other: str) -> bool:
    """Whether the first differs in more than its colours."""
    looks = [page.locator(each).first.evaluate(LOOK) for each in (chosen, other)]
    return looks[0] != looks[1]


def test_what_is_chosen_or_current_is_outlined(forced: Page) -> None:
    expect(forced.locator(".event[aria-current=true]")).to_be_visible()
    assert is_marked(forced, ".event[aria-current=true]", ".event:not([aria-current])")
    assert is_marked(forced, ".switch > label:has(:checked)", ".switch > label:not(:has(:checked))")
    assert is_marked(forced, ".nav > [aria-current]", ".nav > a:not([aria-current])")

    forced.keyboard.press("Control+k")
    expect(forced.locator(".option[aria-selected=true]")).to_be_visible()
    assert is_marked(forced, ".option[aria-selected=true]", ".option[aria-selected=false]")


def test_the_dot_of_the_connection_is_seen(forced: Page) -> None:
    dot, ground = forced.evaluate(
        "() => [getComputedStyle(document.querySelector('.live'), '::before'), getComputedStyle(document.body)]"
        ".map((style) => style.backgroundColor)"
    )
    assert dot != ground
