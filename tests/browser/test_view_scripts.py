"""Scripts of a conversation's views in an empty page of a real browser: redactions, failed requests, slow responses."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Route

from tests.browser.test_socket_scripts import Line

PARTS = """<h1></h1><p data-standing data-head="9"></p><p data-verbs="first"></p><p data-verbs="folded"></p>
  <p data-alarm></p>"""
CONTROL = """async ([parts, past]) => {
  document.body.innerHTML = `<live-transcript data-head="9"></live-transcript>${past}
    <conversation-control data-address="/state">${parts}</conversation-control>
    <conversation-panel><div data-sections data-head="9"></div></conversation-panel>`;
  await import("/static/js/conversation-control.js");
}"""


@pytest.fixture
def line(chromium: Browser) -> Iterator[Line]:
    """A page and the other end of its socket."""
    context = chromium.new_context()
    yield Line(context.new_page())
    context.close()


@pytest.mark.parametrize("past", ["", "<play-head></play-head>"], ids=["present", "past"])
def test_the_panel_is_requested_after_a_redaction_until_it_was_rendered(line: Line, past: str) -> None:
    queries: list[str] = []
    line.page.evaluate(CONTROL, [PARTS, past])

    def respond(route: Route) -> None:
        queries.append(route.request.url.partition("?")[2])
        if len(queries) == 1:
            route.fulfill(status=503)
        else:
            route.fulfill(body=f"{PARTS}<p data-deliveries></p>")

    line.page.route("**/state?*", respond)
    line.page.evaluate("document.dispatchEvent(new CustomEvent('record:redacted'))")
    line.wait(lambda: len(queries) == 2)
    line.page.wait_for_load_state("networkidle")
    line.page.evaluate("document.dispatchEvent(new CustomEvent('visibilitychange'))")
    line.wait(lambda: len(queries) == 3)

    assert queries == (["", "", ""] if past else ["panel=1", "panel=1", ""])
