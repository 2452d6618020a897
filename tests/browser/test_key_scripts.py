"""Keyboard shortcuts in an empty page of a real browser."""

import pytest
from playwright.sync_api import Page

BOUND = """async (bound) => {
  const { onKey } = await import("/static/js/keys.js");
  globalThis.pressed = [];
  for (const key of bound) onKey(key, () => pressed.push(key));
}"""


@pytest.fixture
def keys(empty_page: Page) -> Page:
    """A page whose keys tell that they were pressed."""
    empty_page.evaluate(BOUND, ["p", "j", "End", "g g"])
    return empty_page


@pytest.mark.parametrize(("key", "pressed"), [("p", ["p"]), ("j", ["j", "j", "j"]), ("End", ["End"]), ("g", [])])
def test_a_key_that_is_held_down_acts_once_unless_it_only_moves(keys: Page, key: str, pressed: list[str]) -> None:
    for _ in range(3):
        keys.keyboard.down(key)

    assert keys.evaluate("pressed") == pressed


def test_a_key_that_extends_a_selection_does_nothing_else(keys: Page) -> None:
    keys.keyboard.press("Shift+End")
    keys.keyboard.press("End")

    assert keys.evaluate("pressed") == ["End"]
