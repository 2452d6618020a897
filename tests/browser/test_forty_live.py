"""Of forty live conversations one waits: it is found, decided where it stands, and followed back. In three ways."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import in_every_look, work
from tests.support.live import Server
from tests.support.tiers import variants

LIVE = 40
TALK = """
for n in range({live}):
    t.say(o, f'{key}-lamp-{{n}}', content=f'Street lamp {{n}} is out', client_id='1')
t.ask(o, {key!r}, client_id='1', approval_id={key!r})
for n in range({live}):
    t.say(o, f'{key}-lamp-{{n}}', content='Still dark', client_id='2')
"""


class Mouse:
    """Who points at everything."""

    width, height = 1440, 900

    def __init__(self, page: Page) -> None:
        self.page = page

    def settle(self) -> None:
        """Have the window as this person has it."""
        self.page.set_viewport_size({"width": self.width, "height": self.height})
        self.page.emulate_media(color_scheme="light")
        self.page.mouse.move(1, 1)

    def open(self, row: Locator) -> None:
        """Open the first row."""
        row.get_by_role("link").first.click()

    def approve(self, button: Locator) -> None:
        """Decide."""
        button.click()

    def look(self, view: str) -> None:
        """Go to another view."""
        self.page.get_by_role("navigation", name="View").get_by_role("link", name=view).click()


class Keyboard(Mouse):
    """Who touches no mouse."""

    def open(self, row: Locator) -> None:
        """Open the first row."""
        self.page.keyboard.press("j")
        expect(row.get_by_role("link").first).to_be_focused()
        self.page.keyboard.press("Enter")

    def approve(self, button: Locator) -> None:
        """Decide."""
        self.page.keyboard.press("a")
        expect(button).to_be_focused()
        self.page.keyboard.press("Enter")

    def look(self, view: str) -> None:
        """Go to another view."""
        self.page.keyboard.press("g")
        self.page.keyboard.press({"Lanes": "l", "Timeline": "m"}[view])


class Phone(Mouse):
    """Who has 390 px."""

    width, height = 390, 844


@pytest.mark.thorough
@pytest.mark.parametrize("way", variants([Mouse, Keyboard, Phone]))
def test_the_one_that_waits_is_found_decided_and_followed_back(served: Server, window: Page, way: type[Mouse]) -> None:
    key = f"forty-{way.__name__.lower()}"
    work(served, TALK.format(key=key, live=LIVE))
    person = way(window)
    person.settle()
    window.goto("/")
    window.wait_for_selector("live-state[data-state=live]")

    row = window.locator(".fleet > .conversation").first
    expect(row).to_have_attribute("data-key", key)
    expect(row).to_be_in_viewport(ratio=1)
    expect(row).to_contain_text("wants to call file_incident")
    expect(row.locator(".tag").first).to_contain_text("approval, ")
    assert in_every_look(window, "forty") == {}

    person.settle()
    with window.expect_navigation():  # what is pressed before scripts are there is lost
        person.open(row)
    button = window.get_by_role("button", name="Approve", exact=True)
    expect(button).to_be_visible()
    place = window.url.partition("#")[0].partition("?")[0]
    person.approve(button)
    expect(window.locator(".verdict").first).to_contain_text("by owner")
    assert window.url.startswith(place)

    with window.expect_navigation():
        person.look("Lanes")
    expect(window.locator(".lane-event").filter(has_text="file_incident").first).to_be_visible()
    with window.expect_navigation():
        person.look("Timeline")
    expect(window.locator(".timeline-rows .span").filter(has_text="file_incident").first).to_be_visible()
    assert window.url.startswith(place)
