"""What is pressed twice, or sent again for want of an answer, is done once."""

import json

import pytest
from playwright.sync_api import Page, expect

HELD = """() => {
  globalThis.waiting = []; // [body, answer with this body, fail]
  globalThis.fetch = (address, { body }) => new Promise((answered, failed) => {
    waiting.push([body, (text) => answered(new Response(text)), () => failed(new TypeError("no network"))]);
  });
}"""
NOTE = """async () => {
  document.body.innerHTML = `<event-annotation data-seq="5"><form action="/annotations">
    <button name="thumb" value="up" data-thumb="up">Up</button>
    <textarea name="text"></textarea><button data-add>Add note</button><i data-said></i></form></event-annotation>`;
  await import("/static/js/event-annotation.js");
}"""
REQUESTS = """async () => {
  document.body.innerHTML = `<div id="root"><form data-bar><input name="message"><b data-picked-count></b>
    <button value="approve">Approve</button><i data-said></i></form><ul data-outcomes hidden></ul>
    <p data-key="a"><input type="checkbox" data-pick checked></p></div>`;
  const { BulkDecisions } = await import("/static/js/bulk-decisions.js");
  const root = document.querySelector("#root");
  const rows = { get picked() { return [...root.querySelectorAll(":checked")].map((box) => box.parentElement); } };
  new BulkDecisions(root, rows, () => {}, new AbortController().signal);
}"""
CONVERSATIONS = """async () => {
  document.body.innerHTML = `<div data-list><p data-key="a"><label class="pick"><input type="checkbox"
    name="conversation" checked></label></p></div><bulk-actions><form id="bulk" action="/control"><b data-count></b>
    <button name="action" value="pause">Pause</button><button type="button" data-clear></button></form>
    <i data-said></i></bulk-actions>`;
  await import("/static/js/bulk-actions.js");
}"""


@pytest.fixture
def place(empty_page: Page) -> Page:
    """An empty page, not in a secure context, whose requests wait for the test to answer them."""
    empty_page.evaluate(HELD)
    return empty_page


def sent(page: Page, count: int) -> list[dict[str, object]]:
    """Wait for so many requests; return the bodies of all."""
    page.wait_for_function("(count) => waiting.length >= count", arg=count)
    return [json.loads(body) for body in page.evaluate("waiting.map(([body]) => body)")]


def test_a_note_and_a_thumb_are_sent_once(place: Page) -> None:
    place.evaluate(NOTE)
    place.locator("textarea").fill("Wrong sum")

    place.locator("[data-add]").dblclick()

    assert [body["text"] for body in sent(place, 1)] == ["Wrong sum"]
    place.evaluate("waiting[0][1]('{}')")
    expect(place.locator("textarea")).to_have_value("")
    place.locator("[data-thumb]").dblclick()
    assert [body.get("thumb") for body in sent(place, 2)] == [None, "up"]


def test_a_note_that_is_sent_again_has_the_same_id_until_its_words_change(place: Page) -> None:
    place.evaluate(NOTE)
    place.locator("textarea").fill("Wrong sum")
    for number in range(2):
        place.locator("[data-add]").click()
        sent(place, number + 1)
        place.evaluate("(number) => waiting[number][2]()", number)
        expect(place.locator("[data-said]")).to_contain_text("Not stored")

    place.locator("textarea").fill("Wrong total")
    place.locator("[data-add]").click()

    first, second, third = (body["client_id"] for body in sent(place, 3))
    assert first == second != third


PICKED = """async () => {
  document.body.dataset.may = "annotate";
  document.body.innerHTML = `<div class="transcript"><p data-seq="5">5</p><p data-seq="6">6</p></div>
    <div id="facts"></div><news-announcer></news-announcer>`;
  globalThis.announced = [];
  document.addEventListener("said", ({ detail }) => announced.push(detail.words));
  const rows = [...document.querySelectorAll("[data-seq]")];
  globalThis.pick = (seq) => {
    for (const row of rows) row.setAttribute("aria-current", row.dataset.seq === seq);
    const row = rows.find(({ dataset }) => dataset.seq === seq);
    row.dispatchEvent(new CustomEvent("event:picked", { bubbles: true, detail: { row } }));
  };
  globalThis.load = (seq) => {
    document.querySelector("#facts").innerHTML = `<event-annotation data-seq="${seq}"><form action="/annotations">
      <button name="thumb" value="up" data-thumb="up"></button>
      <button name="thumb" value="down" data-thumb="down"></button>
      <textarea name="text"></textarea><i data-said></i></form></event-annotation>`;
  };
  await import("/static/js/event-annotation.js");
}"""


@pytest.mark.parametrize("is_left", [False, True], ids=["stays", "leaves"])
def test_a_thumb_waits_for_its_form_only_while_its_event_stays_picked(place: Page, is_left: bool) -> None:
    place.evaluate(PICKED)
    place.evaluate("pick('5')")
    place.keyboard.press("u")
    if is_left:
        place.evaluate("pick('6'), pick('5')")

    place.evaluate("load('5')")
    place.keyboard.press("d")

    thumbs = ["down"] if is_left else ["up", "down"]
    assert [body["thumb"] for body in sent(place, len(thumbs))] == thumbs
    notices = ["Thumb not stored: event 5 was left before it had loaded."]
    assert place.evaluate("announced") == notices * is_left


@pytest.mark.parametrize("page", [REQUESTS, CONVERSATIONS], ids=["decisions", "verbs"])
def test_what_is_done_to_several_is_sent_once(place: Page, page: str) -> None:
    place.evaluate(page)

    place.locator("form button").first.dblclick()

    assert len(sent(place, 1)) == 1
