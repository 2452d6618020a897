"""The approvals page with two people at once: questions come live, one wins politely, edits, answers, keys, looks."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser import covered, in_every_look, team_server, work
from tests.dashboard.pages.test_approvals_page import ASKED, PARAMETERS, SCHEMA
from tests.support.live import Server

TEAM = f"""
t.team()
from conversations.models import ToolSchema
body = {json.dumps(json.dumps({"name": "city.file", "params_json_schema": PARAMETERS}))}
ToolSchema.objects.create(hash={SCHEMA!r}, name="city.file", body=body)
"""


BOTH = f"""
from conversations.runs import claims
t.say(o, "both")
run = t.claim("both")
asked = dict(event="approval.requested", **{ASKED!r})
first, second = (asked | dict(approval_id=n, tool_call=n, tool_call_id=n) for n in ("both-1", "both-2"))
claims.suspend(run, "approval", first, second, **t.SEALED)
"""  # one run that waits for both its calls


LATE = """
from conversations.runs.approvals import overdue_requests
from conversations.models import Approval
Approval.objects.filter(id="late").update(deadline=1)
overdue_requests.handle_due()
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
    work(server, f"from conversations.runs.approvals.decide import decide; decide(o, {key!r}, 'approve')")


def row(page: Page, key: str):
    """The request in the list."""
    return page.locator(f'.ask[data-key="{key}"]')


def card(page: Page, key: str):
    """The request beside the list."""
    return page.locator(f'.question[data-key="{key}"]')


def opened(page: Page, key: str):
    """Open a request from the list; return its card."""
    row(page, key).get_by_role("link").click()
    expect(card(page, key)).to_be_visible()
    return card(page, key)


@pytest.mark.thorough
def test_two_people_and_their_questions(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    owner, april = (context.new_page() for context in people)
    for page in (owner, april):
        page.goto("/approvals/")
        expect(page.get_by_text("Nothing is waiting for approval")).to_be_visible()
    owner.wait_for_selector("live-state[data-state=live]")
    april.wait_for_selector("live-state[data-state=live]")

    asks(served, "one", "two", "three", "four")
    for page in (owner, april):
        expect(row(page, "four")).to_be_visible()
        expect(page.locator("[data-waiting] > span:last-child")).to_have_text("4")

    # a decision is seen by both: the row leaves, with who decided
    opened(owner, "one")
    opened(april, "one").get_by_role("button", name="Reject").click()
    for page in (owner, april):
        expect(page.locator("[data-decided]").locator(row(page, "one"))).to_contain_text("rejected by april")
    expect(card(owner, "one").locator(".verdict")).to_contain_text("rejected")
    expect(card(owner, "one").get_by_role("button", name="Approve")).to_have_count(0)

    # several at once, each its own decision
    row(april, "two").locator("[data-pick]").check()
    row(april, "three").locator("[data-pick]").check()
    april.get_by_role("button", name="Approve all selected").click()
    for key in ("two", "three"):
        expect(row(owner, key)).to_contain_text("approved by april")
    expect(owner.locator("[data-waiting] > span:last-child")).to_have_text("1")

    # a stale page loses politely
    stale = people[0].new_page()
    stale.route_web_socket("**/ws/", lambda wire: wire.close())
    stale.goto("/approvals/four/")
    stale.get_by_text("Respond without running…").click()
    stale.get_by_label("Output for the agent").fill("By hand.")
    four = opened(april, "four")
    four.get_by_role("textbox", name="street").fill("Elm")
    four.get_by_role("textbox", name="house").fill("7")
    four.get_by_role("button", name="Approve with edits").click()
    expect(card(april, "four").get_by_text("approved with edits")).to_be_visible()
    card(april, "four").locator("details.tool > summary").click()
    expect(april.get_by_text("Runs with")).to_be_visible()
    stale.get_by_role("button", name="Respond").click()
    expect(stale.get_by_role("status").filter(has_text="april already decided: edit")).to_be_visible()
    expect(card(stale, "four").locator(".verdict")).to_contain_text("approved with edits")
    expect(owner.locator("[data-waiting]")).to_be_hidden()
    for page in (owner, april, stale):
        page.close()


def test_an_answer_by_keyboard_alone(served: Server, second_window: Page) -> None:
    asks(served, "keys", "next")
    page = second_window
    page.goto("/approvals/")
    expect(row(page, "next")).to_be_visible()
    expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    expect(page.locator("[data-approvals-waiting]")).to_have_text("2 waiting, oldest now", use_inner_text=True)

    page.keyboard.press("j")
    expect(row(page, "next").get_by_role("link")).to_be_focused()
    expect(card(page, "next")).to_be_visible()  # the row that has the focus and the card are one
    page.keyboard.press("a")
    expect(card(page, "next").get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("k")
    expect(row(page, "keys").get_by_role("link")).to_be_focused()
    expect(card(page, "keys")).to_be_visible()
    page.keyboard.press("Enter")
    expect(card(page, "keys").locator(".approval")).to_be_focused()
    page.keyboard.press("a")
    expect(card(page, "keys").get_by_role("button", name="Approve")).to_be_focused()
    expect(card(page, "keys")).to_have_attribute("data-status", "pending")  # a letter decides nothing
    page.keyboard.press("i")
    expect(page.get_by_label("Output for the agent")).to_be_focused()
    page.keyboard.type("Filed by hand.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(row(page, "keys")).to_contain_text("responded without running by april")
    expect(page.locator("[data-approvals-waiting]")).to_contain_text("1 waiting")
    expect(card(page, "next").locator(".approval")).to_be_focused()
    stop = "stop_and_rerun.cancel_run(o, Approval.objects.get(id='next').run)"
    work(served, f"from conversations.runs import stop_and_rerun; {stop}")
    expect(page.locator("[data-over]").locator(row(page, "next"))).to_contain_text("run stopped")
    expect(page.locator("[data-approvals-waiting]")).to_be_hidden()
    page.go_back()


@pytest.mark.thorough
def test_what_is_wrong_stands_beside_its_field(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "wrong")
    page = people[1].new_page()
    page.goto("/approvals/wrong/")
    form = card(page, "wrong").locator("form")
    house, street = (form.get_by_role("textbox", name=name) for name in ("house", "street"))
    expect(form.get_by_role("button", name="Approve with edits")).to_be_hidden()
    expect(form.locator("[data-edits]")).to_have_text("5 fields, as sent", use_inner_text=True)
    place = street.bounding_box()

    street.fill("Elm")
    house.fill("x")
    expect(form.get_by_role("button", name="Approve", exact=True)).to_be_hidden()  # it would drop the edits
    expect(form.get_by_text("2 of 5 fields edited")).to_be_visible()
    expect(form.get_by_text("Was Mill")).to_be_visible()
    assert street.bounding_box() == place
    assert form.get_by_role("button", name="Undo edits").bounding_box()["y"] < place["y"]
    form.get_by_role("button", name="Approve with edits").click()

    expect(house).to_be_focused()
    expect(house).to_have_attribute("aria-invalid", "true")
    expect(house).to_have_accessible_description("Must be a number Was empty")
    expect(street).to_have_value("Elm")
    expect(street).not_to_have_attribute("aria-invalid", "true")
    assert in_every_look(page, "wrong") == {}
    form.get_by_role("button", name="Undo edits").click()
    expect(form.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    expect(house).to_have_value("")
    house.fill("7")
    form.get_by_role("button", name="Approve with edits").click()
    expect(card(page, "wrong").locator(".changed")).to_contain_text("house")
    expect(card(page, "wrong").locator(".verdict")).to_contain_text("by april")
    page.close()


@pytest.mark.thorough
def test_edits_stay_while_another_request_is_looked_at(
    served: Server, people: tuple[BrowserContext, BrowserContext]
) -> None:
    asks(served, "kept-1", "kept-2")
    page = people[0].new_page()
    page.goto("/approvals/")
    note = opened(page, "kept-1").get_by_label("Note for the record")
    note.fill("Asked the fire brigade")
    field = card(page, "kept-1").locator("[data-was]").first
    field.fill("Elm Road")

    opened(page, "kept-2")
    opened(page, "kept-1")

    expect(field).to_have_value("Elm Road")
    expect(note).to_have_value("Asked the fire brigade")
    expect(card(page, "kept-1").get_by_role("button", name="Approve with edits")).to_be_visible()

    opened(page, "kept-2")
    approve(served, "kept-1")
    expect(page.locator("[data-decided-rows] .ask", has=page.locator("[href*=kept-1]"))).to_be_visible()
    opened(page, "kept-1")

    expect(card(page, "kept-1").get_by_role("textbox")).to_have_count(0)
    page.close()


def test_who_was_about_to_decide_is_told_what_came_first(
    served: Server, people: tuple[BrowserContext, BrowserContext]
) -> None:
    asks(served, "late-edit")
    page = people[1].new_page()
    for address in ("/conversations/late-edit/", "/approvals/late-edit/"):
        page.goto(address)
        expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    other = people[1].new_page()
    other.goto("/conversations/late-edit/")
    expect(other.locator("live-state")).to_have_attribute("data-state", "live")
    for page_ in (page, other):
        plain, with_edits = (page_.get_by_role("button", name=n, exact=True) for n in ("Approve", "Approve with edits"))
        expect(plain).to_be_visible()
        expect(with_edits).to_be_hidden()
        page_.get_by_role("textbox", name="street").fill("Elm")
        expect(with_edits).to_be_visible()
        expect(plain).to_be_hidden()  # it would drop the edits

    approve(served, "late-edit")

    for page_ in (page, other):
        notice = page_.get_by_role("status").filter(has_text="Decided elsewhere")
        expect(notice).to_contain_text("by owner")
        expect(notice).to_contain_text("Your edits were not used.")
        expect(page_.locator(".approval")).to_be_focused()
        page_.close()


def test_each_press_decides_once(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "twice")
    page = people[1].new_page()
    page.goto("/conversations/twice/")
    sent: list[str] = []
    page.on("request", lambda request: request.method == "POST" and sent.append(request.url))

    page.get_by_role("button", name="Approve").dblclick()

    expect(page.locator(".verdict")).to_contain_text("by april")
    expect(page.get_by_role("status").filter(has_text="Approved: city.file.")).to_be_visible()
    assert len([address for address in sent if "/approvals/" in address]) == 1
    page.close()


def test_in_a_transcript_the_focus_goes_to_the_request_that_still_waits(served: Server, second_window: Page) -> None:
    work(served, BOTH)
    page = second_window
    page.goto("/conversations/both/")
    requests = page.locator(".approval")
    expect(requests).to_have_count(2)

    requests.nth(1).get_by_role("button", name="Reject").press("Enter")
    expect(requests.nth(0)).to_be_focused()
    requests.nth(0).get_by_role("button", name="Reject").press("Enter")

    expect(requests.nth(0)).to_contain_text("by april")
    expect(requests.nth(0)).to_be_focused()  # none is left


def test_on_a_phone_the_next_request_begins_with_its_heading(served: Server, second_window: Page) -> None:
    asks(served, "small", "smaller")
    page = second_window
    page.set_viewport_size({"width": 390, "height": 600})
    page.goto("/approvals/")
    row(page, "small").get_by_role("link").click()

    card(page, "small").get_by_role("button", name="Approve").click()

    expect(card(page, "smaller").locator(".approval")).to_be_focused()
    expect(card(page, "smaller").locator("h2")).to_be_in_viewport()
    assert covered(page, "header", ".question h2") == []
    expect(page.locator(".report")).to_be_hidden(timeout=20_000)  # so that it covers nothing for long
    card(page, "smaller").get_by_role("button", name="Approve").click()
    expect(card(page, "smaller").locator(".verdict")).to_contain_text("approved")  # none is left


def test_on_a_phone_the_list_leads_to_the_card_and_back(served: Server, second_window: Page) -> None:
    asks(served, "phone")
    page = second_window
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/approvals/")
    expect(row(page, "phone")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_be_hidden()

    row(page, "phone").get_by_role("link").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    expect(row(page, "phone")).to_be_hidden()
    page.get_by_role("link", name="All requests").click()
    expect(row(page, "phone").get_by_role("link")).to_be_focused()
    page.go_back()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(card(page, "phone").locator(".verdict")).to_contain_text("approved")


@pytest.mark.thorough
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
        row(stale, key).locator("[data-pick]").check()
    approve(served, "first")

    stale.get_by_role("button", name="Reject all selected").click()

    outcomes = stale.get_by_role("list", name="Results").get_by_role("listitem")
    expect(outcomes).to_have_count(2)
    expect(outcomes.nth(0)).to_have_text("1 rejected")
    expect(outcomes.nth(1)).to_contain_text("already decided: approve")
    expect(row(stale, "first").locator("[data-said]")).to_contain_text("already decided: approve")
    expect(row(owner, "second")).to_contain_text("rejected by april")

    asks(served, "newer")
    expect(row(owner, "newer")).to_be_visible()
    expect(owner.locator("aside[data-escalated]")).to_be_hidden()
    work(served, LATE)
    expect(owner.locator("aside[data-escalated]")).to_contain_text("approval requests escalated to you: 1")
    expect(owner.locator("[data-requests] > :first-child")).to_have_attribute("data-key", "late")
    expect(row(owner, "late")).to_contain_text("escalated to admin")
    for page in (stale, owner):
        page.close()


@pytest.mark.thorough
def test_the_pages_are_accessible_in_every_look(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "look")  # before a rule is made, which would answer it
    page = people[0].new_page()
    for address in ("/approvals/", "/approvals/look/", "/approvals/?view=all"):
        page.goto(address)
        expect(row(page, "look").or_(card(page, "look")).filter(visible=True).first).to_be_visible()
        assert in_every_look(page, address) == {}
    page.close()
    approve(served, "look")


@pytest.mark.thorough
def test_approving_always_from_the_keyboard(served: Server, people: tuple[BrowserContext, BrowserContext]) -> None:
    asks(served, "mine", "like")
    page = people[1].new_page()
    page.goto("/approvals/mine/")
    expect(card(page, "mine")).to_be_visible()

    page.keyboard.press("w")
    expect(page.get_by_label("Exactly these")).to_be_focused()
    page.get_by_label("Maximum uses").fill("9")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    expect(page.get_by_role("status").filter(has_text="Matching calls will be approved")).to_be_visible()
    page.goto("/approvals/mine/")
    expect(page.get_by_text("and created an auto-approval rule")).to_be_visible()
    page.get_by_role("link", name="and created an auto-approval rule").click()
    expect(page.get_by_role("article")).to_contain_text("of 9")
    page.goto("/approvals/like/")
    expect(page.locator(".verdict")).to_contain_text("by an auto-approval rule by april")
    page.goto("/approvals/rules/")
    assert in_every_look(page, "/approvals/rules/") == {}
    page.close()
