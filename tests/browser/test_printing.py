"""A page printed by the browser itself, in its own colours."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.transcript import Transcript
from tests.support.live import Server

SHEETS = Path(__file__).resolve().parents[2] / "static" / "css"


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


FOLDED = """() => {
  document.body.innerHTML = `<div class="transcript"><details class="tool"><summary>tool</summary></details>
    <div class="json"><details><summary>json</summary></details></div><div class="output">a<details class="rest">
    <summary>rest</summary></details></div><details class="changed"><summary>changed</summary></details>
    <details class="unfold"><summary>unfold</summary></details>
    <details class="disclosed"><summary>raw</summary></details></div>`;
}"""


def test_what_stays_folded_is_named_in_print(empty_page: Page) -> None:
    empty_page.evaluate(FOLDED)
    empty_page.add_style_tag(path=SHEETS / "components" / "print.css")

    empty_page.emulate_media(media="print")

    expect(empty_page.locator("summary:visible")).to_have_text(["tool", "json", "rest", "changed"])
