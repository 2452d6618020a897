"""What Firefox and Safari lack or do otherwise: each simulated in Chromium, or the mechanism that avoids it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

PILL = """async () => {
  const { NewsPill } = await import("/static/js/news-pill.js");
  const { TailPill } = await import("/static/js/tail-pill.js");
  document.body.innerHTML = `<button class="news"><span>1 new row</span></button>
    <div><button class="pill"><span>1 new</span></button></div>`;
  const [news, host] = [document.querySelector(".news"), document.querySelector("div")];
  const newsPill = new NewsPill(news, () => {}, new AbortController().signal);
  const tailPill = new TailPill(host, () => {});
  const pressed = [...document.querySelectorAll("span")].map((label) => label.firstChild);
  newsPill.show(2, "2 new rows");
  tailPill.add({ count: 2, names: ["Desk"] });
  tailPill.draw();
  return pressed.map((node) => [node.isConnected, node.data]);
}"""
TIME = """async () => {
  document.body.innerHTML = '<a href="#e1"><time datetime="2001-11-21T22:02:07Z" data-age>now</time></a>';
  const pressed = document.querySelector("time").firstChild;
  const { drawTimes } = await import("/static/js/clock.js");
  drawTimes();
  return [pressed.isConnected, pressed.data !== "now"];
}"""
ICONS = """async () => {
  const { morph } = await import("/static/js/morph.js");
  const { render } = await import("/static/js/html.js");
  const icon = (state) => `<svg class="icon"><use href="#i-s-${state}"></use></svg>`;
  const drawn = (state) => render(`<p><span data-state="${state}">${icon(state)}Desk</span></p>`).firstChild;
  document.body.replaceChildren(drawn("running"));
  const [row, label, turning] = ["p", "span", "svg"].map((name) => document.querySelector(name));
  morph(row, drawn("running"));
  const before = turning.isConnected;
  morph(row, drawn("done"));
  return [before, turning.isConnected, label.isConnected, row.isEqualNode(drawn("done"))];
}"""
COPYING = """async ([status, item]) => {
  const Item = class { constructor(data) { this.getType = (type) => data[type]; } };
  globalThis.ClipboardItem = item ? Item : undefined;
  globalThis.copied = [];
  let isPressed = false; // Safari's rule: a write begins while the press is handled
  const written = async (data) => globalThis.copied.push(data);
  const refused = () => Promise.reject(new Error());
  const read = (items) => items[0].getType("text/plain").then((blob) => blob.text());
  const clipboard = {
    write: (items) => (isPressed ? read(items).then(written) : refused()),
    writeText: (data) => (isPressed || !item ? written(data) : refused()),
  };
  Object.defineProperty(navigator, "clipboard", { value: clipboard });
  globalThis.fetch = () => new Promise((done) => setTimeout(() => done(new Response("# Talk", { status })), 20));
  document.body.innerHTML = `<transcript-menu popover data-file="/export"><button data-copy-as="markdown">Copy</button>
    </transcript-menu><news-announcer></news-announcer><output></output>`;
  addEventListener("said", ({ detail }) => (document.querySelector("output").textContent = detail.words));
  await import("/static/js/transcript-menu.js");
  document.querySelector("transcript-menu").showPopover();
  isPressed = true;
  document.querySelector("button").click();
  isPressed = false;
}"""
FIELDS = """async () => {
  CSS.supports = () => false;
  document.head.innerHTML = "<style>.low { max-block-size: 90px }</style>";
  const lines = Array.from({ length: 30 }, (_, n) => `line ${n}`).join("\\n");
  document.body.innerHTML = `<form><textarea class="input" rows="2">${lines}</textarea>
    <details><summary>JSON</summary><textarea class="input" rows="2">${lines}</textarea></details>
    <textarea class="input low" rows="2">${lines}</textarea><button type="button">Undo</button></form>`;
  await import("/static/js/field-size.js");
  const later = `<textarea class="input" rows="2">${lines}</textarea>`;
  document.querySelector("form").insertAdjacentHTML("beforeend", later);
}"""
CUT = """() => {
  const shown = [...document.querySelectorAll("textarea")].filter((area) => area.checkVisibility());
  return `${shown.filter((area) => area.scrollHeight > area.clientHeight).length} of ${shown.length}`;
}"""

FRAME = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
HEIGHT = "(area) => area.offsetHeight"


def test_a_label_that_changes_under_a_press_keeps_its_text_node(empty_page: Page) -> None:
    assert empty_page.evaluate(PILL) == [[True, "2 new rows"], [True, "2 new from Desk"]]
    assert empty_page.evaluate(TIME) == [True, True]


def test_an_icon_that_turns_is_replaced_once_its_state_ends(empty_page: Page) -> None:
    assert empty_page.evaluate(ICONS) == [True, False, True, True]


@pytest.mark.parametrize("has_items", [True, False])
def test_a_conversation_is_copied_by_a_write_that_begins_with_the_press(empty_page: Page, has_items: bool) -> None:
    empty_page.evaluate(COPYING, [200, has_items])

    expect(empty_page.locator("output")).to_have_text("Conversation copied")
    assert empty_page.evaluate("copied") == ["# Talk"]


@pytest.mark.parametrize("has_items", [True, False])
def test_nothing_is_copied_where_the_server_fails(empty_page: Page, has_items: bool) -> None:
    empty_page.evaluate(COPYING, [503, has_items])

    expect(empty_page.locator("output")).to_have_text("The server did not respond. Nothing was copied.")
    assert empty_page.evaluate("copied") == []


def test_a_text_area_shows_all_of_its_lines_where_the_style_sheet_cannot_do_it(empty_page: Page) -> None:
    empty_page.evaluate(FIELDS)
    empty_page.wait_for_function(f"({CUT})() === '1 of 3'")  # the style sheet limits one

    empty_page.locator("summary").click()
    empty_page.wait_for_function(f"({CUT})() === '1 of 4'")
    first = empty_page.locator("textarea").first
    tall = first.evaluate(HEIGHT)
    first.fill("short")
    assert first.evaluate(HEIGHT) < tall / 4

    first.evaluate("(area) => (area.value = 'again\\n'.repeat(30))")
    empty_page.locator("button").click()
    empty_page.wait_for_function(f"({CUT})() === '1 of 4'")

    first.evaluate("(area) => area.removeAttribute('style')")  # as a newer rendering does
    empty_page.wait_for_function(f"({CUT})() === '1 of 4'")


@pytest.mark.parametrize(("text", "px"), [("line\n" * 30, -200), ("line\n" * 30, 100), ("one\ntwo", -15)])
def test_a_height_that_a_person_dragged_stays(empty_page: Page, text: str, px: int) -> None:
    empty_page.evaluate(FIELDS)
    empty_page.wait_for_function(f"({CUT})() === '1 of 3'")
    area = empty_page.locator("textarea").first
    area.fill(text)
    before = area.evaluate(HEIGHT)

    drag_edge(empty_page, area, px)
    dragged = area.evaluate(HEIGHT)
    empty_page.locator("button").click()
    empty_page.evaluate(FRAME)
    after_a_press = area.evaluate(HEIGHT)
    area.press("Enter")
    empty_page.evaluate(FRAME)

    assert abs(dragged - before - px) <= 1
    assert [after_a_press, area.evaluate(HEIGHT)] == [dragged, dragged]


def drag_edge(page: Page, area: Locator, px: int) -> None:
    """Drag the corner of a text area down by so many pixels."""
    box = area.bounding_box()
    assert box
    x, y = box["x"] + box["width"] - 4, box["y"] + box["height"] - 4
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + px, steps=4)
    page.mouse.up()


def test_underlines_are_not_written_in_the_short_form_that_safari_drops() -> None:
    sheets = (Path(__file__).parents[2] / "static/css").rglob("*.css")
    short = {sheet.name: re.findall(r"text-decoration: \w+ [^;}]+", sheet.read_text()) for sheet in sheets}

    assert {name: rules for name, rules in short.items() if rules} == {}
