"""Keys on a Mac and elsewhere: Command in place of Ctrl, as shown and as handled. No server."""

import pytest
from playwright.sync_api import Page

PALETTE = """async (platform) => {
  Object.defineProperty(navigator, "userAgentData", { value: { platform }, configurable: true });
  document.body.innerHTML = `<button class="jump" aria-keyshortcuts="Control+K"><kbd>Ctrl K</kbd></button>
    <kbd>Ctrl</kbd><kbd>K</kbd>
    <command-palette><dialog><input type="text" role="combobox"><div role="listbox"></div><p role="status"></p>
    <template><div role="group"></div></template></dialog></command-palette>`;
  await import("/static/js/palette.js");
}"""
SHOWN = """() => [...document.querySelectorAll("kbd")].map((key) => key.textContent)"""
IS_OPEN = "document.querySelector('dialog').open"


@pytest.mark.parametrize(
    ("platform", "shown", "opens", "does_not"),
    [
        ("macOS", ["⌘K", "⌘", "K"], "Meta+k", "Control+k"),
        ("Windows", ["Ctrl K", "Ctrl", "K"], "Control+k", "Meta+k"),
    ],
)
def test_the_palette_opens_by_the_key_that_is_shown(
    empty_page: Page, platform: str, shown: list[str], opens: str, does_not: str
) -> None:
    empty_page.route("**/api/**", lambda route: route.fulfill(json={"items": []}))
    empty_page.evaluate(PALETTE, platform)

    assert empty_page.evaluate(SHOWN) == shown
    empty_page.keyboard.press(does_not)
    assert not empty_page.evaluate(IS_OPEN)
    empty_page.keyboard.press(opens)
    assert empty_page.evaluate(IS_OPEN)
