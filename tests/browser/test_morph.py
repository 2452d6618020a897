"""`morph` in a real browser: a part becomes its newer drawing, and what a reader did in a row stays with that row."""

import random
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import open_empty_page

MORPH = """async ([before, after, act]) => {
  const { morph } = await import("/static/js/morph.js");
  const drawn = (html) => document.createRange().createContextualFragment(`<div>${html}</div>`).firstChild;
  document.body.replaceChildren(drawn(before));
  const part = document.body.firstChild;
  const keyOf = (row) => row.dataset.key ?? row.id;
  const rows = new Map([...part.children].map((row) => [keyOf(row), row]));
  eval(act);
  morph(part, drawn(after));
  return {
    isSame: part.isEqualNode(drawn(after)),
    focused: document.activeElement.closest("[data-key]")?.dataset.key,
    selected: getSelection().toString(),
    opened: [...part.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent),
    typed: [...part.querySelectorAll("input")].map((input) => [keyOf(input.parentElement), input.value]),
    reused: [...part.children].filter((row) => rows.get(keyOf(row)) === row).map(keyOf),
  };
}"""


@pytest.fixture(scope="module")
def place(chromium: Browser) -> Iterator[Page]:
    """An empty page that has the scripts."""
    context = chromium.new_context()
    page = context.new_page()
    open_empty_page(page)
    yield page
    context.close()


def rows(*keys: str) -> str:
    """Draw rows as a page does, each with something to open, to fill in and to focus."""
    opens = "<details><summary>{0}</summary>inside {0}</details>"
    drawn = [f'<section data-key="{key}">{opens.format(key)}<input><a href="#">go</a></section>' for key in keys]
    return "\n".join(["", *drawn, ""])


USED = """
  const row = part.querySelector('[data-key="b"]');
  row.querySelector("details").open = true;
  row.querySelector("input").value = "typed";
  row.querySelector("a").focus();
  getSelection().selectAllChildren(row.querySelector("details"));
"""
SELECT = "if (part.children.length) getSelection().selectAllChildren(part.children[part.children.length >> 1])"
CHANGES = {
    "above": ("n", "a", "b", "c"),
    "below": ("a", "b", "n", "c"),
    "the first is gone": ("b", "c"),
    "the next is gone": ("a", "b"),
    "all others are new": ("x", "b", "y", "z"),
    "others changed places": ("c", "b", "a"),
    "it goes to the top": ("b", "a", "c"),
    "it goes to the end": ("a", "c", "b"),
}


@pytest.mark.parametrize("after", CHANGES.values(), ids=CHANGES)
def test_what_a_reader_did_in_a_row_stays_in_that_row(place: Page, after: tuple[str, ...]) -> None:
    result = place.evaluate(MORPH, [rows("a", "b", "c"), rows(*after), USED])

    assert result["focused"] == "b"
    assert result["selected"] == "b\ninside b"
    assert result["opened"] == ["b"]
    assert result["typed"] == [[key, "typed" if key == "b" else ""] for key in after]
    assert result["reused"] == [key for key in after if key in "abc"]


def test_a_notice_that_comes_or_goes_leaves_what_is_below_it(place: Page) -> None:
    table = "\n<div><details><summary>a</summary></details></div>\n"
    act = "part.querySelector('details').open = true"

    comes = place.evaluate(MORPH, [table, f"\n<p>Take care.</p>{table}", act])
    goes = place.evaluate(MORPH, [f"\n<p>Take care.</p>{table}", table, act])

    assert comes["opened"] == goes["opened"] == ["a"]


def test_a_height_that_a_person_dragged_a_text_area_to_stays(place: Page) -> None:
    area = "<textarea class='input'></textarea>"
    dragged = "part.querySelector('textarea').style.height = '300px'"

    place.evaluate(MORPH, [area, f"<p>Too long.</p>{area.replace('>', ' aria-invalid=true>', 1)}", dragged])

    assert place.locator("textarea").evaluate("(area) => [area.style.height, area.ariaInvalid]") == ["300px", "true"]


@pytest.mark.slow
def test_a_part_becomes_exactly_its_newer_drawing(place: Page) -> None:
    dice = random.Random(7)

    def drawn(depth: int) -> str:
        parts = []
        for key in dice.sample("abcdefg", dice.randrange(6)):
            name, gap = dice.choice(["div", "div", "p", "b"]), dice.choice(["", "\n", "text "])
            mark = dice.choice([f"data-key={key}", f"data-key={key}", f"id={key}", ""])
            inside = drawn(depth - 1) if depth and name == "div" else dice.choice(["", "x", "y"])
            parts.append(f"{gap}<{name} {mark} title={dice.randrange(3)}>{inside}</{name}>")
        return "".join(parts) + dice.choice(["", "\n"])

    for _ in range(300):
        before, after = drawn(2), drawn(2)

        result = place.evaluate(MORPH, [before, after, SELECT])

        assert result["isSame"], (before, after)
