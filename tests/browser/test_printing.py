"""A page printed by the browser itself, in its own colours."""

from playwright.sync_api import Page

from tests.browser.transcript import Transcript
from tests.support.live import Server


def test_a_dark_theme_is_printed_in_dark_ink_on_nothing(page: Page, server: Server, token: str) -> None:
    transcript = Transcript(page, server, token, "printed-in-the-dark")
    transcript.say("a")
    transcript.open()
    page.evaluate("() => (document.documentElement.dataset.theme = 'dark')")

    page.emulate_media(media="print")

    ink, scheme = page.evaluate(
        "() => [getComputedStyle(document.querySelector('.said')).color, getComputedStyle(document.body).colorScheme]"
    )
    page.emulate_media(media="screen")
    page.evaluate("() => (delete document.documentElement.dataset.theme)")
    assert scheme == "light"
    assert float(ink.removeprefix("oklch(").split()[0]) < 0.5
