"""Somewhere a refund was filed for the wrong person: found, looked at, forked before it and run on, then compared.

Once on an imported recording, once on the Town Hall, where an official decides; in one browser with the demo model.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import Faults, sign_in
from tests.browser.test_people import in_every_look
from tests.live import Server, until

SAMPLE = Path(settings.SAMPLES_DIR) / "tau2-bench/airline_gpt-4.1_20sims.json.gz"
REPORT = "A pothole on Mill Road 5. My name is Rosa."
CORRECTED = "A pothole on Hill Road 9. My name is Rosa."


@pytest.fixture(scope="module")
def house() -> Iterator[Server]:
    """The Town Hall with its agents, and the sample where it is there."""
    server = Server(SWITCHBOARD_DEMO_PACE_S="0").start()
    if SAMPLE.exists():
        server.command("import", str(SAMPLE))
    yield server
    server.terminate()


@pytest.fixture(scope="module")
def context(chromium: Browser, house: Server) -> Iterator[BrowserContext]:
    """The owner's browser."""
    made = chromium.new_context(base_url=house.url)
    sign_in(house, made)
    yield made
    made.close()


@pytest.fixture
def desk(context: BrowserContext, house: Server) -> Iterator[Page]:
    """A window of theirs; nothing may have gone wrong in it at the end."""
    faults = Faults(context, house)
    page = context.new_page()
    yield page
    page.close()
    assert faults.found == []


def kind(page: Page, name: str):
    return page.locator(f".transcript [data-kind='{name}']")


@pytest.mark.skipif(not SAMPLE.exists(), reason="SWITCHBOARD_SAMPLES_DIR has no tau2-bench")
def test_a_refund_of_a_recording_is_found_forked_before_its_call_and_run_on(desk: Page) -> None:
    desk.goto("/search/")
    desk.get_by_role("searchbox").fill('refund "cancel reservation 3FRNFB"')
    with desk.expect_navigation():
        desk.keyboard.press("Enter")

    def hit():
        return desk.locator(".hit a").all() or (desk.reload() and None)

    until(hit, within=30, what="what was imported to be searchable")[0].click()
    call = kind(desk, "tool_step").filter(has_text="cancel_reservation")
    call.locator("summary").first.click()
    expect(call).to_contain_text("amelia_sanchez_4739")
    original = desk.url
    call.get_by_role("link", name="This call, to compare or replay").click()
    expect(desk.locator("#replay")).to_contain_text(
        "It cannot be made again"
    )  # another program's call is looked at only
    desk.go_back()
    call = kind(desk, "tool_step").filter(has_text="cancel_reservation")
    call.locator("details").first.evaluate("(block) => (block.open = true)")

    call.get_by_role("link", name="Fork before this call").click()
    expect(desk.get_by_role("heading", level=1)).to_have_text("Fork after event 15")
    expect(desk.get_by_label("In other words")).to_have_value(re.compile("cancel reservation 3FRNFB"))
    found = in_every_look(desk, "fork form")
    desk.get_by_label("In other words").fill("Stop: that is my sister's reservation, not mine.")
    desk.get_by_label("Who goes on").select_option("Dialogue")
    desk.get_by_label("Why").fill("the wrong person")
    desk.get_by_role("button", name="Fork and run on").click()

    expect(kind(desk, "run.done")).to_be_visible()
    expect(kind(desk, "conversation.forked")).to_contain_text("the wrong person")
    expect(kind(desk, "output").last).to_contain_text("sister's reservation")
    expect(desk.locator(".transcript")).not_to_contain_text("cancel_reservation")
    desk.set_viewport_size({"width": 1440, "height": 900})
    desk.get_by_role("link", name="Compare", exact=True).click()
    expect(desk.locator("[data-first]")).to_contain_text("that is my sister's reservation")
    expect(desk.locator("[data-first]")).to_contain_text("Yes, please go ahead")
    found |= in_every_look(desk, "compare")

    desk.goto(original)
    expect(desk.locator(".forks-of")).to_contain_text("after event 14")
    expect(kind(desk, "tool_step").filter(has_text="cancel_reservation")).to_be_visible()
    assert found == {}


def test_a_report_of_the_town_hall_is_decided_then_forked_by_keys_in_other_words(desk: Page) -> None:
    desk.set_viewport_size({"width": 1440, "height": 900})
    desk.goto("/")
    begin(desk, REPORT)
    question = kind(desk, "approval.requested").or_(kind(desk, "tool_step")).filter(has_text="file_incident")
    expect(question.get_by_role("button", name="Approve")).to_be_visible(timeout=30_000)
    question.get_by_role("button", name="Approve").click()
    expect(kind(desk, "run.done")).to_be_visible(timeout=30_000)
    expect(question.locator(".verdict")).to_contain_text("by owner")

    # who decided, and what it would be today: dry, nothing is made
    there = desk.url
    desk.get_by_role("link", name="Calls").click()
    desk.get_by_role("link", name=re.compile("file_incident")).first.click()
    expect(desk.locator(".card").filter(has_text="Decision").first).to_contain_text(re.compile("Approved.*owner"))
    desk.get_by_role("button", name="Show dry").click()
    expect(desk.locator("#replay")).to_contain_text("The request as it would go")
    expect(desk.locator("#replay")).to_contain_text("Mill Road 5")
    desk.goto("/calls/")
    expect(desk.get_by_role("link", name=re.compile("file_incident"))).to_have_count(1)
    desk.goto(there)
    desk.wait_for_selector("live-state[data-state=live]")

    # before it, by keys alone: to the message, fork, other words, run on
    desk.locator(".transcript").focus()
    for _ in range(60):
        desk.keyboard.press("k")
    desk.keyboard.press("j")
    expect(desk.locator("[aria-current='true'][data-kind='message']")).to_contain_text("Mill Road 5")
    desk.keyboard.press("f")
    desk.wait_for_selector("[data-fork]")
    desk.get_by_label("In other words").focus()
    desk.keyboard.press("Control+a")
    desk.keyboard.type(CORRECTED)
    expect(desk.get_by_label("Who goes on")).to_have_value("Dialogue")
    desk.get_by_role("button", name="Fork and run on").focus()
    desk.keyboard.press("Enter")

    asked = kind(desk, "approval.requested").or_(kind(desk, "tool_step")).filter(has_text="Hill Road")
    expect(asked.get_by_role("button", name="Approve").first).to_be_visible(timeout=30_000)
    expect(kind(desk, "message").first).to_contain_text("Changed from what owner said")
    desk.get_by_role("link", name="Compare", exact=True).click()
    expect(desk.locator("[data-first]")).to_contain_text("The first difference: words")


def begin(page: Page, words: str) -> None:
    """Begin a conversation with Dialogue."""
    page.locator(".beginning > summary").click()
    page.get_by_label("First words").fill(words)
    page.get_by_role("button", name="Begin", exact=True).click()
    page.wait_for_selector(".transcript [data-kind='message']")
