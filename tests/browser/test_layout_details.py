"""Where things stand on a conversation's page: nothing is cut beside free space or moves from under a pointer."""

import itertools

import pytest
from playwright.sync_api import Page, expect

from tests.browser.transcript import Transcript
from tests.support.live import Server

_number = itertools.count(1)
VIEWS = """() => [...document.querySelectorAll('.conversation-head .switch > a')].map(
  (view) => view.getBoundingClientRect().x)"""
CUT = "(parts) => parts.filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.textContent)"
BAND = """() => {
  const [band, column] = ["lane-heads", ".column"].map((part) => document.querySelector(part).getBoundingClientRect());
  return column.right - band.right;
}"""


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    """A conversation with a run of a program elsewhere."""
    made = Transcript(page, server, token, f"details-{next(_number)}")
    made.publish({"type": "message", "sender": "Rosa", "recipient": "agent:Conversation Desk", "content": "Hello?"})
    for event in ("run.started", "run.done"):
        made.stream(event=event, run_id="r1", agent="Conversation Desk", duration_ms=2_200)
    made.say("Somebody is at the desk.", sender="agent:Conversation Desk")
    return made


def test_views_and_speed_stay_when_the_past_is_entered(talk: Transcript) -> None:
    page = talk.open("?view=lanes").page
    page.set_viewport_size({"width": 1440, "height": 900})
    before = page.evaluate(VIEWS)
    page.get_by_label("Speed").select_option("16")

    page.goto(f"/conversations/{talk.key}/?view=lanes&at=2")
    expect(page.locator("play-head:defined [data-play]")).to_be_visible()

    assert page.evaluate(VIEWS) == pytest.approx(before, abs=1)
    expect(page.get_by_label("Speed")).to_have_value("16")
    assert page.evaluate(BAND) < 20  # a scrollbar


def test_a_short_card_is_as_wide_as_its_facts(talk: Transcript) -> None:
    page = talk.open("?view=lanes").page
    page.set_viewport_size({"width": 1440, "height": 900})
    card = page.locator("[data-kind='run.done']")

    expect(card.locator(".lane-foot > .clip")).to_have_text(["2.2 s", "from outside"])
    assert card.locator(".lane-foot > .clip").evaluate_all(CUT) == []


def test_the_outline_marks_the_selected_event_and_cuts_no_name_beside_space(talk: Transcript) -> None:
    talk.stream(event="agent.handoff", from_agent="Triage", to_agent="Conversation Desk")
    talk.say("And Elm Street?", sender="Rosa")
    page = talk.open().page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.keyboard.press("h")
    alone = page.locator("transcript-outline b:has(+ .faint)")
    expect(alone.first).to_have_text("Conversation Desk")

    talk.row(6).locator(".body").click()

    expect(page.locator("transcript-outline [aria-current]")).to_have_attribute("data-outline", "6")
    assert alone.evaluate_all("(names) => names.every((name) => getComputedStyle(name).gridColumnEnd === '4')")
