"""A page whose socket is refused since its person has too many says so, waits, and is live once another is closed."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.browser import team_server
from tests.browser.socket_line import Line
from tests.support.live import Server


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server that allows each person one socket."""
    with team_server(SWITCHBOARD_SOCKETS_PER_PRINCIPAL="1") as started:
        yield started


def test_the_page_says_why_and_is_live_once_another_is_closed(desk: BrowserContext) -> None:
    first, second = desk.new_page(), desk.new_page()
    first.goto("/")
    expect(first.locator("live-state")).to_have_attribute("data-state", "live")

    second.goto("/")

    strip = second.locator("connection-strip [data-state=crowded]")
    expect(strip).to_contain_text("You have too many pages open, so this one is not live. Close some of the others")
    expect(second.locator("live-state")).to_have_text("Not live")
    expect(second.get_by_text("Connection lost. Showing")).to_be_hidden()
    first.close()
    strip.get_by_role("button", name="Try now").click()
    expect(second.locator("live-state")).to_have_text("Live")
    expect(strip).to_be_hidden()
    second.close()


def test_too_many_pages_wait_with_growing_delays_and_are_live_with_the_first_frame(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.page.evaluate(
        """() => {
          Math.random = () => 1;
          globalThis.delays = [];
          globalThis.states = [];
          globalThis.setTimeout = (_, delay) => delays.push(delay);
          socket.addEventListener("state", ({ detail }) => states.push(detail.state));
        }"""
    )
    for number in range(1, 8):
        line.wait(lambda n=number: len(line.requests) == n)
        line.routes[-1].close(code=4429)
        line.wait(lambda n=number: line.page.evaluate("delays.length") == n)
        line.page.evaluate("socket.tryNow()")

    assert line.page.evaluate("delays") == [8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]
    assert set(line.page.evaluate("states")) == {"crowded"}
    line.wait(lambda: len(line.requests) == 8)
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=0)

    line.wait(lambda: line.page.evaluate("socket.state") == "live")
    assert (len(line.received("down")), len(line.received("up"))) == (1, 1)
