"""A part of a page that cannot be loaded: the page says so and offers to try again, or asks again by itself."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, team_server, work
from tests.support.live import Server


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a few conversations."""
    with team_server("t.team()") as started:
        work(started, "for n in range(3): t.say(o, f'harbour-{n}', content='At the harbour', client_id='1')")
        yield started


@pytest.mark.parametrize("address", ["**/?part=bulk", "**/bulk-actions*.js"])
def test_actions_for_a_selection_that_cannot_be_loaded_are_tried_again(window: Page, address: str) -> None:
    window.goto("/")
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    row = window.locator("[data-list] [data-item]").last
    before = row.bounding_box()
    window.route(address, lambda route: route.abort())
    row.locator(".pick input").check()

    strip = window.get_by_role("alert").filter(has_text="The actions for selected conversations could not be loaded.")
    expect(strip).to_contain_text("The server did not respond.")
    expect(strip).to_be_in_viewport()
    assert row.bounding_box() == before, "no row moves under the pointer"
    assert in_every_look(window, "failed actions") == {}

    window.unroute(address)
    strip.get_by_role("button", name="Try again").press("Enter")
    expect(window.locator("#bulk [data-count]")).to_have_text("1 selected")
    expect(window.locator("#bulk").get_by_role("button", name="Pause")).to_be_focused()
    expect(strip).to_be_hidden()
