"""The conversations page in a real browser, on a real server: what moves, what stays, what it says."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import Faults, sign_in, violations
from tests.live import Server

pytestmark = [pytest.mark.browser, pytest.mark.timeout(90)]

ROWS = ".conversation h2 > a"


class Town:
    """A server with three conversations, and a token to say more."""

    def __init__(self) -> None:
        self.server = Server().start()
        self.token = self.server.token()
        for key in ("mill", "oak park", "harbour"):
            self.say(key, f"First words of {key}")

    def say(self, key: str, words: str, sender: str = "agent:Triage") -> None:
        """Publish one message."""
        said = {
            "type": "message",
            "conversation_id": key,
            "sender": sender,
            "recipient": f"chat:{key}",
            "content": words,
        }
        status, answer = self.server.publish(self.token, f"chat:{key}", said)
        assert status == 201, answer


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    """One server for this file."""
    town = Town()
    yield town
    town.server.kill()


@pytest.fixture(scope="module")
def signed_in(town: Town, chromium: Browser) -> Iterator[BrowserContext]:
    """Ada's browser; at the end nothing may have gone wrong in it."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    sign_in(town.server, context)
    faults = Faults(context, town.server)
    yield context
    context.close()
    assert faults.found == []


@pytest.fixture
def page(town: Town, signed_in: BrowserContext) -> Iterator[Page]:
    """The list, live, with the pointer away from it."""
    page = signed_in.new_page()
    page.goto(town.server.url)
    page.mouse.move(1, 1)
    expect(page.locator("live-state")).to_have_text("Live")
    yield page
    page.close()


def titles(page: Page) -> list[str]:
    """The rows from the top."""
    return page.locator(ROWS).all_inner_texts()


def unread(page: Page, key: str) -> str:
    """The unread count of a row."""
    return page.locator(f'[data-key="{key}"] [data-unread-count]').inner_text()


def test_a_row_that_changes_goes_to_the_top_with_its_words_and_count(town: Town, page: Page) -> None:
    before = int(unread(page, "mill"))

    town.say("mill", "Water is rising")

    expect(page.locator(ROWS).first).to_have_text("mill")
    expect(page.locator(".conversation").first).to_contain_text("Water is rising")
    assert int(unread(page, "mill")) == before + 1


def test_a_new_conversation_appears_by_itself(town: Town, page: Page) -> None:
    town.say("tram/stop?", "A tree fell")

    expect(page.locator(ROWS).first).to_have_text("tram/stop?")
    expect(page.locator('[data-key="tram/stop?"] .unread')).to_contain_text("1")


def test_rows_stay_under_the_pointer_and_a_pill_says_what_would_move(town: Town, page: Page) -> None:
    order = titles(page)
    page.locator(".conversation").nth(1).hover()

    town.say(order[-1], "I am last")

    expect(page.locator("[data-changed]")).to_have_text("1 changed")
    expect(page.locator(".conversation").last).to_contain_text("I am last")
    assert titles(page) == order
    page.mouse.move(1, 1)
    expect(page.locator(ROWS).first).to_have_text(order[-1])
    expect(page.locator("[data-changed]")).to_be_hidden()


def test_rows_stay_while_the_focus_is_in_the_list_and_keep_it(town: Town, page: Page) -> None:
    order = titles(page)
    page.keyboard.press("j")
    page.keyboard.press("j")

    town.say(order[1], "Focused words")
    town.say(order[2], "Other words")

    expect(page.locator("[data-changed]")).to_have_text("2 changed")
    expect(page.locator(ROWS).nth(1)).to_be_focused()
    page.locator("[data-changed]").click()
    expect(page.locator(ROWS).first).to_have_text(order[2])


def test_enter_opens_the_row_that_j_and_k_chose(page: Page) -> None:
    wanted = page.locator(ROWS).nth(1).get_attribute("href")
    for key in "jjjkk":
        page.keyboard.press(key)
    page.keyboard.press("j")

    page.keyboard.press("Enter")

    page.wait_for_url(f"**{wanted}")


def test_typing_filters_and_the_address_holds_it(town: Town, page: Page) -> None:
    page.keyboard.press("/")

    page.keyboard.type("harb")

    expect(page.locator(ROWS)).to_have_text(["harbour"])
    assert page.url.endswith("/?q=harb")
    page.reload()
    expect(page.locator(ROWS)).to_have_text(["harbour"])


def test_a_filtered_list_finds_a_new_match_by_itself(town: Town, page: Page) -> None:
    page.goto(f"{town.server.url}/?q=lantern")
    expect(page.get_by_text("No conversation matches")).to_be_visible()

    town.say("oak park", "A lantern is broken")

    expect(page.locator(ROWS)).to_have_text(["oak park"])


def test_the_palette_opens_a_conversation_by_name(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("oak")
    expect(page.get_by_role("option", name="oak park")).to_have_attribute("aria-selected", "true")

    page.keyboard.press("Enter")

    page.wait_for_url("**/conversations/~**")


def test_the_palette_changes_the_theme_and_the_server_remembers(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    page.reload()

    assert 'data-theme="dark"' in page.content()
    page.context.clear_cookies(name="switchboard_theme")


def test_letters_can_be_switched_off(page: Page) -> None:
    page.keyboard.press("?")
    page.get_by_label("Single letters act as keys").uncheck()
    page.keyboard.press("Escape")

    page.keyboard.press("j")

    expect(page.locator("body")).to_be_focused()
    page.evaluate("localStorage.clear()")


def test_a_lost_connection_is_said_and_what_was_missed_comes_back(town: Town, page: Page) -> None:
    town.server.kill()
    expect(page.get_by_text("Connection lost")).to_be_visible()
    expect(page.locator("live-state")).to_have_text("Reconnecting")

    town.server.start()
    town.say("mill", "While you were away")

    expect(page.get_by_text("Connection lost")).to_be_hidden(timeout=15_000)
    expect(page.locator(".conversation").first).to_contain_text("While you were away")


def test_a_sign_out_elsewhere_is_said_with_the_way_back(town: Town, chromium: Browser) -> None:
    context = chromium.new_context()
    sign_in(town.server, context, "otto", "operator")
    page, other = context.new_page(), context.new_page()
    page.goto(town.server.url)
    expect(page.locator("live-state")).to_have_text("Live")

    other.goto(town.server.url)
    other.locator(".account").click()
    other.get_by_role("button", name="Sign out").click()

    expect(page.get_by_text("You are signed out")).to_be_visible()
    expect(page.locator("live-state")).to_have_text("Signed out")
    context.close()


@pytest.fixture(scope="module")
def examined(town: Town, chromium: Browser, signed_in: BrowserContext) -> Iterator[BrowserContext]:
    """Ada's browser again; axe-core puts styles into the page, which the policy refuses, so faults are not counted."""
    context = chromium.new_context(storage_state=signed_in.storage_state())
    yield context
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_on_the_list_and_its_dialogs(
    town: Town, examined: BrowserContext, width: int, scheme: Any
) -> None:
    page = examined.new_page()
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme)
    page.goto(town.server.url)
    expect(page.locator("live-state")).to_have_text("Live")
    found = violations(page)

    for keys in ("Control+k", "?"):
        page.keyboard.press(keys)
        expect(page.get_by_role("dialog")).to_be_visible()
        found += violations(page)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
    page.goto(f"{town.server.url}/?q=nothing-like-it")
    found += violations(page)

    assert found == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.close()


def test_the_first_screen_is_small_and_comes_from_here(town: Town, signed_in: BrowserContext) -> None:
    page = signed_in.new_page()
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(len(answer.body())))

    page.goto(town.server.url, wait_until="networkidle")

    assert re.search(r"/static/js/app\.[0-9a-f]{12}\.js", page.content())
    assert sum(sizes) <= 150_000
    page.close()
