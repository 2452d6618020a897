"""What is said beside a button whose action failed leaves once the page is up to date again, unless it is a refusal."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.socket_line import Line

FETCH = """() => {
  globalThis.reply = 0;
  globalThis.fetch = async () => {
    if (!reply) throw new TypeError("no network");
    const error = { code: "conflict", message: "already decided" };
    return new Response(reply === 502 ? "Bad Gateway" : JSON.stringify({ error }), { status: reply });
  };
}"""
CONTROL = """async () => {
  document.body.innerHTML = `<conversation-control data-address="/control/"><h1>c</h1>
    <div data-standing data-head="4"></div><form data-verbs="first" method="post" action="/control/">
    <button name="action" value="pause"><span>Pause</span></button></form><i data-said></i></conversation-control>`;
  await import("/static/js/conversation-control.js");
}"""
DECISION = """async () => {
  document.body.innerHTML = `<div class="approval"><decision-form data-key="k" data-address="/k"><p class="terms"></p>
    <form action="/k"><button name="decide" value="approve">Approve</button><i data-said></i></form>
    </decision-form></div>`;
  await import("/static/js/decision-form.js");
}"""
INLINE = """async () => {
  document.body.innerHTML = `<inline-actions><form id="again" data-address="/runs/"></form><permission-gate>
    <button form="again" value="r">Run again</button><i data-said></i></permission-gate></inline-actions>`;
  await import("/static/js/inline-actions.js");
}"""
BULK = """async () => {
  document.body.innerHTML = `<div data-list><p data-key="a"><label class="pick"><input type="checkbox"
    name="conversation" checked></label></p></div><bulk-actions><form id="bulk" action="/control"><b data-count></b>
    <button name="action" value="pause">Pause</button><button type="button" data-clear></button></form>
    <i data-said></i></bulk-actions>`;
  await import("/static/js/bulk-actions.js");
}"""
DECISIONS = """async () => {
  document.body.innerHTML = `<div id="root"><form data-bar><input name="message"><b data-picked-count></b>
    <button value="approve">Approve</button><i data-said></i></form><ul data-outcomes hidden></ul>
    <p data-key="a"><input type="checkbox" data-pick checked></p></div>`;
  const { BulkDecisions } = await import("/static/js/bulk-decisions.js");
  const root = document.querySelector("#root");
  const rows = { get picked() { return [...root.querySelectorAll(":checked")].map((box) => box.parentElement); } };
  new BulkDecisions(root, rows, () => {}, new AbortController().signal);
}"""
NOTE = """async () => {
  document.body.innerHTML = `<event-annotation data-seq="5"><form action="/annotations">
    <textarea name="text">Hm</textarea><button data-add>Add note</button><i data-said></i></form></event-annotation>`;
  await import("/static/js/event-annotation.js");
}"""
COMPOSER = """async () => {
  document.body.innerHTML = `<message-composer data-key="c"><form action="/messages"><textarea name="content">Hello
    </textarea><input name="to"><input name="client_id" value="1"><button class="button">Send</button></form>
    <p data-said></p></message-composer>`;
  await import("/static/js/message-composer.js");
}"""
ELEMENTS = {
    "control": CONTROL,
    "decision": DECISION,
    "inline": INLINE,
    "bulk": BULK,
    "decisions": DECISIONS,
    "note": NOTE,
}
SHOWN_MS = 6_000  # SHOWN_MS of static/js/failure-note.js


def begin(line: Line, element: str, status: int = 0) -> Any:
    """Have an element follow a conversation and its action fail; return the line that says so."""
    line.page.clock.install()
    line.page.evaluate(FETCH)
    line.page.evaluate(element)
    line.subscribe(after=4, epoch="e")
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)
    line.page.evaluate("(chosen) => (reply = chosen)", status)
    line.page.locator("button:visible").first.click()
    return line.page.locator("[data-said]")


def reconnect(line: Line) -> None:
    """Lose the connection, and have the page ask for what it missed."""
    requests = len(line.requests)
    line.routes[-1].close(code=1012)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")
    line.page.clock.run_for(1_000)
    line.wait(lambda: len(line.requests) == requests + 1)


@pytest.mark.parametrize("element", ELEMENTS.values(), ids=ELEMENTS)
def test_no_response_is_said_until_the_page_is_up_to_date_again(timed_line: Line, element: str) -> None:
    note = begin(timed_line, element)
    expect(note).to_contain_text("The server did not respond.")

    reconnect(timed_line)
    timed_line.page.clock.run_for(SHOWN_MS)
    expect(note).to_contain_text("The server did not respond.")
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)

    expect(note).to_have_text("")


def test_a_note_can_be_read_however_soon_the_connection_is_back(timed_line: Line) -> None:
    note = begin(timed_line, BULK)
    expect(note).to_have_text("Not done. The server did not respond.")

    reconnect(timed_line)
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)
    timed_line.wait(lambda: len(timed_line.received("caughtUp")) == 2)

    expect(note).to_have_text("Not done. The server did not respond.")
    timed_line.page.clock.run_for(SHOWN_MS)
    expect(note).to_have_text("")


@pytest.mark.parametrize(
    ("status", "rest"), [(409, "Not done. Already decided."), (503, "Not done. Already decided."), (502, "")]
)
def test_only_the_refusal_of_the_server_outlasts_a_lost_connection(timed_line: Line, status: int, rest: str) -> None:
    note = begin(timed_line, BULK, status)
    expect(note).to_contain_text("Not done. ")

    reconnect(timed_line)
    timed_line.page.clock.run_for(SHOWN_MS)
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)
    timed_line.wait(lambda: len(timed_line.received("caughtUp")) == 2)

    expect(note).to_have_text(rest)


def test_what_the_line_says_by_then_stays(timed_line: Line) -> None:
    note = begin(timed_line, BULK)
    expect(note).to_have_text("Not done. The server did not respond.")

    timed_line.page.evaluate("reply = 409")
    timed_line.page.locator("button:visible").first.click()
    expect(note).to_have_text("Not done. Already decided.")
    reconnect(timed_line)
    timed_line.page.clock.run_for(SHOWN_MS)
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)
    timed_line.wait(lambda: len(timed_line.received("caughtUp")) == 2)

    expect(note).to_have_text("Not done. Already decided.")


@pytest.mark.parametrize(("status", "says"), [(0, "Reconnected."), (409, "Not sent. Already decided.")])
def test_a_message_that_was_refused_is_not_said_to_wait_for_a_connection(
    timed_line: Line, status: int, says: str
) -> None:
    note = begin(timed_line, COMPOSER, status)
    expect(note).to_contain_text("Not sent. ")

    reconnect(timed_line)

    expect(note).to_contain_text(says)
