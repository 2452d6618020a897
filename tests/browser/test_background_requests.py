"""What a page asks for while a run goes on and nobody touches it: a handful of requests, however many events come, and
what is shown is right in the end."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from docs.screenshots import report
from tests.browser import sign_in
from tests.support.live import Server, until

MOST = 6  # requests of one viewer in a run of a few seconds
PER_S = 0.6  # more of a run that a busy machine draws out: half a question a second, and the read markers
EVENTS = 40  # of a run up to its question, at least: each could be a request


@pytest.fixture(scope="module")
def town_hall() -> Iterator[Server]:
    """The team that ships, with the demo model."""
    started = Server(SWITCHBOARD_DEMO_PACE_S="0.1").start()
    yield started
    started.terminate()


@pytest.fixture
def viewer(chromium: Browser, town_hall: Server) -> Iterator[Page]:
    """Somebody who looks at a conversation that has not begun."""
    context = chromium.new_context(base_url=town_hall.url)
    sign_in(town_hall, context)
    page = context.new_page()
    yield page
    context.close()


def newest(page: Page) -> dict[str, int]:
    """Return up to which event each part of the page is drawn."""
    parts = {"rows": "live-transcript", "state": "[data-standing]", "panel": "[data-sections]"}
    return {name: int(page.locator(part).first.get_attribute("data-head") or 0) for name, part in parts.items()}


def test_a_run_costs_a_viewer_a_handful_of_requests(town_hall: Server, viewer: Page) -> None:
    token = town_hall.token()
    town_hall.publish(
        token, "stream:elm", {"type": "message", "sender": "person", "recipient": "chat:elm", "content": "Hi"}
    )
    viewer.goto("/conversations/elm/")
    expect(viewer.locator("live-state[data-state=live]")).to_be_attached()
    viewer.wait_for_load_state("networkidle")
    requests: list[str] = []

    def note(request: Request) -> None:
        requests.append(f"{request.method} {request.url.removeprefix(town_hall.url)}")

    viewer.on("request", note)
    began = time.monotonic()
    report(town_hall, token, "elm", "A water pipe burst on Elm Street 12 and the road is flooded. My name is Ada.")
    expect(viewer.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    expect(viewer.locator("[data-standing]")).to_contain_text("Waiting for you")
    until(lambda: len(set(newest(viewer).values())) == 1, what="every part to be as new as the rows")

    assert newest(viewer)["rows"] >= EVENTS
    assert len(requests) <= MOST + PER_S * max(0, time.monotonic() - began - MOST), requests
