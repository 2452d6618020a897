"""A filter whose request fails: the list says that its rows are from before, and offers to try again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import in_every_look, team_server, work
from tests.support.live import Server
from tests.support.tiers import variants

CALLS = """
for name in ('harbour', 'lighthouse'):
    t.say(o, name, content=f'At the {name}', client_id=name)
    t.log.append(toolcalls.call(name, 1))
"""
ARRIVAL = """
from conversations.access.audit import chain
from conversations.core.principals import user_principal
from conversations.core.write_transaction import write_transaction
with write_transaction():
    chain.add_entry(user_principal('maria'), 'arrive', 'thing:1')
"""
PAGES = {"/": "lighthouse", "/calls/": "nothing has this", "/audit/": "nothing has this"}


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with something in each list."""
    with team_server("t.team()") as started:
        work(started, f"from tests.support import toolcalls\n{CALLS}")
        yield started


def rows(page: Page) -> int:
    """Return how many rows the list has."""
    return page.locator("[data-list] [data-item]").count()


def failure(page: Page, words: str) -> Locator:
    """Return the strip that says what could not be applied, once it says these words."""
    strip = page.locator("[data-unfiltered]")
    expect(strip).to_be_visible()
    expect(strip).to_have_role("alert")
    expect(strip).to_contain_text(words)
    return strip


def reject(route: Route) -> None:
    """Answer as a server that cannot now."""
    error = '{"error": {"code": "busy", "message": "The database is busy."}}'
    route.fulfill(status=503, body=error, content_type="application/json")


@pytest.mark.slow
@pytest.mark.parametrize("address", variants(PAGES, quick=2))
def test_a_filter_that_fails_says_so_and_is_tried_again_by_keyboard(window: Page, address: str) -> None:
    window.goto(address)
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    before = rows(window)
    assert before > 1
    window.route("**part=list*", reject)
    window.locator("list-filter input[name=q]").fill(PAGES[address])

    strip = failure(window, "Filter not applied.")
    expect(strip).to_contain_text("The database is busy. The rows are those from before.")
    assert rows(window) == before
    assert in_every_look(window, "failed filter", is_part_of_another=address != "/") == {}

    window.unroute("**part=list*")
    strip.get_by_role("button", name="Try again").press("Enter")
    expect(strip).to_be_hidden()
    assert rows(window) < before


@pytest.mark.slow
def test_a_filter_that_fails_again_keeps_saying_so_until_another_is_applied(window: Page) -> None:
    window.goto("/calls/")
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    window.route("**part=list*", lambda route: route.abort())
    window.locator("input[name=q]").fill("nothing has this")
    strip = failure(window, "Filter not applied.")
    expect(strip).to_contain_text("The server did not respond.")
    with window.expect_request("**part=list*"):
        strip.get_by_role("button", name="Try again").click()
    expect(strip).to_be_visible()

    window.unroute("**part=list*")
    window.locator("input[name=q]").fill("nor this")

    expect(strip).to_be_hidden()
    assert rows(window) == 0


@pytest.mark.parametrize("address", variants(["/calls/", "/audit/"]))
def test_counts_beside_the_filters_that_are_from_before_are_told(window: Page, address: str) -> None:
    window.goto(address)
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    window.route("**part=facets*", reject)
    window.locator("input[name=q]").fill("nothing has this")

    strip = failure(window, "The counts beside the filters are those from before.")
    expect(strip).to_be_visible()
    assert rows(window) == 0
    window.unroute("**part=facets*")
    strip.get_by_role("button", name="Try again").click()
    expect(strip).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("list", "New rows not shown. The database is busy. The rows are those from before."),
        ("totals", "The database is busy. The figures above the list are those from before."),
    ],
)
def test_new_entries_that_cannot_be_shown_have_their_own_message(
    served: Server, window: Page, part: str, text: str
) -> None:
    window.goto("/audit/?verb=arrive")
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    work(served, ARRIVAL)
    pill = window.get_by_role("button", name="1 new entry")
    expect(pill).to_be_visible()
    before = rows(window)
    window.route(f"**part={part}*", reject)
    pill.press("Enter")

    strip = failure(window, text)
    expect(strip).not_to_contain_text("Filter")
    window.unroute(f"**part={part}*")
    strip.get_by_role("button", name="Try again").press("Enter")

    expect(strip).to_be_hidden()
    expect(pill).to_be_hidden()
    assert rows(window) == before + 1
