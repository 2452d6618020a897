"""Two people at one browser: the tab of the one does nothing after the other has signed in in the next."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import sign_in
from tests.support.live import Server

KEY = "one-browser"
MESSAGE = {"type": "message", "conversation_id": KEY, "sender": "Rosa", "recipient": f"chat:{KEY}", "content": "Hi."}
REFUSED = "This page was opened by olga, but omar has signed in in this browser since"


@pytest.fixture
def shared(chromium: Browser, server: Server, token: str) -> Iterator[BrowserContext]:
    """A browser in which olga has signed in."""
    server.publish(token, f"chat:{KEY}", MESSAGE, "one-browser-1")
    context = chromium.new_context(base_url=server.url)
    sign_in(server, context, "olga", "admin")
    yield context
    context.close()


def written_by_omar(server: Server) -> list[object]:
    return server.rows("SELECT seq FROM conversations_event WHERE principal='user:omar'")


def test_the_tab_of_the_first_person_does_nothing_as_the_second(shared: BrowserContext, server: Server) -> None:
    page: Page = shared.new_page()
    page.goto(f"/conversations/{KEY}/")
    expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    sign_in(server, shared, "omar", "admin")

    page.get_by_label("Message", exact=True).fill("In whose name?")
    page.get_by_label("Message", exact=True).press("Control+Enter")

    strip = page.locator("connection-strip").get_by_role("alert")
    expect(strip).to_contain_text("Somebody else has signed in in this browser. This is still olga’s page")
    expect(page.get_by_text(REFUSED)).to_be_visible()
    assert written_by_omar(server) == []
    strip.get_by_role("link", name="Reload").click()
    expect(page.get_by_role("button", name="Account: omar")).to_be_visible()
