"""The approvals page with two people at once: questions come live, one wins politely, edits, answers, keys, looks."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import in_every_look, team_server, work
from tests.dashboard.pages.test_approvals_page import ASKED, PARAMETERS, SCHEMA
from tests.support.live import Server

TEAM = f"""
t.team()
from conversations.models import ToolSchema
body = {json.dumps(json.dumps({"name": "city.file", "params_json_schema": PARAMETERS}))}
ToolSchema.objects.create(hash={SCHEMA!r}, name="city.file", body=body)
"""


LATE = """
from conversations.runs.approvals import expiry
from conversations.models import Approval
Approval.objects.filter(id="late").update(deadline=1)
expiry.expire_due()
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a team whose worker is played by commands."""
    with team_server(TEAM) as started:
        yield started


@pytest.fixture(scope="module")
def second() -> tuple[str, str]:
    """Who approves."""
    return "april", "approver"


@pytest.fixture(scope="module")
def people(desk: BrowserContext, second_desk: BrowserContext) -> tuple[BrowserContext, BrowserContext]:
    """The owner's browser, and april's."""
    return desk, second_desk


def asks(server: Server, *keys: str) -> None:
    work(server, "\n".join(f"t.ask(o, {key!r}, client_id='1', approval_id={key!r}, **{ASKED!r})" for key in keys))


def approve(server: Server, key: str) -> None:
    work(
        server, f"from conversations.runs.approvals import decide as approvals; approvals.decide(o, {key!r}, 'approve')"
    )


def question(page: Page, key: str):
    return page.locator(f'[data-key="{key}"]')


def test_two_people_and_their_questions(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    owner, april = (context.new_page() for context in people)
    for page in (owner, april):
        page.goto("/approvals/")
        expect(page.get_by_text("Nothing is waiting for approval")).to_be_visible()
    owner.wait_for_selector("live-state[data-state=live]")
    april.wait_for_selector("live-state[data-state=live]")

    asks(served, "one", "two", "three", "four")
    for page in (owner, april):
        expect(question(page, "four")).to_be_visible()
        expect(page.locator("[data-waiting] > span:last-child")).to_have_text("4")

    # who is second is told who was first; the verdict is there for both
    april.get_by_role("link", name="Approvals", exact=False).first.focus()
    question(april, "one").get_by_role("button", name="Reject").click()
    expect(question(april, "one").locator(".verdict")).to_contain_text("rejected")
    expect(question(owner, "one").locator(".verdict")).to_contain_text("rejected")
    expect(question(owner, "one").get_by_role("button", name="Approve")).to_have_count(0)

    # several at once, each its own decision
    question(april, "two").locator("[data-pick]").check()
    question(april, "three").locator("[data-pick]").check()
    april.get_by_role("button", name="Approve all selected").click()
    for key in ("two", "three"):
        expect(question(owner, key).locator(".verdict")).to_contain_text("approved")
    expect(owner.locator("[data-waiting] > span:last-child")).to_have_text("1")

    # a stale page loses politely, with what was typed still there
    stale = people[0].new_page()
    stale.route_web_socket("**/ws/", lambda wire: wire.close())
    stale.goto("/approvals/four/")
    stale.get_by_label("Output for the agent").fill("By hand.")
    april.keyboard.press("Escape")
    april.locator("h1").click()
    april.keyboard.press("j")
    question(april, "four").get_by_role("link", name="Edit or respond").click()
    april.get_by_role("textbox", name="street").fill("Elm")
    april.get_by_role("textbox", name="house").fill("7")
    april.get_by_role("button", name="Approve with edits").click()
    expect(april.get_by_text("approved with edits")).to_be_visible()
    april.locator("details.tool > summary").click()
    expect(april.get_by_text("Runs with")).to_be_visible()
    stale.get_by_role("button", name="Respond").click()
    expect(stale.get_by_role("alert").get_by_text("april already decided: edit")).to_be_visible()
    expect(owner.locator("[data-waiting]")).to_be_hidden()
    for page in (owner, april, stale):
        page.close()


def test_an_answer_by_keyboard_alone(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "keys")
    page = people[1].new_page()
    page.goto("/approvals/")
    expect(question(page, "keys")).to_be_visible()

    until_focused = question(page, "keys").locator("[data-pick]")
    until_focused.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("e")
    page.wait_for_url("**/approvals/keys/")
    page.get_by_label("Output for the agent").focus()
    page.keyboard.type("Filed by hand.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_text("responded without running")).to_be_visible()
    page.close()


def test_each_of_several_has_its_outcome_and_an_escalation_is_seen_at_once(
    served: Server, people: tuple[BrowserContext, BrowserContext]
) -> None:
    asks(served, "first", "second")
    work(served, f"t.ask(o, 'late', approval_id='late', on_expiry='notify', notify='admin', **{ASKED!r})")
    stale, owner = people[1].new_page(), people[0].new_page()
    stale.route_web_socket("**/ws/", lambda wire: wire.close())
    stale.goto("/approvals/")
    owner.goto("/approvals/")
    owner.wait_for_selector("live-state[data-state=live]")
    for key in ("first", "second"):
        question(stale, key).locator("[data-pick]").check()
    approve(served, "first")

    stale.get_by_role("button", name="Reject all selected").click()

    outcomes = stale.get_by_role("list", name="Results").get_by_role("listitem")
    expect(outcomes).to_have_count(2)
    expect(outcomes.nth(0)).to_have_text("1 rejected")
    expect(outcomes.nth(1)).to_contain_text("already decided: approve")
    expect(question(stale, "first").locator(".verbs [data-said]")).to_contain_text("already decided: approve")
    expect(question(owner, "second").locator(".verdict")).to_contain_text("rejected")

    asks(served, "newer")
    expect(question(owner, "newer")).to_be_visible()
    expect(owner.locator("aside[data-escalated]")).to_be_hidden()
    work(served, LATE)
    expect(owner.locator("aside[data-escalated]")).to_contain_text("approval requests escalated to you: 1")
    expect(owner.locator("[data-questions] > :first-child")).to_have_attribute("data-key", "late")
    expect(question(owner, "late")).to_contain_text("escalated to admin")
    for page in (stale, owner):
        page.close()


def test_the_pages_are_accessible_in_every_look(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "look")  # before a rule is made, which would answer it
    page = people[0].new_page()
    for address in ("/approvals/", "/approvals/look/", "/approvals/?view=all"):
        page.goto(address)
        expect(question(page, "look")).to_be_visible()
        assert in_every_look(page, address) == {}
    page.close()
    approve(served, "look")


def test_approving_always_from_the_keyboard(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "mine", "like")
    page = people[1].new_page()
    page.goto("/approvals/")
    expect(question(page, "mine")).to_be_visible()

    question(page, "mine").locator("[data-pick]").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("w")
    page.wait_for_url("**/approvals/mine/#always")
    page.get_by_label("Maximum uses").fill("9")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_text("and created an auto-approval rule")).to_be_visible()
    page.get_by_role("link", name="and created an auto-approval rule").click()
    expect(page.get_by_role("article")).to_contain_text("of 9")
    page.goto("/approvals/like/")
    expect(page.locator(".verdict")).to_contain_text("by an auto-approval rule by april")
    page.goto("/approvals/rules/")
    assert in_every_look(page, "/approvals/rules/") == {}
    page.close()
