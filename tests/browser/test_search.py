"""The search page in a real browser: found, opened in context, by keys alone, in every look."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, violations
from tests.support.live import Server, until

SAID = (
    ("harbour desk", "agent:Triage", "A parcel was sent to the wrong quay"),
    ("harbour desk", "agent:Clerk-with-a-rather-long-name-of-an-agent", "The parcel was quaysided " + "very " * 80),
    ("harbour desk", "user:Noor", "الطرد وصل إلى الرصيف الخطأ parcel"),
    ("harbour desk", "agent:Triage", "包裹寄错了码头 parcel"),
)


@pytest.fixture(scope="module")
def indexed(server: Server, token: str) -> None:
    """Say something worth finding, and wait until it can be found."""
    for key, sender, content in SAID:
        payload = {"type": "message", "conversation_id": key, "sender": sender, "recipient": "user", "content": content}
        status, answer = server.publish(token, f"chat:{key}", payload)
        assert status == 201, answer
    path = "/api/v1/search?q=parcel"
    until(lambda: len(server.request("GET", path, token=token)[1]["items"]) == len(SAID), what="the index")


def test_a_search_by_keys_alone_ends_at_the_event_in_context(page: Page, indexed: None) -> None:
    page.goto("/agents/")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/search/")
    expect(page.get_by_role("searchbox")).to_be_focused()

    page.keyboard.type('"wrong quay"')
    page.keyboard.press("Enter")
    expect(page.locator(".hit mark")).to_have_text(["wrong quay"])
    page.wait_for_url("**/search/?q=*")  # its scripts listen to keys once it is loaded
    page.keyboard.press("j")
    page.keyboard.press("Enter")

    page.wait_for_url(re.compile(r"/conversations/.*\?event=1#e1"))
    expect(page.locator("#e1")).to_have_attribute("aria-current", "true")
    expect(page.locator("#e1")).to_contain_text("wrong quay")


@pytest.mark.thorough
def test_the_palette_offers_to_search_everywhere(page: Page, indexed: None) -> None:
    page.goto("/agents/")
    page.keyboard.press("/")
    page.keyboard.type("quaysided")
    expect(page.get_by_role("group", name="Events").get_by_role("option")).to_have_count(1)

    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option", name="Search everywhere for “quaysided”")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")

    page.wait_for_url("**/search/?q=quaysided")
    expect(page.locator(".hit")).to_have_count(1)


@pytest.mark.thorough
def test_slash_goes_to_the_words_on_the_search_page(page: Page, indexed: None) -> None:
    page.goto("/search/?q=parcel")
    page.keyboard.press("/")
    page.keyboard.type("quaysided")
    page.keyboard.press("Enter")

    expect(page.locator(".hit")).to_have_count(1)


@pytest.mark.thorough
def test_it_works_without_scripts(plain_page: Page, indexed: None) -> None:
    plain_page.goto("/search/")
    plain_page.get_by_role("searchbox").fill("码头")
    plain_page.get_by_role("button", name="Search", exact=True).click()

    expect(plain_page.locator(".hit mark")).to_have_text(["码头"])


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
@pytest.mark.thorough
def test_axe_finds_nothing_on_the_search_page(
    server: Server, lenient_page: Page, indexed: None, width: int, scheme: Any
) -> None:
    page = lenient_page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    faults = {}
    for query in ("", "?q=parcel", "?q=nothing-like-it+!!&sender=Nobody&kind=output", "?q=parcel&since=x"):
        page.goto(f"/search/{query}")
        faults[query] = violations(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), query

    assert not any(faults.values()), faults
