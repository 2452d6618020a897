"""The graph of a conversation in a real browser: live, wide and narrow, with and without scripts."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, violations, work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until
from tests.support.tiers import variants

_number = itertools.count(1)


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    """A conversation in which two agents spoke, open as a graph."""
    made = Transcript(page, server, token, f"graph-{next(_number)}")
    made.say("one", "two")
    made.call(status="start")
    page.goto(f"/conversations/{made.key}/?view=graph")
    expect(page.locator("conversation-graph:defined")).to_be_visible()
    return made


@pytest.mark.thorough
def test_numbers_and_new_voices_come_live(talk: Transcript) -> None:
    talk.say("three")
    talk.say("from somebody new", sender="agent:Insights")

    expect(talk.page.locator(".times", has_text="Dialogue to Triage, 3 times")).to_be_attached()
    expect(talk.page.locator(".graph tbody tr", has_text="Insights")).to_be_visible()
    expect(talk.page.locator(".graph [data-part]")).to_have_attribute("data-head", str(talk.head))


BOXES = """() => [...document.querySelectorAll(".graph-scroll .voice > path, .graph-scroll .times > rect")]
  .map((one) => one.getBoundingClientRect()).map(({ left, top, right, bottom }) => [left, top, right, bottom])"""


def prove_nothing_overlaps(page: Page) -> None:
    """No participant, tool or number lies over another, as the browser draws them."""
    boxes = page.evaluate(BOXES)
    assert len(boxes) > 3
    for (left, top, right, bottom), other in itertools.combinations(boxes, 2):
        assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def size(page: Page) -> float:
    """Return how large the picture is drawn, 1 being its own size."""
    return float(page.locator(".graph-scroll .picture").evaluate("(picture) => picture.getScreenCTM().a"))


DRAWN = """() => [...document.querySelectorAll(".graph-scroll .voice > path")].map((one) => one.getBoundingClientRect())
  .reduce(([left, top, right, bottom], box) => [Math.min(left, box.left), Math.min(top, box.top),
    Math.max(right, box.right), Math.max(bottom, box.bottom)], [Infinity, Infinity, 0, 0])"""


def prove_it_fills_its_room(page: Page) -> None:
    """The room reaches from the head to the table, and the picture is as large as it has room for, up to 1.6 times."""
    room, box = page.locator(".graph-scroll").bounding_box(), page.evaluate(DRAWN)
    view, table = page.locator(".graph").bounding_box(), page.locator(".graph .table").bounding_box()
    assert room
    assert view
    assert table
    assert room["height"] > 0.4 * view["height"]
    assert table["y"] - room["y"] - room["height"] < 40
    assert room["x"] <= box[0]
    assert room["y"] <= box[1]
    assert box[2] <= room["x"] + room["width"] + 1
    share = max((box[2] - box[0]) / room["width"], (box[3] - box[1]) / room["height"])
    assert share > 0.8 or size(page) > 1.55


def test_nothing_overlaps_as_the_browser_draws_it(talk: Transcript) -> None:
    ends = [(f"agent:Worker {n % 5}", f"agent:Worker {(n * 3 + 1) % 5}") for n in range(12)]
    for sender, recipient in [*ends, ("agent:Worker 0", f"chat:{talk.key}")]:
        talk.publish({"type": "message", "sender": sender, "recipient": recipient, "content": "hello"})
    expect(talk.page.locator(".graph .voice", has_text="Worker 4")).to_be_attached()

    expect(talk.page.locator(".graph .voice", has_text="everyone")).to_contain_text("1 to everyone")
    prove_nothing_overlaps(talk.page)
    expect(talk.page.locator(".graph tbody tr", has_text="everyone")).to_have_count(1)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", variants(["light", "dark"]))
@pytest.mark.parametrize("others", [1, 6])
def test_it_fills_the_room_it_has_and_stays_legible_as_it_grows(
    talk: Transcript, others: int, scheme: Literal["light", "dark"]
) -> None:
    for n in range(others):
        talk.publish({"type": "message", "sender": "agent:Hub", "recipient": f"agent:W{n}", "content": "hello"})
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": 1440, "height": 900})
    expect(talk.page.locator(".graph .voice", has_text=f"W{others - 1}")).to_be_attached()

    prove_it_fills_its_room(talk.page)
    prove_nothing_overlaps(talk.page)
    before = size(talk.page)
    talk.page.keyboard.press("+")
    assert size(talk.page) == pytest.approx(1.25 * before, rel=0.02)
    talk.page.keyboard.press("0")
    prove_it_fills_its_room(talk.page)

    talk.page.set_viewport_size({"width": 390, "height": 844})
    talk.page.reload()
    prove_nothing_overlaps(talk.page)
    assert size(talk.page) >= 0.59
    scrolls = "(e) => [e.scrollHeight - e.clientHeight, getComputedStyle(e).overflowX]"
    assert talk.page.locator(".graph-scroll").evaluate(scrolls) == [0, "auto"]


@pytest.mark.thorough
def test_it_is_zoomed_by_keys_buttons_and_the_wheel_and_moved_by_a_drag(talk: Transcript) -> None:
    page, whole = talk.page, size(talk.page)

    page.keyboard.press("+")
    assert size(page) > whole
    page.keyboard.press("0")
    assert size(page) == whole
    page.get_by_role("button", name="Zoom in").click()
    assert size(page) > whole
    page.get_by_role("button", name="Fit").click()
    page.locator(".graph-scroll").hover()
    page.keyboard.down("Control")
    for _ in range(4):
        page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    until(lambda: size(page) > 2 * whole, what="the wheel's zoom")

    box = page.locator(".graph-scroll").bounding_box()
    assert box
    before = page.locator(".graph-scroll").evaluate("(one) => one.scrollLeft")
    page.mouse.move(box["x"] + 200, box["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 12, steps=4)
    page.mouse.up()
    assert page.locator(".graph-scroll").evaluate("(one) => one.scrollLeft") == before + 80


@pytest.mark.slow
def test_the_selected_event_is_the_same_as_in_the_other_views(talk: Transcript) -> None:
    page = talk.page
    page.locator(".times", has_text="Dialogue to Triage").locator("rect").click()
    expect(page.locator("[data-picked]")).to_contain_text("agent:Triage")
    expect(page.locator(".graph tbody [aria-current]")).to_have_attribute("data-seq", "2")
    talk.say("three")
    expect(page.locator(".graph [data-part]")).to_have_attribute("data-head", "4")
    expect(page.locator(".graph tbody [aria-current]")).to_have_attribute("data-seq", "2")

    page.get_by_role("link", name="Lanes").click()
    expect(talk.row(2)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    page.get_by_role("link", name="Graph").click()

    expect(page.locator(".graph tbody [aria-current]")).to_have_attribute("data-seq", "1")
    expect(page.locator(".times[aria-current]")).to_have_attribute("data-seq", "1")
    expect(page.locator("[data-picked]")).to_contain_text("agent:Triage")


@pytest.mark.thorough
def test_of_two_hundred_the_most_active_are_drawn_and_all_open_and_are_found(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('crowd', events=2_000)")
    page.goto("/conversations/crowd/?view=graph")
    expect(page.locator("conversation-graph[data-live]")).to_be_visible()
    expect(page.locator(".graph .voice")).to_have_count(24)
    prove_nothing_overlaps(page)

    page.get_by_role("link", name="and 188 more").click()
    expect(page.locator(".graph .voice")).to_have_count(212)
    page.get_by_role("searchbox").fill("citizen-77")

    expect(page.locator(".voice[data-found]")).to_be_in_viewport()
    prove_nothing_overlaps(page)


@pytest.mark.thorough
def test_a_key_leads_to_the_lanes_and_another_back(talk: Transcript) -> None:
    talk.page.keyboard.press("g")
    talk.page.keyboard.press("l")
    expect(talk.page.locator("live-transcript:defined")).to_be_visible()

    talk.page.keyboard.press("g")
    talk.page.keyboard.press("r")

    expect(talk.page.locator(".graph-scroll .picture")).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_only_the_picture_scrolls_sideways(
    talk: Transcript, scheme: Literal["light", "dark"], width: int
) -> None:
    talk.say("one more", sender=f"agent:{'long name ' * 15}")
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": width, "height": 900})
    talk.page.reload()

    assert violations(talk.page) == []
    assert talk.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert talk.page.locator(".graph").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


@pytest.mark.thorough
def test_it_reads_well_without_scripts(talk: Transcript, plain_page: Page) -> None:
    plain_page.goto(f"/conversations/{talk.key}/?view=graph")

    expect(plain_page.locator(".graph tbody tr")).to_have_count(2)
    expect(plain_page.locator(".graph-scroll .picture")).to_be_visible()
