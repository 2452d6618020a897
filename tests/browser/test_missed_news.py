"""Parts of a page that an event reaches while they are fetched, closed or hidden show it without a further event."""

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.socket_line import Line
from tests.browser.test_slow_answers import HELD, answer
from tests.browser.test_view_scripts import OUTLINE

DRAWN = """(seq) => document.dispatchEvent(
  new CustomEvent("transcript:drawn", { detail: { seq, count: 0, names: [], changesState: false } }))"""
HIDDEN = """(isHidden) => {
  Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
OUTLINED = '<ol data-outline-page data-head="{0}"><li><a data-outline="{0}" href="#">{0}</a></li></ol>'
LANES = """async () => {
  document.body.innerHTML = `<tail-follow><live-transcript data-head="4"><div class="transcript"><div class="rows">
    <p data-seq="4" style="height: 20px">4</p></div></div><lane-overview data-src="/overview"></lane-overview>
    </live-transcript></tail-follow>`;
  await import("/static/js/lane-overview.js");
}"""
CALLS = """async () => {
  document.body.innerHTML = `<call-list><p data-lost hidden></p><button data-changed hidden><span></span></button>
    <p data-unfiltered hidden><span></span><button></button></p><list-filter>
    <form data-filter action="/calls/"><input name="q"></form></list-filter><p data-facets>4 failed</p>
    <div data-list><p data-key="1">before</p></div></call-list>`;
  await import("/static/js/list-filter.js");
  await import("/static/js/call-list.js");
}"""
AUDIT = """async () => {
  document.body.innerHTML = `<audit-log data-newest="1"><p data-lost hidden></p>
    <button data-changed hidden><span></span></button><p data-unfiltered hidden><span></span><button></button></p>
    <list-filter><form data-filter action="/audit/"><input name="q"></form></list-filter><div data-facets></div>
    <table><tbody data-list><tr data-key="1"><td>before</td></tr></tbody></table></audit-log>`;
  await import("/static/js/list-filter.js");
  await import("/static/js/audit-log.js");
}"""
READ = """async () => {
  document.body.innerHTML = `<live-transcript data-head="4"><tail-follow></tail-follow></live-transcript>
    <read-marker data-address="/read" data-conversation="c"></read-marker>`;
  Object.assign(document.querySelector("live-transcript"), { isSubscribed: true });
  Object.assign(document.querySelector("tail-follow"), { isFollowing: true });
  await import("/static/js/read-marker.js");
}"""
STRIP = '<svg data-head="{}"></svg>'


@pytest.fixture
def line(timed_line: Line) -> Line:
    """An empty page, whose clock a test may set, and the other end of its socket."""
    return timed_line


@pytest.fixture
def place(empty_page: Page) -> Page:
    """An empty page that has the scripts, and whose requests wait for the test to answer them."""
    empty_page.evaluate(HELD)
    return empty_page


def open_outline(page: Page, head: int) -> None:
    """Open the outline, whose first page includes the events up to `head`."""
    page.evaluate(OUTLINE)
    page.get_by_role("button", name="Outline").click()
    answer(page, OUTLINED.format(head))
    expect(page.locator("[data-outline]")).to_have_text(str(head))


def test_an_outline_shows_what_came_while_the_window_was_hidden(place: Page) -> None:
    open_outline(place, 4)

    place.evaluate(HIDDEN, True)
    place.evaluate(DRAWN, 5)
    place.evaluate(HIDDEN, False)

    answer(place, OUTLINED.format(5), 1)
    expect(place.locator("[data-outline]")).to_have_text("5")


def test_an_outline_shows_what_came_while_it_was_closed(place: Page) -> None:
    open_outline(place, 4)

    place.get_by_role("button", name="Facts").click()
    place.evaluate(DRAWN, 5)
    place.get_by_role("button", name="Outline").click()

    answer(place, OUTLINED.format(5), 1)
    expect(place.locator("[data-outline]")).to_have_text("5")


def test_an_outline_shows_what_came_while_its_first_page_was_fetched(place: Page) -> None:
    place.evaluate(OUTLINE)
    place.get_by_role("button", name="Outline").click()
    place.wait_for_function("waiting.length === 1")

    place.evaluate(DRAWN, 5)
    answer(place, OUTLINED.format(4))

    answer(place, OUTLINED.format(5), 1)
    expect(place.locator("[data-outline]")).to_have_text("5")


@pytest.mark.parametrize("status", [200, 503])
def test_the_overview_of_lanes_shows_what_came_while_it_was_fetched(place: Page, status: int) -> None:
    place.evaluate(LANES)
    place.wait_for_function("waiting.length === 1")

    place.evaluate("document.querySelector('live-transcript').dataset.head = 5")
    place.evaluate(DRAWN, 5)
    place.wait_for_function("document.querySelector('lane-overview').ariaValueMax === '5'")
    answer(place, STRIP.format(4), status=status)

    answer(place, STRIP.format(5), 1)
    expect(place.locator("lane-overview svg")).to_have_attribute("data-head", "5")


def test_a_list_that_is_updated_leaves_the_filter_that_is_being_applied_alone(timed_line: Line) -> None:
    """Else its counts would stay those of the list before, and its failure would not be told."""
    lists: list[Route] = []
    timed_line.page.route("**part=list*", lambda route: lists.append(route))
    timed_line.page.route("**part=facets*", lambda route: route.fulfill(body="1 failed"))
    timed_line.page.clock.install()
    timed_line.page.evaluate(CALLS)
    timed_line.page.locator("[name=q]").fill("lantern")
    timed_line.page.clock.run_for(500)
    timed_line.wait(lambda: len(lists) == 1)

    timed_line.page.evaluate(HIDDEN, False)
    timed_line.page.clock.run_for(2_000)
    lists[0].fulfill(body='<p data-key="2">lantern</p>')

    expect(timed_line.page.locator("[data-facets]")).to_have_text("1 failed")
    timed_line.page.clock.run_for(2_000)
    timed_line.wait(lambda: len(lists) == 2)


def test_a_call_that_moves_up_from_the_next_page_is_not_counted_as_new(timed_line: Line) -> None:
    """As one does when a call above it no longer matches the filter."""
    timed_line.page.route(
        "**part=list*", lambda route: route.fulfill(body="".join(f'<p data-key="{n}">{n}</p>' for n in (3, 1, 0)))
    )
    timed_line.page.clock.install()
    timed_line.page.evaluate(CALLS)
    shown = '<p data-key="2">2</p><p data-key="1">1</p><a href="#" rel="next">Older</a>'
    timed_line.page.locator("[data-list]").evaluate("(list, shown) => (list.innerHTML = shown)", shown)
    timed_line.page.locator("[data-list]").hover()

    with timed_line.page.expect_response("**part=list*"):
        timed_line.page.evaluate(HIDDEN, False)
        timed_line.page.clock.run_for(2_000)

    expect(timed_line.page.locator("[data-changed]")).to_have_text("1 new call")


def test_new_entries_are_counted_of_the_list_that_is_shown(line: Line) -> None:
    """Not of the one that a filter has replaced while they were counted."""
    counts: list[Route] = []
    line.page.route("**part=news*", lambda route: counts.append(route))
    line.page.route("**part=list*", lambda route: route.fulfill(body='<tr data-key="7"><td>lantern</td></tr>'))
    line.page.route("**part=facets*", lambda route: route.fulfill(body="1"))
    line.page.evaluate(AUDIT)
    line.wait(lambda: len(line.requests) == 2)  # the other one is of the requests that wait
    line.send(t="rows", topic="audit", rows=[{"key": "newest", "version": 7}])
    line.wait(lambda: len(counts) == 1)

    line.page.locator("[name=q]").fill("lantern")
    expect(line.page.locator("[data-list]")).to_have_text("lantern")
    counts[0].fulfill(json={"new": 6, "is_cut": False})
    line.wait(lambda: len(counts) == 2)

    expect(line.page.locator("[data-changed]")).to_be_hidden()
    assert "after=7" in counts[1].request.url


def test_what_was_read_is_reported_again_if_that_failed(timed_line: Line) -> None:
    """Though no further event comes."""
    reports: list[Route] = []
    timed_line.page.route("**/read", lambda route: reports.append(route))
    timed_line.page.clock.install()
    timed_line.page.evaluate(READ)
    timed_line.page.clock.run_for(1_000)
    timed_line.wait(lambda: len(reports) == 1)

    with timed_line.page.expect_response("**/read"):
        reports[0].fulfill(status=503)
    timed_line.page.wait_for_load_state("networkidle")
    timed_line.page.clock.run_for(11_000)
    timed_line.wait(lambda: len(reports) == 2)

    assert reports[1].request.post_data_json == {"conversation_id": "c", "last_seq": 4}
