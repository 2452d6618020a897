"""Pages that are open for hours: what has left the page is let go, and what somebody uses stays as it is."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

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
LIST = """async () => {
  const row = (key) => `<article data-key="${key}" data-cursor="1.1" data-messages="0">
    <h2><a href="#">${key}</a></h2><span class="unread" hidden><i data-unread-count></i></span></article>`;
  globalThis.list = (...keys) => `<section class="fleet" data-read-at="0">${keys.map(row).join("")}</section>`;
  globalThis.answers = [];
  globalThis.fetch = () => new Promise((answered) => answers.push((html) => answered(new Response(html))));
  document.body.dataset.may = "";
  document.body.innerHTML = `<conversation-list><p data-lost hidden></p>
    <button data-changed hidden><span></span></button><div data-list>${list("a", "b")}</div></conversation-list>`;
  await import("/static/js/conversation-list.js");
}"""
PRESENCE = """async () => {
  globalThis.told = [];
  globalThis.fetch = async (address, { body }) => {
    told.push(JSON.parse(body).state);
    return new Response(null, { status: 204 });
  };
  globalThis.hide = (isHidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
  };
  document.body.innerHTML = `<div><conversation-presence data-address="/presence"><i class="marks"></i>
    <b data-words></b></conversation-presence><p data-presence-status></p></div>`;
  await import("/static/js/conversation-presence.js");
}"""
RESTORED = "document.dispatchEvent(new CustomEvent('connection:restored', { detail: {} }))"
NOTIFIED = """async () => {
  globalThis.Notification = class {
    static permission = "granted";
    constructor() { throw new TypeError("Illegal constructor"); }
  };
  localStorage.setItem("switchboard.notifications", "on");
  Object.defineProperty(document, "hidden", { get: () => true });
  document.body.dataset.may = "view decide";
  document.body.innerHTML = `<b data-waiting hidden><i></i></b><button data-notifications></button>`;
  document.head.innerHTML = `<link rel="icon" data-waiting-icon="/1" data-quiet="/2">`;
  const { tellWaiting } = await import("/static/js/waiting-count.js");
  tellWaiting({ waiting: 1 });
  tellWaiting({ waiting: 2 });
  return ["waiting", "notifications"].map((name) => document.querySelector(`[data-${name}]`).textContent);
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


def test_the_list_is_not_drawn_anew_under_the_focus(place: Page) -> None:
    place.evaluate(LIST)
    place.clock.run_for(60_000)
    place.wait_for_function("answers.length === 1")
    place.locator("[data-key=b] a").focus()

    place.evaluate("answers[0](list('c', 'a', 'b'))")
    place.clock.run_for(5_000)
    assert place.evaluate("document.activeElement.textContent") == "b"

    place.evaluate("document.activeElement.blur()")
    place.clock.run_for(5_000)
    place.wait_for_function("answers.length === 2")
    place.evaluate("answers[1](list('c', 'a', 'b'))")
    expect(place.locator("[data-key]")).to_have_count(3)


def test_a_hidden_page_that_reconnects_is_still_away(place: Page) -> None:
    place.evaluate(PRESENCE)
    place.evaluate("hide(true)")
    place.clock.run_for(6_000)
    assert place.evaluate("told") == ["away"]

    place.evaluate(RESTORED)
    assert place.evaluate("told") == ["away", "away"]

    place.evaluate("hide(false)")
    place.evaluate(RESTORED)
    assert place.evaluate("told") == ["away", "away", "looking"]


def test_a_browser_that_lets_no_page_notify_still_counts(place: Page) -> None:
    assert place.evaluate(NOTIFIED) == ["2", "not available"]
