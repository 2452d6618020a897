"""Edits of arguments in both editors of an approval request, and what the page offers meanwhile."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser import team_server, work
from tests.browser.test_approvals import TEAM
from tests.dashboard.pages.test_approvals_page import ASKED
from tests.support.live import Server


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a team whose worker is played by commands, and the schema of its tool."""
    with team_server(TEAM) as started:
        yield started


def shown(server: Server, page: Page, key: str, **args: object) -> None:
    """Have the page show a request with these arguments."""
    request = ASKED | {"args": ASKED["args"] | args}
    work(server, f"t.ask(o, {key!r}, client_id='1', approval_id={key!r}, **{request!r})")
    page.goto(f"/approvals/{key}/")
    expect(page.get_by_text("5 fields, as sent")).to_be_visible()


def test_a_text_with_any_line_ends_is_approved_as_sent(served: Server, window: Page) -> None:
    shown(served, window, "lines", street="\n\nMill\r\nRoad\rEnd\0")
    expect(window.get_by_role("textbox", name="street")).to_have_value("\n\nMill\nRoad\nEnd\ufffd")

    window.get_by_role("button", name="Approve", exact=False).first.click()

    expect(window.get_by_role("img", name="approved by owner", exact=True).first).to_be_visible()


def test_edited_json_leaves_only_its_own_button(served: Server, window: Page) -> None:
    shown(served, window, "json")
    plain, always = window.locator("decision-form button[value=approve]"), window.get_by_text("Always allow…")
    window.get_by_text("Edit as JSON…").click()
    area = window.get_by_role("textbox", name="Arguments as JSON")
    as_sent = area.input_value()

    area.fill(as_sent.replace("Mill", "Elm"))

    expect(plain).to_be_hidden()
    expect(always).to_be_hidden()
    expect(window.locator("[data-edit-count]")).to_have_text("JSON edited; the agent is told.")
    window.get_by_role("button", name="Undo edits").click()
    expect(area).to_have_value(as_sent)
    expect(plain).to_be_visible()
    expect(always).to_be_visible()


def test_edited_fields_leave_no_button_that_drops_them(served: Server, window: Page) -> None:
    shown(served, window, "fields")
    window.get_by_text("Edit as JSON…").click()
    with_json = window.get_by_role("button", name="Approve with this JSON")
    window.get_by_role("textbox", name="street").fill("Elm")

    expect(window.get_by_text("Always allow…")).to_be_hidden()
    with_json.click()

    error = window.locator("decision-form").get_by_role("alert")
    expect(error).to_have_text("You edited the arguments: choose Approve with edits, or undo the edits.")
    expect(window.get_by_role("textbox", name="street")).to_have_value("Elm")
    window.get_by_role("button", name="Approve with edits").click()
    expect(window.get_by_role("img", name="approved with edits by owner", exact=True).first).to_be_visible()


def test_an_approval_of_several_requests_drops_no_edit(served: Server, window: Page) -> None:
    shown(served, window, "several")
    window.locator("[data-key=several] [data-pick]").check()
    street, bar = window.get_by_role("textbox", name="street"), window.locator("[data-bar]")
    street.fill("Elm")

    bar.locator("button[value=approve]").click()

    expect(bar.locator("[data-said]")).to_contain_text("You edited the arguments of a selected request")
    expect(street).to_have_value("Elm")
    window.get_by_role("button", name="Undo edits").click()
    bar.locator("button[value=approve]").click()
    expect(window.locator("[data-outcomes]")).to_contain_text("1 approved")
