"""Answers that break off or are not ours: each is told as a failed request, so that whoever asked asks again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import open_empty_page

BROKEN = """([status, isCut]) => {
  const cut = () => new ReadableStream({ start: (line) => line.error(new TypeError("network error")) });
  globalThis.fetch = async () => new Response(isCut ? cut() : "<p>Welcome to our Wi-Fi</p>", { status });
}"""
ASK = """async (name) => {
  const { json, bytes, markup, submit } = await import("/static/js/fetch.js");
  const ask = {
    json: () => json("/x"),
    bytes: () => bytes("/x", new Blob()),
    markup: () => markup("/x"),
    submit: () => submit("/x", new FormData()),
  };
  return ask[name]().then(() => "an answer", (error) => [error.name, error.status, error.sentence]);
}"""
UNANSWERED = ["RequestError", 0, "The server did not respond."]

PAGES = """async () => {
  document.body.innerHTML = `<div data-entries="/entries" data-first="9">
    <div class="transcript"><a data-older>Older</a><a data-newer hidden></a></div></div>`;
  const { TranscriptPages } = await import("/static/js/transcript-pages.js");
  const host = document.body.firstElementChild;
  const tail = { hold() {}, settle() {}, isFollowing: true, hasNewer: false };
  globalThis.asked = 0;
  const fails = globalThis.fetch;
  globalThis.fetch = (...request) => ((asked += 1), fails(...request));
  new TranscriptPages(host, { reset() {}, prepend: () => true, unloadNewest: () => 0 }, tail);
}"""


@pytest.fixture
def place(chromium: Browser) -> Iterator[Page]:
    """An empty page that has the scripts."""
    context = chromium.new_context()
    page = context.new_page()
    open_empty_page(page)
    yield page
    context.close()


@pytest.mark.parametrize("name", ["json", "bytes", "markup", "submit"])
def test_an_answer_that_breaks_off_is_a_failed_request(place: Page, name: str) -> None:
    place.evaluate(BROKEN, [200, True])

    assert place.evaluate(ASK, name) == UNANSWERED


@pytest.mark.parametrize("name", ["json", "bytes"])
def test_an_answer_of_somebody_else_is_a_failed_request(place: Page, name: str) -> None:
    place.evaluate(BROKEN, [200, False])

    assert place.evaluate(ASK, name) == UNANSWERED


def test_an_older_page_that_broke_off_is_asked_for_again(place: Page) -> None:
    place.evaluate(BROKEN, [200, True])
    place.evaluate(PAGES)
    place.wait_for_function("asked === 1")  # the link to it is in view

    place.locator("[data-older]").click()

    place.wait_for_function("asked === 2")
    expect(place.locator("[data-older]")).to_have_text("The server did not respond. Try again")
