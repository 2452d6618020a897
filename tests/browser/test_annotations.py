"""Thumbs and notes on events, in real browsers: by keyboard alone, seen live by another person, kept over a reload."""

import itertools

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import in_every_look, work
from tests.support.live import Server

_number = itertools.count(1)
TALK = """
from tests.dashboard.pages.test_conversation_page import store
from tests.dashboard.pages.test_annotations_page import CALL
store(*({{"type": "message", "sender": "Rosa", "recipient": "Ben", "content": n}} for n in "123"), key={key!r})
store({{**CALL, "args": {{"street": "Elm"}}, "status": "start"}}, key={key!r})
"""
ENDED = """
from tests.dashboard.pages.test_conversation_page import store
from tests.dashboard.pages.test_annotations_page import CALL
store({{**CALL, "status": "success", "output": "wet"}}, key={key!r})
"""


def opened(page: Page, key: str, query: str = "") -> None:
    page.goto(f"/conversations/{key}/{query}")
    expect(page.locator("live-state")).to_have_attribute("data-state", "live")


def talk(served: Server) -> str:
    """Make a conversation of three messages and a call that has begun."""
    key = f"noted-{next(_number)}"
    work(served, TALK.format(key=key))
    return key


def notes(page: Page, seq: int) -> Locator:
    return page.locator(f".transcript #e{seq} ul.notes[data-key] .note")


@pytest.mark.slow
def test_a_thumb_and_a_note_by_keyboard_are_seen_live_by_another(
    served: Server, window: Page, second_window: Page
) -> None:
    key = talk(served)
    for page in (window, second_window):
        opened(page, key)

    for _ in range(6):  # up to the first event
        window.keyboard.press("k")
    expect(window.locator("#e1")).to_have_attribute("aria-current", "true")
    window.keyboard.press("u")
    expect(notes(window, 1).locator("[data-thumb=up]")).to_have_count(1)
    expect(window.locator("event-annotation [data-thumb=up]")).to_have_attribute("aria-pressed", "true")
    window.keyboard.press("N")
    expect(window.locator("event-annotation textarea")).to_be_focused()
    window.keyboard.type("Well <b>put</b>.")
    window.keyboard.press("Control+Enter")

    for page in (window, second_window):
        expect(notes(page, 1)).to_have_count(2)
        expect(notes(page, 1).nth(1)).to_contain_text("Well <b>put</b>.")
    expect(window.locator("event-annotation textarea")).to_have_value("")
    window.keyboard.press("Escape")  # letters are keys again
    window.keyboard.press("k")
    expect(window.locator("event-annotation textarea")).to_have_value("")
    expect(window.locator("event-annotation textarea")).not_to_be_focused()
    window.locator("event-annotation [data-thumb=up]").click()
    for page in (window, second_window):
        expect(notes(page, 1)).to_have_count(1)
    second_window.reload()
    expect(notes(second_window, 1)).to_have_count(1)


@pytest.mark.thorough
def test_a_call_keeps_its_notes_when_it_is_drawn_anew(served: Server, window: Page) -> None:
    key = talk(served)
    opened(window, key, "?event=4")
    window.locator("event-annotation [data-thumb=down]").click()
    expect(notes(window, 4)).to_have_count(1)

    work(served, ENDED.format(key=key))

    expect(window.locator("#e4")).to_contain_text("wet")
    expect(notes(window, 4)).to_have_count(1)


@pytest.mark.thorough
def test_a_key_before_the_panel_has_come_still_acts(served: Server, window: Page) -> None:
    key = talk(served)
    opened(window, key)

    window.locator("#e2 .body").click()
    window.keyboard.press("d")

    expect(notes(window, 2).locator("[data-thumb=down]")).to_have_count(1)


@pytest.mark.thorough
def test_lanes_mark_the_card_live(served: Server, window: Page, second_window: Page) -> None:
    key = talk(served)
    opened(window, key, "?event=2")
    opened(second_window, key, "?view=lanes")

    window.locator("event-annotation [data-thumb=up]").click()

    expect(notes(second_window, 2).locator("[data-thumb=up]")).to_be_visible()
    second_window.reload()
    expect(notes(second_window, 2).locator("[data-thumb=up]")).to_be_visible()


@pytest.mark.thorough
@pytest.mark.parametrize("view", ["timeline", "graph"])
def test_the_timeline_and_the_graph_are_marked_live(
    served: Server, window: Page, second_window: Page, view: str
) -> None:
    key = talk(served)
    opened(window, key, "?event=2")
    opened(second_window, key, f"?view={view}")
    marks = second_window.locator(".noted[role=img]")
    expect(second_window.locator("[data-seq]").first).to_be_visible()
    expect(marks).to_have_count(0)

    window.locator("event-annotation [data-thumb=down]").click()

    expect(marks).to_have_count(1)
    expect(marks).to_be_visible()
    expect(marks).to_have_accessible_name("1 thumbs down")
    window.locator("event-annotation [data-thumb=down]").click()
    expect(marks).to_have_count(0)
    assert in_every_look(second_window, f"marked-{view}") == {}


@pytest.mark.thorough
def test_what_could_not_be_stored_is_told_and_the_note_stays(served: Server, window: Page) -> None:
    key = talk(served)
    opened(window, key, "?event=2")
    window.route("**/annotations", lambda route: route.fulfill(status=503, body=""))
    window.locator("event-annotation textarea").fill("Hm.")

    window.get_by_role("button", name="Add note").click()

    expect(window.locator("event-annotation [data-said]")).to_contain_text("Not stored.")
    expect(window.locator("event-annotation textarea")).to_have_value("Hm.")


@pytest.mark.thorough
def test_axe_finds_nothing_in_notes_and_their_form(served: Server, window: Page) -> None:
    key = talk(served)
    opened(window, key, "?event=2")
    window.locator("event-annotation [data-thumb=up]").click()
    window.locator("event-annotation textarea").fill("Well put.")
    window.get_by_role("button", name="Add note").click()
    expect(notes(window, 2)).to_have_count(2)

    assert in_every_look(window, "notes") == {}
