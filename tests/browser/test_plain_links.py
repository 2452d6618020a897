"""Links while the connection is lost: the page stays open, says so, and opens the address once the server is back."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import EMPTY, Wires
from tests.browser.socket_line import Line

AWAY = "The server is not reachable; this page stays open. The link opens once the server is back."
LINKS = """async () => {
  globalThis.checks = 0;
  globalThis.reachable = false;
  globalThis.fetch = async (address) => {
    checks += 1;
    if (!reachable) throw new TypeError("no network");
    return new Response("");
  };
  document.body.innerHTML = `<main><a href="/next">Next</a> <a href="/file" download>File</a>
    <a href="/next" target="_blank">New tab</a> <a href="#part">Part</a> <a href="http://other.test/">Elsewhere</a>
    <svg width="90" height="20"><a href="/next"><text y="15">Drawn</text></a></svg>
    <form action="/found"><input name="q" value="a b"><button name="in" value="all">Search</button></form></main>`;
  const { visit } = await import("/static/js/plain-links.js");
  Object.assign(globalThis, { visit });
  globalThis.left = []; // clicks that the browser would act on
  addEventListener("click", (event) => {
    if (event.defaultPrevented || !event.target.closest("a")) return;
    left.push(event.target.textContent);
    event.preventDefault();
  });
}"""


@pytest.fixture
def lost(line: Line) -> Page:
    """A page with links whose connection is lost, and does not come back by itself."""
    line.page.evaluate(LINKS)
    line.subscribe()
    line.page.evaluate("() => void (globalThis.setTimeout = () => 0)")
    line.routes[-1].close(code=1006)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")
    return line.page


@pytest.mark.parametrize("name", ["Next", "Drawn"])
def test_a_link_waits_on_the_page_until_the_connection_is_back(lost: Page, name: str) -> None:
    lost.get_by_text(name).click()

    expect(lost.get_by_role("status")).to_have_text(AWAY)
    assert lost.url == EMPTY
    lost.evaluate("socket.tryNow()")
    expect(lost).to_have_url(f"{EMPTY}next")


def test_a_link_is_followed_at_once_if_the_server_responds_already(lost: Page) -> None:
    lost.evaluate("reachable = true")

    lost.get_by_text("Next").click()

    expect(lost).to_have_url(f"{EMPTY}next")


def test_a_search_waits_with_what_was_typed_and_the_pressed_button(lost: Page) -> None:
    lost.get_by_role("button", name="Search").click()

    expect(lost.get_by_role("status")).to_have_text(AWAY)
    lost.evaluate("socket.tryNow()")
    expect(lost).to_have_url(f"{EMPTY}found?q=a+b&in=all")


def test_a_key_waits_too(lost: Page) -> None:
    lost.evaluate("visit('/next')")

    expect(lost.get_by_role("status")).to_have_text(AWAY)
    lost.evaluate("socket.tryNow()")
    expect(lost).to_have_url(f"{EMPTY}next")


@pytest.mark.parametrize("stop", ["[aria-label=Dismiss]", "input"])
def test_whoever_dismisses_it_or_goes_on_typing_stays(lost: Page, stop: str) -> None:
    lost.get_by_text("Next").click()
    expect(lost.get_by_role("status")).to_have_text(AWAY)

    if stop == "input":
        lost.locator("input").press_sequentially("c")
    else:
        lost.locator(stop).click()

    expect(lost.locator(".report")).to_be_hidden()
    lost.evaluate("socket.tryNow()")
    lost.wait_for_function("socket.state === 'live'")
    assert lost.url == EMPTY


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Next", {"modifiers": ["Control"]}),
        ("Next", {"modifiers": ["Shift"]}),
        ("File", {}),
        ("New tab", {}),
        ("Part", {}),
        ("Elsewhere", {}),
    ],
)
def test_what_opens_no_page_here_is_left_to_the_browser(lost: Page, name: str, options: dict[str, Any]) -> None:
    lost.get_by_text(name, exact=True).click(**options)

    assert lost.evaluate("[left, checks]") == [[name], 0]


def test_with_a_connection_no_link_is_checked(line: Line) -> None:
    line.page.evaluate(LINKS)
    line.subscribe()

    line.page.get_by_text("Next").click()

    assert line.page.evaluate("[left, checks]") == [["Next"], 0]


@pytest.fixture
def cut(lenient_page: Page) -> Iterator[tuple[Page, Wires]]:
    """A page and its sockets; the health check is answered only once they are mended."""
    wires = Wires(lenient_page)
    lenient_page.route("**/healthz", lambda route: route.abort() if wires.is_cut else route.continue_())
    yield lenient_page, wires
    lenient_page.unroute("**/healthz")


@pytest.mark.slow
def test_a_page_of_the_server_stays_and_the_link_opens_by_itself(cut: tuple[Page, Wires]) -> None:
    page, wires = cut
    page.goto("/")
    expect(page.locator("live-state[data-state=live]")).to_be_visible()
    wires.cut()
    expect(page.locator("live-state[data-state=down]")).to_be_visible()

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Tool calls").click()
    expect(page.locator(".report")).to_have_text(AWAY + "×")
    wires.mend()

    expect(page.get_by_role("heading", name="Tool calls", exact=True)).to_be_visible()
