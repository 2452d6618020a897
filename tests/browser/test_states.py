"""Pages that have nothing to show or cannot: framed and readable, with a way on."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser import in_every_look, sign_in
from tests.support.live import Server

STARTING = "from dashboard.server import starting_page; print(starting_page._drawn({!r}).decode())"
LOOK = """(blank) => {
  const frame = getComputedStyle(blank.closest(".requests, .fleet") ?? blank);
  const title = getComputedStyle(blank.querySelector("h2"));
  return [frame.borderTopWidth, title.fontSize, title.backgroundColor, title.paddingTop];
}"""


@pytest.fixture(scope="module")
def quiet() -> Iterator[Server]:
    """A server to which nothing has happened yet."""
    started = Server().start()
    yield started
    started.terminate()


@pytest.fixture(scope="module")
def first_visit(chromium: Browser, quiet: Server) -> Iterator[BrowserContext]:
    """The owner's browser at it."""
    context = chromium.new_context(base_url=quiet.url, viewport={"width": 1440, "height": 900})
    sign_in(quiet, context)
    yield context
    context.close()


@pytest.fixture
def page(first_visit: BrowserContext) -> Iterator[Page]:
    """A fresh window at it."""
    window = first_visit.new_page()
    yield window
    window.close()


def test_what_is_empty_looks_alike_on_every_page(page: Page) -> None:
    looks = {}
    for address in ("/", "/approvals/", "/calls/", "/search/?q=nowhere", "/policies/", "/no-such-page/"):
        page.goto(address)
        looks[address] = page.locator(".blank").first.evaluate(LOOK)

    assert set(map(tuple, looks.values())) == {("1px", "14px", "rgba(0, 0, 0, 0)", "0px")}, looks


def test_no_keys_are_offered_for_requests_that_are_not_there(page: Page) -> None:
    page.goto("/approvals/")

    expect(page.get_by_role("heading", name="Nothing is waiting for approval")).to_be_visible()
    expect(page.locator(".keys-hint")).to_be_hidden()
    assert page.locator(".requests").bounding_box()["width"] > 1_000
    assert in_every_look(page, "no requests") == {}


def test_a_browser_waits_for_a_server_that_starts(quiet: Server, page: Page) -> None:
    html, is_ready = quiet.command("shell", "--no-imports", "-c", STARTING.format("waiting for migrations")), False

    def serve(route: Route) -> None:
        if is_ready:
            route.continue_()
        elif route.request.url.endswith("/readyz"):
            route.fulfill(status=503, body="{}")
        else:
            route.fulfill(status=503, body=html, content_type="text/html")

    page.route("**/readyz", serve)
    page.route("**/policies/", serve)
    page.goto("/policies/")
    expect(page.get_by_role("heading", name="The server is starting")).to_be_visible()
    expect(page.get_by_text("The page opens by itself")).to_be_visible()
    expect(page.get_by_text("Waiting for migrations.")).to_be_visible()
    assert in_every_look(page, "starting") == {}

    is_ready = True
    expect(page).to_have_title("Policies · Switchboard")
