"""What needs a person: the first group of the list, the inbox in its order, the number in the tab."""

import re

from playwright.sync_api import Page, expect

from tests.browser import in_every_look, work
from tests.support.live import Server

ROWS = ".fleet > .conversation"


def ask(server: Server, *keys: str) -> None:
    work(server, "\n".join(f"t.ask(o, {key!r}, client_id='1', approval_id={key!r})" for key in keys))


def decide(server: Server, key: str) -> None:
    work(server, f"from conversations.runs.approvals import decide; decide.decide(o, {key!r}, 'reject')")


def group(page: Page, key: str) -> str:
    """Return the heading under which a conversation stands, as text."""
    row = page.locator(f'[data-key="{key}"]')
    return str(
        row.evaluate(
            "(row) => { let at = row; while (!at.matches('[data-group]')) at = at.previousElementSibling;"
            " return at.hidden ? 'hidden' : at.dataset.group }"
        )
    )


def open_list(page: Page, address: str = "/") -> None:
    page.goto(address)
    page.mouse.move(1, 1)
    page.wait_for_selector("live-state[data-state=live]")


def test_a_question_moves_its_conversation_to_the_top_and_its_decision_back(served: Server, window: Page) -> None:
    work(served, "for n in range(3): t.say(o, f'quiet-{n}', client_id='1')")
    open_list(window)
    expect(window.locator(ROWS)).to_have_count(3)
    expect(window).not_to_have_title(re.compile(r"\("))
    icon = window.locator("link[rel=icon]")
    quiet = icon.get_attribute("href")

    ask(served, "older", "newer")

    expect(window.locator(ROWS).first).to_have_attribute("data-key", "older")
    expect(window.locator(ROWS).nth(1)).to_have_attribute("data-key", "newer")
    assert group(window, "older") == group(window, "newer") == "attention"
    expect(window.locator('[data-key="older"] .tag').first).to_contain_text("approval")
    expect(window).to_have_title(re.compile(r"^\(2\) "))
    assert icon.get_attribute("href") != quiet
    assert in_every_look(window, "the list") == {}

    decide(served, "older")
    expect(window.locator(ROWS).first).to_have_attribute("data-key", "newer")
    assert group(window, "older") == "live"
    decide(served, "newer")
    expect(window.locator('[data-group="attention"]')).to_be_hidden()
    expect(window).not_to_have_title(re.compile(r"\("))
    assert icon.get_attribute("href") == quiet


def test_the_inbox_begins_with_the_oldest_and_a_new_question_comes_last(served: Server, window: Page) -> None:
    ask(served, "first", "second")
    open_list(window, "/approvals/")
    keys = "(rows) => rows.map((row) => row.dataset.key)"
    assert window.locator("[data-questions] > [data-key]").evaluate_all(keys) == ["first", "second"]

    ask(served, "third")

    expect(window.locator("[data-questions] > [data-key]")).to_have_count(3)
    assert window.locator("[data-questions] > [data-key]").evaluate_all(keys) == ["first", "second", "third"]
    for key in ("first", "second", "third"):
        decide(served, key)


def test_a_long_title_keeps_most_of_its_row(served: Server, window: Page) -> None:
    ask(served, "long")
    work(served, "Conversation.objects.filter(key='long').update(title='A very long name of a conversation ' * 5)")
    open_list(window)

    share = window.locator('[data-key="long"] h3').evaluate(
        "(title) => title.querySelector('a').getBoundingClientRect().width / title.getBoundingClientRect().width"
    )

    assert share >= 0.6
    decide(served, "long")
