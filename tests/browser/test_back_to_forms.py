"""Back to a form that was sent: the browser shows the page as it was left, and the form can be sent again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import open_empty_page

FORK = """async () => {
  document.body.innerHTML = `<form data-fork><div class="transcript"></div><i data-said></i>
    <button>Fork</button><button disabled>Fork and run</button></form>`;
  addEventListener("submit", (event) => event.preventDefault());
  await import("/static/js/fork-page.js");
}"""
UPLOAD = """async () => {
  document.body.innerHTML = `<recording-upload data-to="/upload" data-piece="100" data-largest="100"><form>
    <input type="file" name="file"><input name="job"><button>Import</button>
    <p data-progress hidden><span></span><progress></progress></p></form></recording-upload>`;
  globalThis.fetch = async () => new Response('{"job": "7", "received": 5}');
  document.querySelector("form").submit = () => (globalThis.isSent = true);
  await import("/static/js/recording-upload.js");
}"""
BACK = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })), void 0"


@pytest.fixture
def place(chromium: Browser) -> Iterator[Page]:
    """An empty page that has the scripts."""
    context = chromium.new_context()
    page = context.new_page()
    open_empty_page(page)
    yield page
    context.close()


def test_a_fork_can_be_made_again(place: Page) -> None:
    place.evaluate(FORK)
    first, second = place.locator("button").all()
    first.click()
    expect(first).to_be_disabled()

    place.evaluate(BACK)

    expect(first).to_be_enabled()
    expect(second).to_be_disabled()


def test_another_file_can_be_imported(place: Page) -> None:
    place.evaluate(UPLOAD)
    place.locator("[type=file]").set_input_files({"name": "a.json", "mimeType": "text/plain", "buffer": b"12345"})
    place.locator("button").click()
    place.wait_for_function("globalThis.isSent")

    place.evaluate(BACK)

    expect(place.locator("[type=file]")).to_be_enabled()
    expect(place.locator("button")).to_be_enabled()
    expect(place.locator("[name=job]")).to_have_value("")
    expect(place.locator("[data-progress]")).to_be_hidden()
