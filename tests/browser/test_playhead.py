"""The playhead in a real browser: stepping, scrubbing, playing, in every view, by keyboard, and back to the present."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import LOOKS, violations, work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until
from tests.support.tiers import variants

_number = itertools.count(1)
EVENTS = 200


@pytest.fixture(scope="module")
def key(server: Server) -> str:
    """A conversation of some length."""
    name = f"past-{next(_number)}"
    work(server, f"from tests.support import large_talks; large_talks.write({name!r}, events={EVENTS})")
    return name


def opened(page: Page, key: str, query: str) -> Locator:
    page.goto(f"/conversations/{key}/{query}")
    expect(page.locator("play-head:defined [data-play]")).to_be_visible()
    return page.locator("[data-moment]")


def at(page: Page) -> int:
    return int(page.locator("play-head").get_attribute("data-at") or 0)


def last_row(page: Page) -> int:
    return int(page.locator(".transcript > .rows > [data-seq]").last.get_attribute("data-seq") or 0)


@pytest.mark.slow
def test_the_past_is_stepped_through_by_keys_and_linked(page: Page, key: str) -> None:
    moment = opened(page, key, "?at=100")
    expect(moment).to_contain_text("As of event 100 of 200")
    assert last_row(page) == 100

    page.keyboard.press(".")
    expect(moment).to_contain_text("As of event 101 of 200")
    until(lambda: last_row(page) == 101, what="the next event")
    page.keyboard.press(",")
    expect(moment).to_contain_text("As of event 100 of 200")
    until(lambda: last_row(page) == 100, what="the event before")

    assert page.url.endswith("?at=100")
    expect(page.locator("[data-fork]")).to_have_attribute("href", "fork/?event=100")
    expect(page.locator(".panel [data-figures] .tally").first).to_have_text("20")


@pytest.mark.thorough
def test_scrubbing_ends_at_the_last_place(page: Page, key: str) -> None:
    moment = opened(page, key, "?at=10")
    scrubber = page.get_by_role("slider", name="Event")

    for seq in range(20, 160, 10):
        scrubber.fill(str(seq))

    expect(moment).to_contain_text("As of event 150 of 200")
    until(lambda: last_row(page) == 150, what="the moment")
    expect(scrubber).to_have_attribute("aria-valuetext", "Event 150 of 200")


@pytest.mark.thorough
def test_it_plays_to_the_end_and_stops(page: Page, key: str) -> None:
    moment = opened(page, key, "?at=185")
    page.get_by_label("Speed").select_option("16")

    page.keyboard.press(">")

    expect(moment).to_contain_text("As of event 200 of 200")
    expect(page.get_by_role("button", name="Play", exact=True)).to_have_attribute("aria-pressed", "false")
    until(lambda: last_row(page) >= 199, what="the last event")  # the end of a run is drawn as 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("view", "drawn"),
    variants(
        [
            ("lanes", ".lane-event[data-seq='31']"),
            ("timeline", "conversation-timeline [data-part][data-head='31']"),
            ("graph", "conversation-graph [data-part][data-head='31']"),
        ]
    ),
)
def test_every_view_follows_it_and_hands_it_on(page: Page, key: str, view: str, drawn: str) -> None:
    moment = opened(page, key, f"?view={view}&at=30")
    expect(page.locator(drawn)).to_have_count(0)

    page.get_by_role("link", name="Step forward").click()

    expect(moment).to_contain_text("As of event 31 of 200")
    expect(page.locator(drawn)).to_have_count(1)
    page.locator("[data-view-key='t']").click()
    expect(page.locator("[data-moment]")).to_contain_text("As of event 31 of 200")
    assert last_row(page) == 31


@pytest.mark.slow
def test_one_key_leads_to_the_present_which_goes_on(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"past-{next(_number)}")
    talk.say("one", "two", "three")
    talk.open()
    page.locator("[data-play-back]").click()
    expect(page.locator("[data-moment]")).to_contain_text("As of event 3 of 3")
    page.keyboard.press(",")
    expect(page.locator("[data-moment]")).to_contain_text("As of event 2 of 3")
    talk.say("four")
    expect(talk.row(4)).to_have_count(0)

    page.keyboard.press("L")
    expect(talk.row(4)).to_be_visible()
    talk.say("five")

    expect(talk.row(5)).to_be_visible()
    expect(page.locator("play-head")).to_have_count(0)


@pytest.mark.thorough
def test_without_scripts_its_links_lead_on(plain_page: Page, key: str) -> None:
    plain_page.goto(f"/conversations/{key}/?at=50")

    plain_page.get_by_role("link", name="Step forward").click()

    expect(plain_page.locator("[data-moment]")).to_contain_text("As of event 51 of 200")


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_is_too_wide(
    page: Page, key: str, scheme: Literal["light", "dark"], width: int
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    opened(page, key, "?at=100")

    assert violations(page) == []
    assert page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


@pytest.mark.slow
@pytest.mark.parametrize("view", variants(["lanes", "timeline", "graph"]))
def test_from_the_present_a_place_on_the_bar_leads_there(page: Page, key: str, view: str) -> None:
    page.goto(f"/conversations/{key}/?view={view}")
    bar = page.get_by_role("group", name="Playback")
    expect(bar).to_contain_text("200 of 200")

    bar.get_by_role("slider").fill("50")

    expect(page.locator("[data-moment]")).to_contain_text("As of event 50 of 200")
    assert page.url.endswith(f"?view={view}&at=50")
    expect(page.locator("play-head:defined")).to_be_visible()  # its button is visible earlier; keys work from now on
    page.keyboard.press("L")
    expect(bar).to_contain_text("200 of 200")
    expect(page.locator("playback-bar:defined")).to_be_visible()  # the same in the present
    page.keyboard.press(",")
    expect(page.locator("[data-moment]")).to_contain_text("As of event 199 of 200")


@pytest.mark.slow
def test_the_bar_grows_with_the_conversation_and_plays_it_from_its_beginning(
    page: Page, server: Server, token: str
) -> None:
    talk = Transcript(page, server, token, f"past-{next(_number)}")
    talk.say("one", "two", "three")
    page.goto(f"/conversations/{talk.key}/?view=timeline")
    bar = page.locator("playback-bar")
    expect(bar).to_contain_text("3 of 3")

    talk.say("four")
    expect(bar).to_contain_text("4 of 4")
    bar.get_by_label("Speed").select_option("16")
    bar.get_by_role("link", name="Play").click()

    expect(page.locator("[data-moment]")).to_contain_text("As of event 4 of 4")
    expect(page.locator("play-head").get_by_label("Speed")).to_have_value("16")
    assert page.url.endswith("?view=timeline&at=4")


@pytest.mark.thorough
def test_without_scripts_the_bar_is_a_form(plain_page: Page, key: str) -> None:
    plain_page.goto(f"/conversations/{key}/?view=lanes")
    plain_page.get_by_role("slider").fill("50")

    plain_page.get_by_role("button", name="Go", exact=True).click()

    expect(plain_page.locator("[data-moment]")).to_contain_text("As of event 50 of 200")
