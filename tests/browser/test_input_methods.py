"""Enter of an input method chooses a word: it presses nothing, whether the browser says so in time (Safari) or not."""

import pytest
from playwright.sync_api import Page

OPTIONS = """async () => {
  document.body.innerHTML = `<input id="field"><div role="listbox" id="list"></div><template><div role="group">
    <span class="group"></span><a role="option"><svg class="icon"><use></use></svg><span></span><small></small>
    <time></time><kbd></kbd></a></div></template>`;
  const { Options } = await import("/static/js/options.js");
  const [field, list, template] = ["input", "#list", "template"].map((name) => document.querySelector(name));
  const options = new Options(field, list, template);
  field.addEventListener("keydown", (event) => options.handleKey(event));
  options.show("found", "Found", [{ symbol: "talk", label: "Water" }]);
  list.addEventListener("click", () => (globalThis.pressed = true));
}"""
REQUEST = """async () => {
  document.body.innerHTML = `<div class="approval"><decision-form data-key="k" data-address="/k">
    <p class="terms"></p><form><input name="message" id="field">
    <button name="decide" value="reject">Reject</button><i data-said></i></form></decision-form></div>`;
  await import("/static/js/decision-form.js");
  addEventListener("submit", () => (globalThis.pressed = true), { capture: true });
}"""
PRESS = """(how) => {
  globalThis.pressed = false;
  const event = new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...how });
  document.querySelector("#field").dispatchEvent(event);
  return pressed;
}"""


COMPOSING, CHOSEN, PRESSED = {"isComposing": True, "keyCode": 229}, {"keyCode": 229}, {"keyCode": 13}


@pytest.mark.parametrize("page", [OPTIONS, REQUEST], ids=["palette", "rejection"])
def test_enter_presses_only_where_nothing_is_composed(empty_page: Page, page: str) -> None:
    empty_page.evaluate(page)

    assert [empty_page.evaluate(PRESS, how) for how in (COMPOSING, CHOSEN, PRESSED)] == [False, False, True]
