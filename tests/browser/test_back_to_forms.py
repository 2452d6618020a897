"""Back to a form that was sent: the browser shows the page as it was left, and the form can be sent again."""

from playwright.sync_api import Page, expect

FORK = """async () => {
  document.body.innerHTML = `<form data-fork><div class="transcript"></div><i data-said></i>
    <button>Fork</button></form>`;
  await import("/static/js/fork-page.js");
  addEventListener("submit", (event) => event.preventDefault());
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


def test_a_fork_can_be_made_again(empty_page: Page) -> None:
    empty_page.evaluate(FORK)
    empty_page.locator("button").click()
    expect(empty_page.locator("[data-said]")).to_have_text("Copying…")
    expect(empty_page.locator("button")).to_be_focused()

    empty_page.evaluate(BACK)

    expect(empty_page.locator("[data-said]")).to_have_text("")


def test_another_file_can_be_imported(empty_page: Page) -> None:
    empty_page.evaluate(UPLOAD)
    empty_page.locator("[type=file]").set_input_files({"name": "a.json", "mimeType": "text/plain", "buffer": b"12345"})
    empty_page.locator("button").click()
    empty_page.wait_for_function("globalThis.isSent")
    expect(empty_page.locator("button")).to_be_focused()

    empty_page.evaluate(BACK)
    empty_page.locator("[type=file]").set_input_files({"name": "b.json", "mimeType": "text/plain", "buffer": b"12345"})
    empty_page.evaluate("globalThis.isSent = false")
    empty_page.locator("button").click()
    empty_page.wait_for_function("globalThis.isSent")
    empty_page.evaluate(BACK)

    expect(empty_page.locator("[type=file]")).to_be_enabled()
    expect(empty_page.locator("button")).to_be_enabled()
    expect(empty_page.locator("[name=job]")).to_have_value("")
    expect(empty_page.locator("[data-progress]")).to_be_hidden()
