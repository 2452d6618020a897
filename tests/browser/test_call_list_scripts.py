"""The script of the list of tool calls, in an empty page of a real browser, against a socket of the test's own."""

import pytest

from tests.browser.socket_line import Line

CALLS = """async (drawnAt) => {
  document.body.dataset.drawnAt = drawnAt;
  document.body.innerHTML = `<call-list><p data-lost hidden></p><button data-changed hidden><span></span></button>
    <p data-unfiltered hidden><span></span><button></button></p>
    <list-filter></list-filter><div data-list></div></call-list>`;
  globalThis.fetched = [];
  globalThis.fetch = (address) => (fetched.push(String(address)), new Promise(() => {}));
  await import("/static/js/call-list.js");
}"""


@pytest.mark.parametrize(("changed_s", "is_fetched"), [(3, True), (-60, False)])
def test_calls_that_changed_between_the_page_and_its_socket_are_fetched(
    timed_line: Line, changed_s: int, is_fetched: bool
) -> None:
    drawn_at = 1_700_000_000_000_000
    timed_line.page.clock.install()
    timed_line.subscribe("approvals")
    timed_line.page.evaluate(CALLS, drawn_at)
    timed_line.wait(lambda: len(timed_line.requests) == 2)

    row = {"key": "a", "version": 1, "at": drawn_at + changed_s * 1_000_000}
    timed_line.send(t="rows", topic="fleet", rows=[row])
    timed_line.send(t="rows", topic="approvals", rows=[])
    timed_line.wait(lambda: timed_line.received("rows"))
    timed_line.page.clock.run_for(2_000)

    assert len(timed_line.page.evaluate("fetched")) == is_fetched
