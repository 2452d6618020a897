"""The audit log in a real browser: filters by keyboard, details, the chain, axe, and without scripts."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, covered, violations
from tests.support.live import Server

LONG = "a.very.long.name." * 5 + "@example.org"
ENTER = f"""
from conversations.access.audit import chain
from conversations.core.write_transaction import write_transaction
from conversations.core.principals import user_principal
with write_transaction():
    for n in range(60):
        reason = "العربية and " + "x" * 300
        chain.add_entry(user_principal("maria"), "look", f"thing:{{n}}", reason=reason, after="a" * 64)
    chain.add_entry(user_principal("{LONG}"), "send_it_far", "conversation:" + "x" * 200, acting_as="agent:" + "D" * 80)
"""

ARRIVE = """
from conversations.access.audit import chain
from conversations.core.write_transaction import write_transaction
from conversations.core.principals import user_principal
with write_transaction():
    for n in range(3):
        chain.add_entry(user_principal("maria"), "arrive", f"thing:{n}")
"""


@pytest.fixture(scope="module")
def entered(server: Server) -> Server:
    """A server with entries."""
    server.command("shell", "-v0", "-c", ENTER)
    return server


def rows(page: Page) -> Any:
    """The rows of the list."""
    return page.locator(".audit-table [data-key]")


@pytest.mark.slow
def test_the_details_of_entries_with_long_texts_are_in_sight_at_1280_px(page: Page, entered: Server) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto("/audit/")
    expect(rows(page).first).to_be_visible()

    assert page.locator(".table-frame").evaluate("(frame) => frame.scrollWidth - frame.clientWidth") == 0


@pytest.mark.thorough
def test_an_auditor_filters_opens_and_verifies_by_the_keyboard(page: Page, entered: Server) -> None:
    page.goto("/")
    page.locator("h1").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url("**/audit/")  # till it is loaded: keys are its scripts'
    page.get_by_role("checkbox", name="maria", exact=True).focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile(r"who=user%3Amaria"))
    expect(page.get_by_role("checkbox", name="maria", exact=True)).to_be_focused()
    expect(rows(page).filter(has_not_text="maria")).to_have_count(0)
    assert "who=user%3Amaria" in str(page.get_by_role("link", name="CSV").get_attribute("href"))

    page.keyboard.press("Escape")
    page.locator("h1").click()
    rows(page).first.get_by_role("link").first.focus()
    page.keyboard.press("o")
    expect(page.get_by_label(re.compile("^This entry")).first).to_be_visible()
    expect(page.locator(".entry-open:visible")).to_have_count(1)

    page.get_by_role("link", name="Verify the audit log").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"The chain is intact up to entry \d+"))).to_be_visible()
    expect(page).to_have_url(re.compile("/audit/.who=user%3Amaria"))


@pytest.mark.slow
def test_new_entries_are_counted_and_shown_on_wish(page: Page, entered: Server) -> None:
    page.goto("/audit/?verb=arrive")
    expect(page.get_by_text("No entry matches")).to_be_visible()
    expect(page.locator("live-state")).to_have_text("Live")

    entered.command("shell", "-v0", "-c", ARRIVE)
    news = page.get_by_role("button", name="3 new entries", exact=True)
    expect(news).to_be_visible()
    expect(rows(page)).to_have_count(0)
    assert covered(page, "[data-changed]", ":is([data-list], .filterbar label)") == []
    news.press("Enter")

    expect(rows(page)).to_have_count(3)
    expect(rows(page).first.get_by_role("link").first).to_be_focused()
    expect(news).to_be_hidden()
    page.goto(str(rows(page).last.get_by_role("link").first.get_attribute("href")))
    expect(page.locator("audit-log[data-older]")).to_be_visible()
    page.get_by_role("checkbox", name="arrive").check()
    expect(rows(page)).to_have_count(3)
    entered.command("shell", "-v0", "-c", ARRIVE)
    expect(news).to_be_visible()


@pytest.mark.slow
def test_nothing_is_asked_for_until_there_are_entries_and_totals_come_with_them(page: Page, entered: Server) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.clock.install()
    page.goto("/audit/")
    expect(page.locator("live-state")).to_have_text("Live")
    page.wait_for_load_state("networkidle")
    head = int(page.locator("audit-log").get_attribute("data-newest") or 0)
    loaded = len(requests)

    page.clock.run_for(60_000)
    assert [url for url in requests[loaded:] if "part=news" in url] == []
    page.clock.resume()
    entered.command("shell", "-v0", "-c", ARRIVE)
    page.get_by_role("button", name="3 new entries", exact=True).click()

    expect(page.locator("[data-total=count]")).to_contain_text(f"{head + 3:,} entries")


@pytest.mark.slow
def test_a_click_anywhere_in_an_entry_opens_it_and_another_closes_it(page: Page, entered: Server) -> None:
    page.goto("/audit/")
    cell = rows(page).first.locator("td").nth(3)

    cell.click()
    expect(page.locator(".entry-open:visible")).to_have_count(1)
    cell.click()

    expect(page.locator(".entry-open:visible")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_spills(entered: Server, lenient_page: Page, scheme: Any, width: int) -> None:
    page = lenient_page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    faults = []
    for address in ("/audit/?target=conversation:*", "/audit/?from=x", "/audit/verification/", "/audit/record/"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if "target" in address and width < 1000:
            page.get_by_role("button", name="Filters").click()
            expect(page.get_by_label("Conversation ID")).to_be_visible()
        for summary in page.locator(".more > summary").all():
            summary.evaluate("one => (one.parentElement.open = true)")
        faults += violations(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address

    assert faults == []


@pytest.mark.thorough
def test_a_verification_that_fails_twice_says_so_once(page: Page, entered: Server) -> None:
    page.goto("/audit/")
    page.route("**/audit/verification/?*part=state*", lambda route: route.abort())
    for _ in range(2):
        with page.expect_event("requestfailed"):
            page.locator("chain-check [data-verify]").click()
        expect(page.locator("[data-checked]")).to_have_attribute("aria-busy", "false")

    expect(page.locator("[data-checked]")).to_have_text("The server did not respond. Try again.")


@pytest.mark.slow
def test_without_scripts_it_filters_opens_and_verifies(plain_page: Page, entered: Server) -> None:
    plain_page.goto("/audit/")
    plain_page.get_by_role("checkbox", name="look").check()
    plain_page.get_by_role("button", name="Filter").first.click()
    expect(plain_page).to_have_url(re.compile("verb=look"))
    expect(rows(plain_page)).to_have_count(50)
    rows(plain_page).first.locator("summary").click()
    expect(plain_page.locator(".entry-open:visible")).to_have_count(1)

    plain_page.get_by_role("link", name="Verify the audit log").click()

    expect(plain_page.get_by_text(re.compile("The chain is intact up to entry"))).to_be_visible()
