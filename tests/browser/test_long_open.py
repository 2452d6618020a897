"""Pages that are open for hours: what has left the page is let go, and what somebody uses stays as it is."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import open_empty_page

WRITTEN = """async () => {
  const { LiveText } = await import("/static/js/live-text.js");
  const row = (group) => {
    document.body.innerHTML = `<div class="rows"><p data-live-text data-group="${group}"></p></div>`;
    return document.querySelector(".rows");
  };
  globalThis.text = new LiveText();
  const write = (group) => {
    const stretch = row(group);
    text.add(group, "written, and never ended");
    text.flush(() => stretch);
    return stretch;
  };
  globalThis.first = new WeakRef(write("first"));
  write("second");
}"""


@pytest.fixture
def place(chromium: Browser) -> Iterator[Page]:
    """An empty page that has the scripts, and a clock of the test's."""
    context = chromium.new_context()
    page = context.new_page()
    page.clock.install()
    open_empty_page(page)
    yield page
    context.close()


def test_rows_that_left_the_page_are_let_go_with_text_that_never_ended(place: Page) -> None:
    place.evaluate(WRITTEN)

    place.context.new_cdp_session(place).send("HeapProfiler.collectGarbage")

    assert place.evaluate("first.deref() === undefined")
