"""Forms that no script sends, while the server is away: the page stays, says so, and keeps what was typed."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import EMPTY

NOT_SENT = "Not sent: the server did not respond. What you entered is still here; try again."
FORM = """async () => {
  document.body.innerHTML = `<main><form method="post" action="/sent"><input name="text" value="typed">
    <button name="do" value="first">First</button></form></main>`;
  globalThis.fetch = () => new Promise((answered) => {
    globalThis.answer = (status) => answered(new Response("", { status }));
  });
  await import("/static/js/plain-forms.js");
  globalThis.sent = [];
  addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    sent.push(new URLSearchParams(new FormData(event.target, event.submitter)).toString());
    event.preventDefault();
  });
}"""


@pytest.mark.slow
def test_what_was_typed_stays_until_the_server_is_back(page: Page) -> None:
    page.goto("/policies/budgets/")
    page.locator("summary", has_text="Set budget").click()
    page.get_by_label("Limit").fill("70000")
    page.context.set_offline(True)
    page.get_by_role("button", name="Set budget").click()

    expect(page.get_by_role("alert").filter(has_text=NOT_SENT)).to_be_visible()
    expect(page.get_by_label("Limit")).to_have_value("70000")

    page.context.set_offline(False)
    page.get_by_role("button", name="Set budget").click()

    expect(page.get_by_text("Budget saved.")).to_be_visible()
    expect(page.get_by_text(NOT_SENT)).to_have_count(0)
    page.reload()
    expect(page.get_by_text("70,000 tokens").first).to_be_visible()
    expect(page.get_by_text("Budget saved.")).to_have_count(0)


@pytest.mark.parametrize(
    ("query", "rest"),
    [("?done=saved", ""), ("?q=a+b&done=roles&name=maria", "?q=a+b&name=maria"), ("?q=a+b", "?q=a+b"), ("", "")],
)
def test_what_a_form_has_done_is_not_said_again_after_a_reload(empty_page: Page, query: str, rest: str) -> None:
    empty_page.goto(f"{EMPTY}{query}#maria")

    empty_page.evaluate("import('/static/js/plain-forms.js')")

    assert empty_page.url == f"{EMPTY}{rest}#maria"


def test_a_proxy_whose_server_is_away_counts_too_and_the_pressed_button_is_sent_once(empty_page: Page) -> None:
    empty_page.evaluate(FORM)
    button, alert = empty_page.get_by_role("button"), empty_page.get_by_role("alert")

    button.click()
    empty_page.evaluate("answer(503)")
    expect(alert).to_have_text(NOT_SENT)
    button.dblclick()
    empty_page.evaluate("answer(200)")

    expect(alert).to_have_count(0)
    empty_page.wait_for_function("sent.length > 0")
    assert empty_page.evaluate("sent") == ["text=typed&do=first"]


@pytest.mark.parametrize(
    ("change", "sent"),
    [
        ("button.remove()", "text=typed&do=first"),
        ("button.value = 'second'", "text=typed&do=first"),
        ("button.disabled = true", "text=typed&do=first"),
        ("button.form.remove()", "text=typed&do=first"),
        ("button.form.elements.text.value = 'more'", "text=more&do=first"),
    ],
)
def test_the_pressed_button_is_sent_whatever_became_of_it_meanwhile(empty_page: Page, change: str, sent: str) -> None:
    empty_page.evaluate(FORM)
    empty_page.get_by_role("button").click()

    empty_page.locator("button").evaluate(f"(button) => {{ {change} }}")
    empty_page.evaluate("answer(200)")

    empty_page.wait_for_function("sent.length > 0", timeout=10_000)
    assert empty_page.evaluate("sent") == [sent]


def test_a_form_that_left_the_page_says_that_it_was_not_sent(empty_page: Page) -> None:
    empty_page.evaluate(FORM)
    empty_page.get_by_role("button").click()

    empty_page.locator("form").evaluate("(form) => form.remove()")
    empty_page.evaluate("answer(503)")

    expect(empty_page.get_by_role("alert")).to_have_text("Not sent: the server did not respond. Try again.")


def test_a_form_on_its_way_is_not_sent_again_until_the_page_is_shown_anew(empty_page: Page) -> None:
    empty_page.evaluate(FORM)
    button = empty_page.get_by_role("button")
    button.click()
    empty_page.evaluate("answer(200)")
    empty_page.wait_for_function("sent.length === 1")

    button.click()
    empty_page.evaluate("answer(200)")
    empty_page.evaluate("() => new Promise((done) => setTimeout(done))")
    assert empty_page.evaluate("sent.length") == 1

    empty_page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })), answer = null")
    button.click()
    empty_page.wait_for_function("answer !== null")
    empty_page.evaluate("answer(200)")
    empty_page.wait_for_function("sent.length === 2")
