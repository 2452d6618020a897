"""Answers that break off or are not ours: each is told as a failed request, so that whoever asked asks again."""

from playwright.sync_api import Page, expect

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
  const tail = { beforeChange() {}, afterChange() {}, isFollowing: true, hasNewer: false };
  globalThis.asked = 0;
  const fails = globalThis.fetch;
  globalThis.fetch = (...request) => ((asked += 1), fails(...request));
  new TranscriptPages(host, { reset() {}, prepend: () => true, unloadNewest: () => 0 }, tail);
}"""


def test_an_answer_that_breaks_off_is_a_failed_request(empty_page: Page) -> None:
    empty_page.evaluate(BROKEN, [200, True])

    for name in ("json", "bytes", "markup", "submit"):
        assert empty_page.evaluate(ASK, name) == UNANSWERED, name


def test_an_answer_of_somebody_else_is_a_failed_request(empty_page: Page) -> None:
    empty_page.evaluate(BROKEN, [200, False])

    for name in ("json", "bytes"):
        assert empty_page.evaluate(ASK, name) == UNANSWERED, name


def test_an_older_page_that_broke_off_is_asked_for_again(empty_page: Page) -> None:
    empty_page.evaluate(BROKEN, [200, True])
    empty_page.evaluate(PAGES)
    empty_page.wait_for_function("asked === 1")  # the link to it is in view

    empty_page.locator("[data-older]").click()

    empty_page.wait_for_function("asked === 2")
    expect(empty_page.locator("[data-older]")).to_have_text("The server did not respond. Try again")
