"""A draft that several windows of a browser show: what one sends goes from the others, what one empties does not."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Page, expect

from tests.browser import EMPTY
from tests.browser.test_slow_answers import COMPOSER, HELD, SENT, answer
from tests.browser.windows import Windows

STORED = "(text) => Object.values(localStorage).some((draft) => draft.includes(text))"


@pytest.fixture
def three(empty_windows: Windows) -> Iterator[list[Page]]:
    """Three windows of a browser, each with an empty page."""
    with ExitStack() as stack:
        pages = [stack.enter_context(empty_windows.lent()) for _ in range(3)]
        for page in pages:
            page.goto(EMPTY)
        yield pages


def text(page: Page, content: str | None = None):
    """The field for the message; `content` is written into it."""
    field = page.locator("[name=content]")
    if content is not None:
        field.fill(content)
    return field


def test_an_emptied_field_leaves_what_another_window_writes(three: list[Page]) -> None:
    first, second, _ = three
    for page in (first, second):
        page.evaluate(COMPOSER)
    text(first, "x")
    text(second, "A long answer")

    text(first, "")

    second.wait_for_function(STORED, arg="A long answer")  # again: a reload finds it
    expect(text(second)).to_have_value("A long answer")


def test_a_sent_draft_goes_from_the_windows_that_show_it_and_from_no_other(three: list[Page]) -> None:
    first, second, third = three
    first.evaluate(COMPOSER)
    second.evaluate(COMPOSER)
    text(second, "Another answer")
    text(first, "Close the road")
    third.evaluate(COMPOSER)
    expect(text(third)).to_have_value("Close the road")

    first.evaluate(HELD)
    text(first).press("Control+Enter")
    answer(first, SENT, status=201)

    expect(text(third)).to_have_value("")
    expect(third.locator("message-composer > [data-said]")).to_have_text("Sent from another window.")
    second.wait_for_function(STORED, arg="Another answer")
    expect(text(second)).to_have_value("Another answer")
