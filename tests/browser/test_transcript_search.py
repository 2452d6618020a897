"""Search within an open conversation: beyond what is drawn, from result to result, by keyboard and on a phone."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.transcript import Transcript
from tests.support.live import Server, until

KEY = "searched"
EVENTS = 240  # of which a page draws a part


@pytest.fixture
def searched(page: Page, server: Server, token: str) -> str:
    """A long conversation, indexed, in which one word is at the beginning and again near the end."""
    if server.request("GET", f"/api/v1/search?q=ferry&conversation={KEY}", token=token)[1]["items"]:
        return KEY
    texts = ["Water is lapping.", "The ferry sails at nine."] + ["Nothing new."] * (EVENTS - 4)
    texts += ["The ferry is late.", "Good night."]
    Transcript(page, server, token, KEY).record(*texts)
    path = f"/api/v1/search?q=ferry&conversation={KEY}"
    until(lambda: len(server.request("GET", path, token=token)[1]["items"]) == 2, what="the index")
    return KEY


def field(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search in this conversation")


def count(page: Page) -> Locator:
    return page.locator("transcript-search [data-count]")


def test_results_beyond_what_is_drawn_are_reached_by_keyboard(page: Page, searched: str) -> None:
    page.goto(f"/conversations/{searched}/?event={EVENTS}#e{EVENTS}")
    expect(page.locator("#e2")).to_have_count(0)

    page.keyboard.press("/")
    page.keyboard.type("ferry")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text("2 of 2")
    expect(page.locator('[data-seq][aria-current="true"]')).to_have_attribute("data-seq", str(EVENTS - 1))

    page.keyboard.press("Shift+Enter")
    expect(count(page)).to_have_text("1 of 2")
    expect(page.locator('[data-seq][aria-current="true"]')).to_have_attribute("data-seq", "2")
    expect(field(page)).to_be_focused()
    expect(field(page)).to_have_value("ferry")

    page.keyboard.press("Escape")
    expect(field(page)).to_be_hidden()
    assert "find=" not in page.url


def test_the_beginning_of_a_word_is_enough_and_what_is_nowhere_says_so(page: Page, searched: str) -> None:
    page.goto(f"/conversations/{searched}/")

    page.keyboard.press("/")
    page.keyboard.type("lapp")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text("1 of 1")

    field(page).fill("lighthouse")
    field(page).press("Enter")
    expect(count(page)).to_have_text("No results")
    expect(page.get_by_role("button", name="Next result")).to_be_disabled()


def test_what_is_said_meanwhile_is_found_after_the_last_result(page: Page, server: Server, token: str) -> None:
    transcript = Transcript(page, server, token, "searched-live")
    transcript.say("The tram rings.")
    until(lambda: _hits(server, token) == 1, what="the index")
    transcript.open()
    page.keyboard.press("/")
    page.keyboard.type("tram")
    page.keyboard.press("Enter")
    expect(count(page)).to_have_text("1 of 1")

    transcript.say("The tram leaves.")
    transcript.sees()
    until(lambda: _hits(server, token) == 2, what="the index")
    field(page).press("Enter")

    expect(count(page)).to_have_text("2 of 2")


def test_on_a_phone_it_opens_from_the_menu(page: Page, searched: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"/conversations/{searched}/")

    page.get_by_role("button", name="More", exact=True).first.click()
    page.get_by_role("button", name=re.compile("Copy, download")).click()
    page.get_by_role("button", name=re.compile("Search in this conversation")).click()
    field(page).fill("ferry")
    field(page).press("Enter")
    expect(count(page)).to_have_text(re.compile(r"\d of 2"))
    page.get_by_role("button", name="Next result").click()
    expect(count(page)).to_have_text(re.compile(r"\d of 2"))

    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _hits(server: Server, token: str) -> int:
    return len(server.request("GET", "/api/v1/search?q=tram&conversation=searched-live", token=token)[1]["items"])
