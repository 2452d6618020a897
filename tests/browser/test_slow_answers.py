"""Answers that come late: who has gone elsewhere in the page meanwhile stays there, and a newer answer stays drawn."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import open_empty_page

HELD = """() => {
  globalThis.waiting = []; // [address, answer with this body]
  globalThis.fetch = (address) => new Promise((answered) => {
    waiting.push([String(address), (body, status) => answered(new Response(body, { status }))]);
  });
}"""
REQUESTS = """async () => {
  const block = (key) => `<div class="approval" tabindex="-1" id="${key}">
    <decision-form data-key="${key}" data-address="/approvals/${key}/"><p class="terms"></p>
    <form action="/approvals/${key}/"><button name="decide" value="approve">Approve</button><i data-said></i></form>
    </decision-form></div>`;
  document.body.innerHTML = block("first") + block("second") + `<textarea id="words"></textarea>`;
  await import("/static/js/decision-form.js");
}"""
DECIDED = '{"done": true, "words": "Approved.", "html": "<div class=approval tabindex=-1 id=first>approved</div>"}'
COMPOSER = """async () => {
  document.body.innerHTML = `<message-composer data-key="c"><form action="/api/v1/conversations/c/messages">
    <textarea name="content"></textarea><input name="to"><input name="client_id" type="hidden" value="1">
    <button class="button">Send</button></form><p data-said></p>
    <p data-asked hidden><a></a><button type="button">Send anyway</button></p></message-composer>
    <textarea id="words"></textarea>`;
  await import("/static/js/message-composer.js");
}"""
SENT, ANSWERED = (
    '{"seq": 7}',
    '{"error": {"code": "answered_meanwhile", "message": "…", "by": "user:otto", "at": "2026-01-01T10:00Z", "seq": 6}}',
)


@pytest.fixture
def place(chromium: Browser) -> Iterator[Page]:
    """An empty page that has the scripts, and whose requests wait for the test to answer them."""
    context = chromium.new_context()
    page = context.new_page()
    open_empty_page(page)
    page.evaluate(HELD)
    yield page
    context.close()


def answer(page: Page, body: str, number: int = 0, status: int = 200) -> None:
    """Answer a request that waits."""
    page.wait_for_function("(number) => waiting.length > number", arg=number)
    page.evaluate("([number, body, status]) => waiting[number][1](body, status)", [number, body, status])


@pytest.mark.parametrize(("goes_to", "ends_at"), [("#words", "words"), ("#second button", ""), (None, "second")])
def test_a_decision_moves_the_focus_of_who_still_is_there(place: Page, goes_to: str | None, ends_at: str) -> None:
    place.evaluate(REQUESTS)
    place.locator("#first button").click()
    if goes_to:
        place.locator(goes_to).focus()

    answer(place, DECIDED)

    expect(place.locator(".report span")).to_have_text("Approved.")
    assert place.evaluate("document.activeElement.id") == ends_at


@pytest.mark.parametrize(("body", "status", "says"), [(SENT, 201, "Sent as event 7."), (ANSWERED, 409, "replied at")])
def test_what_became_of_a_message_leaves_who_writes_elsewhere(place: Page, body: str, status: int, says: str) -> None:
    place.evaluate(COMPOSER)
    place.locator("[name=content]").fill("Close the road")
    place.locator("[name=content]").press("Control+Enter")
    place.locator("#words").focus()

    answer(place, body, status=status)

    expect(place.locator("message-composer > [data-said]")).to_contain_text(says)
    assert place.evaluate("document.activeElement.id") == "words"
