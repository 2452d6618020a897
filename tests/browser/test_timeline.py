"""The timeline of a conversation in a real browser: live, zoomed, by keyboard, large, narrow, without scripts."""

import itertools
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, violations, work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until

_number = itertools.count(1)
VIEW = "?view=timeline"
LARGE = "from tests.support import large_talks; print(large_talks.write('large', events=3_000))"


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    """A conversation with a message and a call that failed, open as a timeline."""
    made = Transcript(page, server, token, f"timeline-{next(_number)}")
    made.say("one")
    made.call(status="start")
    made.call(status="error", error="503", duration_ms=412)
    return opened(made)


def opened(talk: Transcript, query: str = "") -> Transcript:
    talk.page.goto(f"/conversations/{talk.key}/{VIEW}{query}")
    expect(talk.page.locator("conversation-timeline[data-live]")).to_be_visible()
    return talk


def rows(page: Page) -> Any:
    return page.locator(".timeline-rows .span")


def shown(page: Page) -> list[float]:
    """Return from where and how much of the scale is shown."""
    box = page.locator(".track").first.get_attribute("viewBox") or ""
    return [float(number) for number in box.split()][::2]


@pytest.mark.slow
def test_rows_come_live_and_what_is_chosen_stays(talk: Transcript) -> None:
    rows(talk.page).nth(0).click()
    expect(talk.page.locator("[data-picked]")).to_contain_text("Dialogue")

    talk.say("two", sender="agent:Insights")

    expect(rows(talk.page)).to_have_count(3)
    expect(rows(talk.page).nth(0)).to_have_attribute("aria-current", "true")
    expect(talk.page.locator(".waterfall [data-part]")).to_have_attribute("data-head", str(talk.head))


@pytest.mark.thorough
def test_the_chosen_event_is_the_same_in_every_view(talk: Transcript) -> None:
    talk.page.keyboard.press("k")
    expect(rows(talk.page).last).to_have_attribute("aria-current", "true")

    talk.page.get_by_role("link", name="Lanes").click()
    expect(talk.row(2)).to_have_attribute("aria-current", "true")
    talk.page.get_by_role("link", name="Timeline").click()
    expect(rows(talk.page).last).to_have_attribute("aria-current", "true")
    talk.page.get_by_role("link", name="Transcript").click()
    expect(talk.row(2)).to_have_attribute("aria-current", "true")


TICKS = "() => [...document.querySelectorAll('.ticks text')].map((tick) => [tick.getAttribute('x'), tick.textContent])"


@pytest.mark.slow
def test_the_axis_is_marked_by_scripts_as_the_server_did(talk: Transcript, plain_page: Page) -> None:
    plain_page.goto(f"/conversations/{talk.key}/{VIEW}")
    drawn = plain_page.evaluate(TICKS)
    assert drawn[0] == ["0.00%", "0 s"]

    assert talk.page.evaluate(TICKS) == drawn
    talk.page.keyboard.press("+")
    until(lambda: talk.page.evaluate(TICKS) != drawn, what="other marks")
    talk.page.keyboard.press("0")
    until(lambda: talk.page.evaluate(TICKS) == drawn, what="the first marks")


def test_it_is_zoomed_by_keys_buttons_the_wheel_and_a_drag(talk: Transcript) -> None:
    _, whole = shown(talk.page)

    talk.page.keyboard.press("+")
    assert shown(talk.page)[1] < whole
    before = shown(talk.page)[0]
    talk.page.keyboard.press("ArrowRight")
    assert shown(talk.page)[0] > before
    talk.page.get_by_role("button", name="All").click()
    assert shown(talk.page) == [0, whole]
    track = talk.page.locator(".track").first.bounding_box()
    assert track
    left, y = track["x"] + track["width"] / 4, track["y"] + 6
    talk.page.mouse.move(left, y)
    talk.page.keyboard.down("Control")
    talk.page.mouse.wheel(0, -100)
    talk.page.keyboard.up("Control")
    until(lambda: shown(talk.page)[1] < whole, what="the wheel's zoom")
    talk.page.keyboard.press("0")

    talk.page.mouse.down()
    talk.page.mouse.move(left + track["width"] / 4, y, steps=4)
    talk.page.mouse.up()

    start, width = shown(talk.page)
    assert start == pytest.approx(whole / 4, rel=0.02)
    assert width == pytest.approx(whole / 4, rel=0.02)


@pytest.mark.thorough
def test_failures_alone_are_an_address(talk: Transcript) -> None:
    talk.page.get_by_role("link", name="Failures only").click()

    expect(rows(talk.page)).to_have_count(1)
    expect(rows(talk.page)).to_have_attribute("data-state", "failed")
    talk.say("more")
    expect(talk.page.locator(".waterfall [data-part]")).to_have_attribute("data-head", str(talk.head))
    expect(rows(talk.page)).to_have_count(1)


@pytest.mark.thorough
def test_of_a_large_conversation_any_row_is_scrolled_to(server: Server, page: Page) -> None:
    work(server, LARGE)
    page.goto(f"/conversations/large/{VIEW}")
    expect(page.locator("conversation-timeline[data-live]")).to_be_visible()
    expect(page.locator('[data-number="1799"]')).to_be_in_viewport()
    scroller = page.locator(".waterfall-scroll")

    scroller.evaluate("(one) => { one.scrollTop = one.scrollHeight / 2; }")
    expect(page.locator('[data-number="905"]')).to_be_visible()
    middle = page.locator('[data-number="905"]').bounding_box()
    scroller.evaluate("(one) => { one.scrollTop = 0; }")
    expect(page.locator('[data-number="0"]')).to_be_in_viewport()
    page.keyboard.press("End")
    expect(page.locator('[data-number="1799"]')).to_be_in_viewport()

    assert middle
    assert abs(middle["y"] - 500) < 400
    assert page.locator(".timeline-rows > li").count() == 120


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_is_too_wide(
    talk: Transcript, scheme: Literal["light", "dark"], width: int
) -> None:
    talk.say("one more", sender=f"agent:{'long name ' * 15}")
    talk.call(name="t" * 150, call_id="c2", status="start")
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": width, "height": 900})
    opened(talk)

    assert violations(talk.page) == []
    assert talk.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert talk.page.locator(".waterfall-scroll").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


@pytest.mark.thorough
def test_without_scripts_rows_are_links(talk: Transcript, plain_page: Page) -> None:
    plain_page.goto(f"/conversations/{talk.key}/{VIEW}")

    rows(plain_page).first.click()

    expect(plain_page.locator("#e1")).to_be_visible()


LABELS_OF = """async (scale) => {
  const { TimelineScale } = await import("/static/js/timeline-scale.js");
  const drawn = new TimelineScale();
  drawn.read({ dataset: { width: "1000000", scale: JSON.stringify(scale) } });
  drawn.all();
  return drawn.ticks().map(([, label]) => label);
}"""


def test_the_end_of_a_pause_is_rounded_before_it_is_split(empty_page: Page) -> None:
    begin, end = (0, 1_000, 0, 400_000, False), (119_960, 120_960, 600_000, 1_000_000, False)

    labels = empty_page.evaluate(LABELS_OF, [begin, (1_000, 119_960, 400_000, 600_000, True), end])

    assert "2 min" in labels
    assert not [label for label in labels if "60" in label]
