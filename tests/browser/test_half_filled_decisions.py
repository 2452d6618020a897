"""A decision that is half filled in: what was entered outlives a sign-in, and the page never contradicts itself."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import team_server, work
from tests.browser.test_approvals import TEAM
from tests.dashboard.pages.test_approvals_page import ASKED
from tests.support.live import Server

SIGN_OUT = """
from conversations.access.accounts.sign_in import sign_out_everywhere
sign_out_everywhere(o, "maria")
"""
LINK = "from tests.support.visits import link_for; print(link_for('maria'))"
STOP = """
from conversations.runs import stop_and_rerun
stop_and_rerun.cancel_run(o, Approval.objects.get(id="stopped").run)
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a team whose worker is played by commands, and the schema of its tool."""
    with team_server(TEAM) as started:
        yield started


def half_filled(server: Server, page: Page, key: str) -> None:
    """Have the page show a request, of whose arguments one is edited."""
    work(server, f"t.ask(o, {key!r}, client_id='1', approval_id={key!r}, **{ASKED!r})")
    page.goto(f"/conversations/{key}/")
    expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    page.get_by_role("textbox", name="street").fill("Elm")
    expect(page.get_by_role("button", name="Approve with edits")).to_be_visible()


def test_it_is_taken_after_signing_in_in_another_tab(
    served: Server, second_desk: BrowserContext, second_window: Page
) -> None:
    page = second_window
    half_filled(served, page, "again")
    page.get_by_label("Reason for rejecting").fill("The wrong street")
    work(served, SIGN_OUT)
    expect(page.locator("live-state")).to_have_attribute("data-state", "signed-out")

    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("Not done. You are signed out. Sign in in another tab, then try again.")).to_be_visible()
    other_tab = second_desk.new_page()
    other_tab.goto(work(served, LINK).strip().splitlines()[-1])
    expect(other_tab.locator(".topbar")).to_be_visible()
    page.get_by_role("button", name="Reject").click()

    expect(page.locator(".verdict")).to_have_text(re.compile("rejected ?by maria.*The wrong street"))


def test_of_a_stopped_run_nobody_is_said_to_have_decided(served: Server, window: Page) -> None:
    half_filled(served, window, "stopped")

    work(served, STOP)

    notice = window.locator(".report").get_by_role("status")
    expect(notice).to_have_text(re.compile(r"^Not decided: .*stopped.*\. Your edits were not used\.$"))


def test_an_error_goes_as_soon_as_its_field_is_changed(served: Server, window: Page) -> None:
    half_filled(served, window, "corrected")
    house, problem = window.get_by_role("textbox", name="house"), window.get_by_text("Must be a number", exact=True)
    house.fill("x")
    window.get_by_role("button", name="Approve with edits").click()
    expect(problem).to_be_visible()
    error = window.locator("decision-form").get_by_role("alert")
    expect(error).to_be_visible()

    window.get_by_role("textbox", name="street").fill("Elm Road")
    expect(problem).to_be_visible()
    house.fill("7")

    expect(problem).to_be_hidden()
    expect(error).to_be_hidden()
    expect(house).not_to_have_attribute("aria-invalid", "true")
    expect(house).to_have_accessible_description("Was empty")
