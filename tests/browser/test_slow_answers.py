"""Answers that come late: who has gone elsewhere in the page meanwhile stays there, and a newer answer stays drawn."""

import json

import pytest
from playwright.sync_api import Page, expect

HELD = """() => {
  globalThis.waiting = []; // [address, answer with this body, body of the request]
  globalThis.fetch = (address, options) => new Promise((answered) => {
    waiting.push([String(address), (body, status) => answered(new Response(body, { status })), options.body]);
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
def place(empty_page: Page) -> Page:
    """An empty page that has the scripts, and whose requests wait for the test to answer them."""
    empty_page.evaluate(HELD)
    return empty_page


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


REDRAWN = "document.querySelector('#first').replaceChildren('approved by you')"  # as the socket's row does


def test_a_decision_whose_event_precedes_its_response_was_not_made_elsewhere(place: Page) -> None:
    place.evaluate(REQUESTS)
    place.locator("#first button").click()
    place.evaluate(REDRAWN)
    settled(place)
    expect(place.locator(".report")).to_have_count(0)

    answer(place, DECIDED)

    expect(place.locator(".report span")).to_have_text("Approved.")


def test_a_lost_response_to_a_decision_leaves_the_outcome_to_the_request(place: Page) -> None:
    place.evaluate(REQUESTS)
    place.locator("#first button").click()
    place.evaluate(REDRAWN)

    answer(place, "", status=502)

    expect(place.locator(".report span")).to_have_text(
        "The server responded with 502. The request shows what was decided."
    )


@pytest.mark.parametrize(("body", "status", "says"), [(SENT, 201, "Sent as event 7."), (ANSWERED, 409, "replied at")])
def test_what_became_of_a_message_leaves_who_writes_elsewhere(place: Page, body: str, status: int, says: str) -> None:
    place.evaluate(COMPOSER)
    place.locator("[name=content]").fill("Close the road")
    place.locator("[name=content]").press("Control+Enter")
    place.locator("#words").focus()

    answer(place, body, status=status)

    expect(place.locator("message-composer > [data-said]")).to_contain_text(says)
    assert place.evaluate("document.activeElement.id") == "words"


def test_a_message_on_its_way_is_not_sent_again(place: Page) -> None:
    place.evaluate(COMPOSER)
    place.locator("[name=content]").fill("Close the road")

    for _ in range(2):
        place.locator("[name=content]").press("Control+Enter")

    assert place.evaluate("waiting.length") == 1


PANEL = """async () => {
  document.body.innerHTML = `<div><conversation-panel id="panel" data-address="/panel/"><div data-sections></div>
    <p data-facts-failed hidden><span></span><button></button></p><div data-picked></div></conversation-panel></div>`;
  await import("/static/js/conversation-panel.js");
}"""
PICK = """(seq) => document.dispatchEvent(
  new CustomEvent("event:picked", { detail: { row: { dataset: { seq } }, isSought: false } }))"""
SPEAKER = """async () => {
  document.body.innerHTML = `<form><speaker-picker data-prospects="/prospects"><input name="to">
    <span data-when><select name="when"><option value="after_run"></option></select></span></speaker-picker>
    <p data-prospect hidden><span></span></p></form>`;
  await import("/static/js/speaker-picker.js");
}"""
STANDING = """<h1>c</h1><div data-standing data-head="{}">{}</div><div data-verbs="first"></div>
  <div data-verbs="folded"></div><div data-alarm></div><div data-deliveries data-again="0"></div>"""
CONTROL = """async (standing) => {
  document.body.innerHTML = `<conversation-control data-address="/control/">${standing}</conversation-control>`;
  await import("/static/js/conversation-control.js");
}"""
TOKEN = """(seq) => document.dispatchEvent(
  new CustomEvent("transcript:drawn", { detail: { seq, changesState: false } }))"""
DRAWN = """(seq) => document.dispatchEvent(
  new CustomEvent("transcript:drawn", { detail: { seq, changesState: true } }))"""


def test_the_panel_shows_the_event_that_is_picked_whichever_answer_comes_last(place: Page) -> None:
    place.evaluate(PANEL)
    for number, seq in enumerate(("5", "6")):
        place.evaluate(PICK, seq)
        place.wait_for_function("(count) => waiting.length === count", arg=number + 1)

    answer(place, "facts of 6", 1)
    expect(place.locator("[data-picked]")).to_have_text("facts of 6")
    answer(place, "facts of 5", 0)

    settled(place)
    expect(place.locator("[data-picked]")).to_have_text("facts of 6")


def test_facts_that_come_again_leave_who_writes_a_note_about_them(place: Page) -> None:
    place.evaluate(PANEL)
    place.evaluate(PICK, "5")
    answer(place, '<event-annotation data-seq="5"><textarea id="words"></textarea></event-annotation>')
    place.locator("#words").press_sequentially("Hm.")

    place.evaluate(PICK, "5")
    answer(place, "the same facts", 1)

    settled(place)
    assert place.evaluate("document.activeElement.id") == "words"


def test_what_becomes_of_words_is_told_of_the_fields_as_they_stand(place: Page) -> None:
    place.evaluate(SPEAKER)
    for number, letters in enumerate(("Tri", "age")):
        place.locator("[name=to]").press_sequentially(letters)
        place.wait_for_function("(count) => waiting.length === count", arg=number + 1)

    answer(place, '{"words": "Triage answers", "at_work": false}', 1)
    expect(place.locator("[data-prospect]")).to_have_text("Triage answers")
    answer(place, '{"words": "There is no Tri", "at_work": false}', 0)

    settled(place)
    expect(place.locator("[data-prospect]")).to_have_text("Triage answers")


def test_how_a_conversation_stands_is_what_was_asked_for_last(place: Page) -> None:
    place.evaluate(CONTROL, STANDING.format(4, "running"))
    for number, seq in enumerate((5, 6)):
        place.evaluate(DRAWN, seq)
        place.wait_for_function("(count) => waiting.length === count", arg=number + 1)

    answer(place, STANDING.format(6, "done"), 1)
    expect(place.locator("[data-standing]")).to_have_text("done")
    answer(place, STANDING.format(5, "running"), 0)

    settled(place)
    expect(place.locator("[data-standing]")).to_have_text("done")


def test_an_agent_elsewhere_that_begins_to_write_is_told_of_within_seconds(place: Page) -> None:
    """No event says that it begins: its first token comes while the head says Idle."""
    place.evaluate(CONTROL, STANDING.format(4, "Idle"))
    place.evaluate(DRAWN, 5)
    place.wait_for_function("() => waiting.length === 1")
    answer(place, STANDING.format(5, "Idle"))
    expect(place.locator("[data-standing]")).to_have_attribute("data-head", "5")

    place.evaluate(TOKEN, 6)

    place.wait_for_function("() => waiting.length === 2", timeout=6_000)  # not 10 s after the last request


VERBS = """<h1>c</h1><div data-standing data-head="{}"></div><div data-verbs="folded"></div><div data-alarm></div>
  <form data-verbs="first" method="post" action="/control/">
  <button name="action" value="{}" data-asks="Why?"><span>{}</span></button></form><div data-deliveries></div>"""
REASON = """<i data-said></i><dialog><h2 data-verb></h2><button type="button" data-close></button><form method="dialog">
  <label></label><textarea></textarea><footer><button value="do"></button></footer></form></dialog>"""


def test_the_pressed_action_is_sent_though_another_has_taken_its_place(place: Page) -> None:
    place.evaluate(CONTROL, VERBS.format(8, "take_over", "Take over") + REASON)
    place.get_by_role("button", name="Take over").click()
    dialog = place.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("I know her")

    place.evaluate(DRAWN, 9)
    answer(place, VERBS.format(9, "hand_back", "Hand back"))
    expect(place.locator("[data-verbs] button")).to_have_text("Hand back")
    dialog.get_by_role("button", name="Take over").click()

    place.wait_for_function("waiting.length > 1")
    assert json.loads(place.evaluate("waiting[1][2]")) == {"action": "take_over", "reason": "I know her"}


def settled(page: Page) -> None:
    """Let what was answered be drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
