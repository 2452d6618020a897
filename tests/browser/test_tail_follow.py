"""`tail-follow` by itself: a reader's rows stay where they are, without the browser's own scroll anchoring."""

import pytest
from playwright.sync_api import Page

BEGIN = """async () => {
  const row = (_, n) => `<p id="e${n}" data-seq="${n}">${n}</p>`;
  const all = Array.from({ length: 41 }, row);
  const [first, second] = [all.slice(1, 21), all.slice(21)].map((part) => part.join(""));
  document.head.innerHTML = `<style>p { block-size: 50px; margin: 0 }
    .transcript { block-size: 300px; overflow: auto; overflow-anchor: none }</style>`;
  document.body.innerHTML = `<tail-follow><div class="transcript"><a>older</a>
    <div class="rows" id="above">${first}</div><div class="rows">${second}</div></div>
    <button class="pill"><span></span></button></tail-follow>`;
  await import("/static/js/tail-follow.js");
  document.querySelector(".transcript").scrollTop -= 400;
}"""
WHERE = "document.querySelector('#e30').getBoundingClientRect().top"
LEFT = """() => {
  const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".transcript");
  return scrollHeight - scrollTop - clientHeight;
}"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
CHANGES = {
    "a stretch above is laid out": "document.querySelector('#above').style.paddingBlockStart = '429px'",
    "a row above is opened": "document.querySelector('#e22').style.blockSize = '479px'",
    "an older page comes": """const page = document.createElement("div");
        page.className = "rows";
        page.innerHTML = '<p data-seq="0">0</p>';
        document.querySelector("#above").before(page)""",
    "an older page comes, and is laid out later": """const page = document.createElement("div");
        page.className = "rows";
        document.querySelector("#above").before(page);
        requestAnimationFrame(() => (page.style.blockSize = "4429px"))""",
    "the link to older pages goes": "document.querySelector('a').style.cssText = 'display: block; block-size: 70px'",
    "all rows are replaced": """const tail = document.querySelector("tail-follow");
        tail.beforeChange();
        const [above, rows] = document.querySelectorAll(".rows");
        above.remove();
        rows.innerHTML = rows.innerHTML;
        tail.afterChange()""",
}


@pytest.fixture
def reading(empty_page: Page) -> Page:
    """A page with 40 rows, of which a reader has scrolled up to one in the middle."""
    empty_page.evaluate(BEGIN)
    empty_page.evaluate(FRAMES)
    return empty_page


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changes_above_the_reader_moves_nothing_in_view(reading: Page, change: str) -> None:
    before = reading.evaluate(WHERE)
    assert 0 <= before <= 300

    reading.evaluate(f"() => {{ {change} }}")
    reading.evaluate(FRAMES)

    assert reading.evaluate(WHERE) == pytest.approx(before, abs=1)
    assert reading.locator("tail-follow[data-paused]").count() == 1


def test_a_scroll_at_the_same_time_moves_what_is_in_view_by_no_more(reading: Page) -> None:
    before = reading.evaluate(WHERE)

    scroll = "document.querySelector('.transcript').scrollTop -= 40"
    reading.evaluate(f"() => {{ {CHANGES['a row above is opened']}; {scroll} }}")
    reading.evaluate(FRAMES)

    assert reading.evaluate(WHERE) == pytest.approx(before + 40, abs=1)


def test_whoever_follows_stays_at_the_end_of_what_grows(reading: Page) -> None:
    reading.evaluate("() => document.querySelector('tail-follow').follow()")

    reading.evaluate("() => { document.querySelector('#above').style.paddingBlockStart = '429px' }")
    reading.evaluate(FRAMES)

    assert reading.evaluate(LEFT) == pytest.approx(0, abs=1)
