"""Parts of pages that cannot be loaded: the page says so and offers to try again, or repeats the request by itself."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import in_every_look, team_server, work
from tests.browser.test_filters_fail import reject
from tests.support.live import Server
from tests.support.tiers import variants

TALK = """
for n in range(3): t.say(o, f'harbour-{n}', content='At the harbour', client_id='1')
from tests.support import large_talks
large_talks.write('long', events=400)
t.claim('harbour-0')
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a few conversations, one of them long."""
    with team_server("t.team()") as started:
        work(started, TALK)
        yield started


@pytest.fixture(autouse=True)
def intercepted(window: Page) -> None:
    """Have the browser ask about requests from the beginning: what is sent as that begins or ends may pass by."""
    window.route("**/no-such-address", reject)


def failure(page: Page, text: str) -> Locator:
    """Return the strip that says what failed, once it is visible."""
    strip = page.get_by_role("alert").filter(has_text=text)
    expect(strip).to_be_visible()
    return strip


def try_again(page: Page, strip: Locator, address: str) -> None:
    """Let requests through and press "Try again"; the strip disappears."""
    page.unroute(address)
    strip.get_by_role("button", name="Try again").press("Enter")
    expect(strip).to_be_hidden()


@pytest.mark.slow
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
    assert in_every_look(window, "failed actions", is_part_of_another=address.endswith(".js")) == {}

    window.unroute(address)
    strip.get_by_role("button", name="Try again").press("Enter")
    expect(window.locator("#bulk [data-count]")).to_have_text("1 selected")
    expect(window.locator("#bulk").get_by_role("button", name="Pause")).to_be_focused()
    expect(strip).to_be_hidden()


@pytest.mark.slow
def test_facts_that_cannot_be_loaded_are_not_those_of_another_event(window: Page) -> None:
    window.goto("/conversations/long/?event=391")
    facts = window.locator("[data-picked]")
    expect(facts).to_contain_text("Selected event 391")
    window.route("**/panel/?event=*", reject)
    window.locator("#e399").click(position={"x": 5, "y": 5})

    strip = failure(window, "Event 399 could not be loaded. The database is busy.")
    expect(facts).to_be_empty()
    assert in_every_look(window, "failed facts") == {}

    window.set_viewport_size({"width": 1440, "height": 900})
    try_again(window, strip, "**/panel/?event=*")
    expect(facts).to_contain_text("Selected event 399")


@pytest.mark.slow
def test_an_outline_that_cannot_be_loaded_is_tried_again(window: Page) -> None:
    window.goto("/conversations/long/")
    expect(window.locator("transcript-outline:defined")).to_be_attached()
    window.route("**/outline/*", reject)
    window.keyboard.press("h")

    strip = failure(window, "The outline could not be loaded. The database is busy.")

    try_again(window, strip, "**/outline/*")
    expect(window.locator("transcript-outline [data-outline]").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("view", variants(["transcript", "graph", "timeline"], quick=2))
def test_a_moment_that_cannot_be_rendered_is_tried_again(window: Page, view: str) -> None:
    address = "**/entries/*" if view == "transcript" else f"**part={view}*"
    window.goto(f"/conversations/long/?view={view}&at=30")
    expect(window.locator("play-head:defined")).to_be_visible()
    window.route(address, reject)
    window.get_by_role("link", name="Step forward").click()

    strip = failure(window, "Event 31 could not be shown. The database is busy.")
    if view == "graph":
        assert in_every_look(window, "failed moment") == {}

    try_again(window, strip, address)
    expect(window.locator("[data-moment]")).to_contain_text("As of event 31 of 400")
    parts = ".rows > [data-seq]" if view == "transcript" else f"conversation-{view} [data-part]"
    name = "data-seq" if view == "transcript" else "data-head"
    expect(window.locator(parts).last).to_have_attribute(name, "31")


@pytest.mark.slow
def test_a_whole_graph_that_cannot_be_loaded_is_tried_again(window: Page) -> None:
    window.goto("/conversations/long/?view=graph")
    expect(window.locator("conversation-graph[data-live]")).to_be_visible()
    link = window.locator("[data-whole-link]")
    window.route("**whole=1*", reject)
    link.click()
    expect(link).to_have_text("The database is busy. Try again")

    window.unroute("**whole=1*")
    link.click()
    expect(link).to_have_text("Show the most active")


def test_a_failed_prospect_of_a_message_replaces_that_of_another(window: Page) -> None:
    window.goto("/conversations/harbour-0/")
    expect(window.locator("speaker-picker:defined")).to_be_attached()
    prospect = window.locator("[data-prospect]")
    window.keyboard.press("m")
    window.locator("input[name=to]").fill("Nobody")
    expect(prospect).to_contain_text("Nobody")
    window.route(re.compile("/(prospect|standing)/"), reject)  # it also comes with the state of the conversation
    window.locator("input[name=to]").fill("Triage")

    expect(prospect).to_have_text("What happens to this message could not be loaded. The database is busy.")


@pytest.mark.slow
def test_a_failed_request_for_rows_scrolled_to_is_repeated(window: Page) -> None:
    window.goto("/conversations/long/?view=timeline")
    expect(window.locator("conversation-timeline[data-live]")).to_be_visible()
    rows = window.locator(".timeline-rows")
    before = rows.locator(".span").first.get_attribute("data-number")
    assert before != "0"
    expect(rows.locator(".span").last).to_be_in_viewport()
    window.route("**part=timeline*", reject, times=1)
    with window.expect_response("**part=timeline*") as response_info:
        window.keyboard.press("Home")
    assert response_info.value.status == 503

    expect(rows.locator(".span[data-number='0']")).to_be_in_viewport()


@pytest.mark.slow
def test_a_failed_request_for_an_outcome_is_repeated_without_another_event(served: Server, window: Page) -> None:
    start = "t.log.append(toolcalls.call('calls', 1)[:1])"
    work(served, f"from tests.support import toolcalls\n{start}")
    window.goto("/calls/")
    window.locator("[data-list] [data-key] a").first.click()
    expect(window.get_by_text("The call has not finished yet.")).to_be_visible()
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    window.route("**part=outcome*", reject, times=1)

    with window.expect_response("**part=outcome*") as response_info:
        work(served, f"from tests.support import toolcalls\n{start.replace('[:1]', '[1:]')}")
    assert response_info.value.status == 503

    expect(window.get_by_text("The call has not finished yet.")).to_be_hidden()


@pytest.mark.slow
def test_a_failed_request_for_a_list_of_calls_is_repeated_without_another_event(served: Server, window: Page) -> None:
    window.goto("/calls/?q=lamp")
    expect(window.locator("live-state[data-state=live]")).to_be_visible()
    window.route("**part=list*", reject, times=1)

    with window.expect_response("**part=list*") as response_info:
        work(
            served,
            "from tests.support import toolcalls\nt.log.append(toolcalls.call('calls', 2, args={'what': 'lamp'}))",
        )
    assert response_info.value.status == 503

    expect(window.locator("[data-list] [data-key]")).to_have_count(1)
