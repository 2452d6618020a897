"""Requests by agent, tool and risk in a real browser: chosen by the keyboard, shared by the address, live."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, team_server, work
from tests.support.live import Server

CALLS = [("one", "refund", "unsafe"), ("two", "read_file", "read"), ("three", "refund", "unsafe")]
ASK = "t.ask(o, {0!r}, client_id='1', approval_id={0!r}, name={1!r}, qualified_name={1!r}, effect={2!r})"


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server where requests wait."""
    with team_server("t.team()") as started:
        work(started, "\n".join(ASK.format(*call) for call in CALLS))
        yield started


def keys(page: Page) -> list[str | None]:
    """Return the requests in the list."""
    return [row.get_attribute("data-key") for row in page.locator("[data-requests] > .ask").all()]


def test_a_filter_is_chosen_by_keyboard_and_kept_in_the_address(window: Page) -> None:
    window.goto("/approvals/")
    window.get_by_role("button", name="Tool").press("Enter")
    menu = window.get_by_role("navigation", name="Tool")
    assert [link.inner_text().split() for link in menu.get_by_role("link").all()] == [
        ["refund", "2", "requests"],
        ["read_file", "1", "requests"],
    ]
    assert in_every_look(window, "values of a filter") == {}
    window.keyboard.press("Tab")
    window.keyboard.press("Enter")
    window.wait_for_url("**/approvals/?tool=refund")
    assert keys(window) == ["one", "three"]

    window.locator('.ask[data-key="three"]').get_by_role("link").press("Enter")
    window.wait_for_url("**/approvals/three/?tool=refund")
    window.reload()
    assert keys(window) == ["one", "three"]
    assert in_every_look(window, "filtered") == {}

    window.set_viewport_size({"width": 1440, "height": 900})  # on a phone the filters stand with the list alone
    window.get_by_title("Remove this filter").press("Enter")
    expect(window).to_have_url(re.compile(r"/approvals/$"))
    assert keys(window) == ["one", "three", "two"]


def test_a_filtered_list_takes_only_what_passes(served: Server, window: Page) -> None:
    window.goto("/approvals/?tool=drop_table&risk=destructive")
    expect(window.get_by_role("heading", name="No request matches")).to_be_visible()
    window.wait_for_selector("live-state[data-state=live]")

    work(
        served,
        "\n".join(ASK.format(*call) for call in (("four", "refund", "unsafe"), ("five", "drop_table", "destructive"))),
    )

    expect(window.locator('.ask[data-key="five"]')).to_be_visible()
    expect(window.get_by_role("heading", name="No request matches")).to_be_hidden()
    assert keys(window) == ["five"]
    window.get_by_role("link", name="Clear all").click()
    expect(window.locator('.ask[data-key="four"]')).to_be_visible()


def test_on_a_phone_one_request_stands_without_the_filters_of_the_list(window: Page) -> None:
    window.set_viewport_size({"width": 390, "height": 844})
    window.goto("/approvals/")
    views = window.get_by_role("navigation", name="Status")
    expect(views).to_be_visible()

    window.locator('.ask[data-key="one"]').get_by_role("link").first.click()
    expect(window.locator('.question[data-key="one"]')).to_be_visible()
    expect(views).to_be_hidden()

    window.get_by_role("link", name="All requests").click()
    expect(views).to_be_visible()
