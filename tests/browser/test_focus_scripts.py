"""Where the focus is once a button was used or has gone, in an empty page of a real browser."""

from playwright.sync_api import Page, Route, expect

ACTIONS = """async () => {
  document.body.innerHTML = `<inline-actions><form id="again" data-address="/calls/"></form><permission-gate>
    <button form="again" value="k">Run again</button><span data-said></span></permission-gate></inline-actions>`;
  await import("/static/js/inline-actions.js");
}"""
STRIP = """async () => {
  document.body.innerHTML = `<main><conversation-strip hidden><svg><use></use></svg><span></span><a hidden></a>
    <reconnect-now hidden><button>Try now</button></reconnect-now><button data-dismiss>Dismiss</button>
    </conversation-strip><div class="transcript" tabindex="0"></div></main>`;
  await import("/static/js/conversation-strip.js");
  const main = document.querySelector("main");
  globalThis.tell = (name, detail) => main.dispatchEvent(new CustomEvent(`connection:${name}`, { detail }));
}"""
REPORT = """async () => {
  document.body.innerHTML = `<main><button>Send</button></main>`;
  (await import("/static/js/page-report.js")).report("Not sent.", "failed");
}"""
BACK = {"count": 0, "first": 0, "last": 4, "isWhole": True, "awayMs": 9}


def test_a_button_within_the_transcript_keeps_the_focus_and_sends_once(empty_page: Page) -> None:
    routes: list[Route] = []
    empty_page.route("**/again", lambda route: routes.append(route))
    empty_page.evaluate(ACTIONS)
    button = empty_page.get_by_role("button")

    button.focus()
    empty_page.keyboard.press("Enter")
    empty_page.keyboard.press("Enter")
    expect(empty_page.locator("[data-said]")).to_have_text("Sending…")

    expect(button).to_be_focused()
    routes.pop().abort()
    expect(empty_page.locator("[data-said]")).not_to_have_text("Sending…")
    assert routes == []
    expect(button).to_be_focused()


def test_the_transcript_gets_the_focus_of_a_strip_that_goes(empty_page: Page) -> None:
    empty_page.evaluate(STRIP)
    transcript = empty_page.locator(".transcript")

    empty_page.evaluate("tell('down', { seq: 4 })")
    empty_page.get_by_role("button", name="Try now").focus()
    empty_page.evaluate("(back) => tell('restored', back)", BACK)
    expect(transcript).to_be_focused()

    empty_page.get_by_role("button", name="Dismiss").press("Enter")
    expect(transcript).to_be_focused()


def test_a_dismissed_line_returns_the_focus(empty_page: Page) -> None:
    empty_page.evaluate(REPORT)
    empty_page.get_by_role("button", name="Send").focus()

    empty_page.keyboard.press("Tab")
    expect(empty_page.get_by_role("button", name="Dismiss")).to_be_focused()
    empty_page.keyboard.press("Enter")

    expect(empty_page.locator(".report")).to_be_hidden()
    expect(empty_page.get_by_role("button", name="Send")).to_be_focused()
