"""Somewhere a refund was filed for the wrong person: found, looked at, forked before it and run on, then compared.

Once on an imported recording, once on the Town Hall, where an official decides; in one browser with the demo model.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from tests.browser import Faults, in_every_look
from tests.support.live import Server, until

SAMPLE = Path(settings.SAMPLES_DIR) / "tau2-bench/airline_gpt-4.1_20sims.json.gz"
REPORT = "A pothole on Mill Road 5. My name is Rosa."
CORRECTED = "A pothole on Hill Road 9. My name is Rosa."


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """The Town Hall with its agents, and the sample where it is there."""
    server = Server(SWITCHBOARD_DEMO_PACE_S="0").start()
    if SAMPLE.exists():
        server.command("import", str(SAMPLE))
    yield server
    server.terminate()


@pytest.fixture
def window(window: Page, served: Server) -> Iterator[Page]:
    """A fresh window of the owner; nothing may have gone wrong in it at the end."""
    faults = Faults(window.context, served)
    yield window
    assert faults.noted == []


def kind(page: Page, name: str):
    return page.locator(f".transcript [data-kind='{name}']")


@pytest.mark.skipif(not SAMPLE.exists(), reason="SWITCHBOARD_SAMPLES_DIR has no tau2-bench")
@pytest.mark.thorough
def test_a_refund_of_a_recording_is_found_forked_before_its_call_and_run_on(window: Page) -> None:
    window.goto("/search/")
    window.get_by_role("searchbox").fill('refund "cancel reservation 3FRNFB"')
    with window.expect_navigation():
        window.keyboard.press("Enter")

    def hit():
        return window.locator(".hit a").all() or (window.reload() and None)

    until(hit, within=60, what="what was imported to be searchable")[0].click()
    call = kind(window, "tool_step").filter(has_text="cancel_reservation")
    call.locator("summary").first.click()
    expect(call).to_contain_text("amelia_sanchez_4739")
    original = window.url
    call.get_by_role("link", name="Open call").click()
    expect(window.locator("#replay")).to_contain_text(
        "This call cannot be replayed"
    )  # another program's call is looked at only
    window.go_back()
    call = kind(window, "tool_step").filter(has_text="cancel_reservation")
    call.locator("details").first.evaluate("(block) => (block.open = true)")

    call.get_by_role("link", name="Fork before this call").click()
    expect(window.get_by_role("heading", level=1)).to_have_text("Fork after event 15")
    expect(window.get_by_label("Edit this message")).to_have_value(re.compile("cancel reservation 3FRNFB"))
    faults = in_every_look(window, "fork form")
    window.get_by_label("Edit this message").fill("Stop: that is my sister's reservation, not mine.")
    window.get_by_label("Agent").select_option("Dialogue")
    window.get_by_label("Reason").fill("the wrong person")
    window.get_by_role("button", name="Fork and run").click()

    expect(kind(window, "run.done")).to_be_visible()
    expect(kind(window, "conversation.forked")).to_contain_text("the wrong person")
    expect(kind(window, "output").last).to_contain_text("sister's reservation")
    expect(window.locator(".transcript")).not_to_contain_text("cancel_reservation")
    window.set_viewport_size({"width": 1440, "height": 900})
    window.get_by_role("link", name="Compare", exact=True).click()
    expect(window.locator("[data-first]")).to_contain_text("that is my sister's reservation")
    expect(window.locator("[data-first]")).to_contain_text("Yes, please go ahead")
    faults |= in_every_look(window, "compare")

    window.goto(original)
    expect(window.locator(".forks-of")).to_contain_text("after event 14")
    expect(kind(window, "tool_step").filter(has_text="cancel_reservation")).to_be_visible()
    assert faults == {}


def test_a_report_of_the_town_hall_is_decided_then_forked_by_keys_in_other_words(window: Page) -> None:
    window.set_viewport_size({"width": 1440, "height": 900})
    window.goto("/")
    begin(window, REPORT)
    question = kind(window, "approval.requested").or_(kind(window, "tool_step")).filter(has_text="file_incident")
    expect(question.get_by_role("button", name="Approve")).to_be_visible(timeout=30_000)
    question.get_by_role("button", name="Approve").click()
    expect(kind(window, "run.done")).to_be_visible(timeout=30_000)
    expect(question.locator(".verdict")).to_contain_text("by owner")

    # who decided, and what it would be today: dry, nothing is made
    there = window.url
    window.get_by_role("link", name="Calls").click()
    window.get_by_role("link", name=re.compile("file_incident")).first.click()
    expect(window.locator(".card").filter(has_text="Decision").first).to_contain_text(re.compile("Approved.*owner"))
    window.get_by_role("button", name="Dry run", exact=True).click()
    expect(window.locator("#replay")).to_contain_text("Request to send")
    expect(window.locator("#replay")).to_contain_text("Mill Road 5")
    window.goto("/calls/")
    expect(window.get_by_role("link", name=re.compile("file_incident"))).to_have_count(1)
    window.goto(there)
    window.wait_for_selector("live-state[data-state=live]")

    # before it, by keys alone: to the message, fork, other words, run on
    window.locator(".transcript").focus()
    for _ in range(60):
        window.keyboard.press("k")
    window.keyboard.press("j")
    expect(window.locator("[aria-current='true'][data-kind='message']")).to_contain_text("Mill Road 5")
    window.keyboard.press("f")
    window.wait_for_selector("[data-fork]")
    window.get_by_label("Edit this message").focus()
    window.keyboard.press("Control+a")
    window.keyboard.type(CORRECTED)
    expect(window.get_by_label("Agent")).to_have_value("Dialogue")
    window.get_by_role("button", name="Fork and run").focus()
    window.keyboard.press("Enter")

    request_row = kind(window, "approval.requested").or_(kind(window, "tool_step")).filter(has_text="Hill Road")
    expect(request_row.get_by_role("button", name="Approve").first).to_be_visible(timeout=30_000)
    expect(kind(window, "message").first).to_contain_text("Edited; original by owner")
    window.get_by_role("link", name="Compare", exact=True).click()
    expect(window.locator("[data-first]")).to_contain_text("First difference: text")


def begin(page: Page, words: str) -> None:
    """Begin a conversation with Dialogue."""
    page.locator(".beginning > summary").click()
    page.get_by_label("First message").fill(words)
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_selector(".transcript [data-kind='message']")
