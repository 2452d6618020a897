"""The head of a conversation: one row, the state in words, room for the transcript, a composer that unfolds."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from tests.browser import in_every_look, sign_in, work
from tests.support.live import Server, until
from tests.support.tiers import variants

ROOM = """() => {
  const height = (found) => document.querySelector(found).getBoundingClientRect().height;
  return [height(".transcript") / innerHeight, height(".conversation-head"),
    document.documentElement.scrollWidth - innerWidth];
}"""
SIZES = {  # the window, how much of it the transcript has at least, and how high the head may be
    "wide": (1440, 900, 0.75, 48),
    "phone": (390, 844, 0.65, 80),
    "200 % zoom": (720, 450, 0.5, 48),
}

LONG_TITLE = """
from conversations.models import Conversation
title = "A water pipe burst on Elm Street and the road is flooded up to the bridge."
Conversation.objects.filter(key="asking").update(title=title)
"""
SQUEEZED = """() => [...document.querySelectorAll(".conversation-head :is(button, .switch label, .live-state)")]
  .filter((control) => control.checkVisibility())
  .filter((box) => box.scrollHeight > Math.max(box.clientHeight, 36) || box.scrollWidth > box.clientWidth + 1)
  .map(({ textContent, offsetWidth, offsetHeight }) => `${textContent.trim()} ${offsetWidth}x${offsetHeight}`)"""

CUT = "(boxes) => boxes.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent.trim())"


@pytest.fixture(scope="module")
def asking(served: Server) -> str:
    """A conversation that waits for an approval."""
    work(served, "t.ask(o, 'asking')")
    return "/conversations/asking/"


def opened(page: Page, address: str) -> Page:
    page.goto(address)
    expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    return page


@pytest.mark.slow
def test_the_transcript_has_the_room(window: Page, asking: str) -> None:
    opened(window, asking)

    for size, (width, height, least, most) in SIZES.items():
        window.set_viewport_size(ViewportSize(width=width, height=height))
        share, head, too_wide = window.evaluate(ROOM)
        assert share >= least, size
        assert head <= most, size
        assert too_wide <= 0, size


COVERED = """(button) => {
  const { left, right, top, bottom } = button.getBoundingClientRect();
  const corners = [[left + 3, top - 2], [right - 3, top - 2], [left + 3, bottom + 1], [right - 3, bottom + 1]];
  return corners.filter(([x, y]) => !document.elementFromPoint(x, y)?.closest(".approval"));
}"""


@pytest.mark.slow
def test_a_low_window_shows_the_buttons_of_a_request_whole(window: Page, asking: str) -> None:
    window.set_viewport_size(ViewportSize(width=720, height=450))
    opened(window, asking)
    approve, reason = (
        window.get_by_role("button", name="Approve", exact=True),
        window.get_by_label("Note for the record"),
    )
    assert approve.evaluate(COVERED) == []  # on opening

    for field in (reason, approve):
        window.locator(".transcript").evaluate("(scroller) => scroller.scrollTo(0, 0)")
        field.focus()
        assert field.evaluate(COVERED) == []


@pytest.mark.parametrize("width", variants([1280, 1440, 1600]))
def test_no_control_of_a_wide_head_is_squeezed(served: Server, window: Page, asking: str, width: int) -> None:
    work(served, LONG_TITLE)
    window.set_viewport_size(ViewportSize(width=width, height=800))

    assert opened(window, asking).evaluate(SQUEEZED) == []


TITLED = "(title) => { title.textContent = 'A street lamp fell on Oak Road 7'; return title.offsetWidth; }"
PLACES = """() => [...document.querySelectorAll(".conversation-head :is(.verbs > button, .switch, .button)")]
  .filter((control) => control.checkVisibility() && !["stop", "abort"].includes(control.value))
  .map((control) => { const { left, right } = control.getBoundingClientRect(); return [left, right]; })"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [700, 1024, 1280, 1440, 1700])
def test_no_control_of_a_head_moves_as_the_state_changes(served: Server, window: Page, width: int) -> None:
    key = f"moving-{width}"
    work(served, f"t.say(o, {key!r}, content='A street lamp fell on Oak Road 7 and hurt a dog', client_id={key!r})")
    window.set_viewport_size({"width": width, "height": 800})
    opened(window, f"/conversations/{key}/")
    idle = window.evaluate(PLACES)

    work(served, f"t.ask(o, {key!r})")
    expect(window.locator("[data-standing]")).to_contain_text("Waiting for you")
    expect(window.locator(".conversation-head [value=stop]")).to_have_count(1)
    waiting = window.evaluate(PLACES)
    title = window.locator(".conversation-head h1").evaluate(TITLED)
    window.get_by_role("button", name="Pause").click()
    expect(window.get_by_role("button", name="Resume")).to_be_visible()
    paused = window.evaluate(PLACES)
    window.get_by_role("button", name="Resume").click()
    expect(window.get_by_role("button", name="Pause")).to_be_visible()

    assert waiting == idle
    assert paused == idle
    if width >= 1280:
        assert title >= 200


def test_a_state_with_a_long_name_ends_in_an_ellipsis(served: Server, window: Page, asking: str) -> None:
    window.set_viewport_size({"width": 1280, "height": 800})
    opened(window, asking)
    window.locator(".live-state .clip").first.evaluate(
        "(words) => { words.textContent = 'Sehr-langer-Name'.repeat(9) }"
    )

    over = "(box) => box.querySelector('.clip').getBoundingClientRect().right - box.getBoundingClientRect().right"
    assert window.locator(".live-state").evaluate(over) <= 1


def test_who_waits_is_never_cut_however_long_the_title_is(served: Server, window: Page, asking: str) -> None:
    work(served, LONG_TITLE)
    opened(window, asking)

    for width in (720, 1100):  # 200 % zoom, a small laptop
        window.set_viewport_size({"width": width, "height": 800})
        assert window.evaluate(SQUEEZED) == []


@pytest.mark.slow
def test_a_long_title_gives_way_to_all_that_is_true_of_a_conversation(
    served: Server, window: Page, asking: str
) -> None:
    work(served, LONG_TITLE)
    window.set_viewport_size({"width": 1440, "height": 900})
    opened(window, asking).get_by_role("button", name="Pause").click()
    expect(window.locator(".live-state > .state")).to_have_count(2)
    window.locator(".live-state time").evaluate_all("(ages) => ages.forEach((age) => age.textContent = '26 min')")

    assert window.locator(".live-state .clip").evaluate_all(CUT) == []
    window.set_viewport_size({"width": 720, "height": 450})  # 200 % zoom
    assert window.locator(".live-state .clip").first.evaluate("(words) => words.scrollWidth - words.clientWidth") <= 1
    assert window.locator(".conversation-head h1").evaluate("(title) => title.offsetWidth") >= 128

    window.set_viewport_size({"width": 1440, "height": 900})
    window.get_by_role("button", name="Resume").click()
    expect(window.locator(".live-state > .state")).to_have_count(1)


def test_the_head_says_who_waits_for_whom_since_when(window: Page, asking: str) -> None:
    opened(window, asking)

    expect(window.locator("[data-standing]")).to_have_text(re.compile(r"^\s*Waiting for you, (now|\d+ (s|min))\s*$"))
    expect(window.get_by_role("navigation", name="View").get_by_role("link", name="Transcript")).to_have_attribute(
        "aria-current", "page"
    )


@pytest.mark.slow
@pytest.mark.parametrize("view", ["lanes", "timeline", "graph"])
def test_the_state_and_the_key_a_lead_to_the_request_from_every_view(window: Page, asking: str, view: str) -> None:
    opened(window, f"{asking}?view={view}")
    window.locator("[data-standing]").get_by_role("link", name="Waiting for you").click()
    expect(window.locator(".approval:has(decision-form)")).to_be_focused()

    opened(window, f"{asking}?view={view}")
    window.keyboard.press("a")
    expect(window.locator(".approval:has(decision-form)")).to_be_focused()


@pytest.mark.slow
def test_a_request_opened_by_its_link_does_not_repeat_its_arguments(window: Page, asking: str) -> None:
    link = opened(window, asking).locator("[data-standing]").get_by_role("link", name="Waiting for you")
    opened(window, f"{asking}{link.get_attribute('href')}")

    row = window.locator('.transcript [aria-current="true"]:has(decision-form)')
    expect(row).to_have_count(1)
    expect(row.locator("details.tool")).not_to_have_attribute("open", "")


@pytest.mark.thorough
def test_a_viewer_is_told_that_it_waits_and_has_no_verbs(chromium: Browser, served: Server, asking: str) -> None:
    context = chromium.new_context(base_url=served.url)
    try:
        page = viewer(served, context)
        opened(page, asking)
        expect(page.locator("[data-standing]")).to_contain_text("Waiting for approval, ")
        expect(page.locator(".conversation-head").get_by_role("button", name="Pause")).to_have_count(0)
    finally:
        context.close()


def viewer(served: Server, context: BrowserContext) -> Page:
    sign_in(served, context, "vera", "viewer")
    return context.new_page()


@pytest.mark.slow
def test_a_narrow_head_folds_what_it_has_no_room_for(window: Page, asking: str) -> None:
    window.set_viewport_size({"width": 700, "height": 800})
    opened(window, asking)
    stop, steps = window.get_by_role("button", name="Stop", exact=True), window.get_by_role("radio", name="Steps")
    expect(stop).to_be_hidden()

    window.get_by_role("button", name="More", exact=True).press("Enter")
    expect(stop).to_be_visible()
    steps.check(force=True)
    window.keyboard.press("Escape")

    expect(stop).to_be_hidden()
    expect(window.locator(".transcript")).to_have_attribute("data-detail", "steps")
    expect(window.get_by_role("button", name="Pause")).to_be_visible()


@pytest.mark.slow
def test_the_composer_unfolds_for_a_writer_and_moves_nothing_under_a_press(window: Page, asking: str) -> None:
    opened(window, asking)
    recipient, field = window.locator("message-composer .to"), window.get_by_role("textbox", name="Message", exact=True)
    expect(recipient).to_be_hidden()

    window.keyboard.press("m")
    expect(recipient).to_be_visible()
    field.fill("a thought")
    window.locator(".conversation-head h1").click()
    expect(recipient).to_be_visible()  # there are words in it
    field.fill("")
    row = window.locator(".transcript .event").last
    box = row.bounding_box()
    assert box
    window.mouse.move(box["x"] + 300, box["y"] + 8)
    window.mouse.down()
    assert row.bounding_box() == box
    window.mouse.up()

    expect(recipient).to_be_hidden()
    expect(row).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_the_panel_leads_with_the_run_and_folds_ids(window: Page, asking: str) -> None:
    window.set_viewport_size({"width": 1440, "height": 900})
    panel = opened(window, asking).locator("conversation-panel")

    expect(panel.locator("h2").first).to_contain_text("Runs")
    expect(panel.get_by_text("Chain hash")).to_be_hidden()
    panel.get_by_text("Record and IDs").click()
    expect(panel.get_by_text("Chain hash")).to_be_visible()


@pytest.mark.thorough
def test_verbs_on_an_event_are_whole_beside_a_large_number(window: Page, asking: str) -> None:
    window.set_viewport_size({"width": 1440, "height": 900})
    head = opened(window, f"{asking}?event=1").locator("[data-picked] h2")
    head.locator(".code").evaluate("(number) => number.textContent = '1234567'")

    heights = head.locator(":scope > *").evaluate_all("(parts) => parts.map((part) => part.offsetHeight)")

    assert len(heights) == 4
    assert max(heights) < 24, "one line each"


@pytest.mark.slow
def test_every_look_of_it(window: Page, asking: str) -> None:
    faults: dict[str, Any] = in_every_look(opened(window, asking), "head", is_part_of_another=True)
    window.get_by_role("textbox", name="Message", exact=True).focus()

    assert faults | in_every_look(window, "writing") == {}


@pytest.mark.slow
def test_the_palette_offers_what_the_page_can_do(window: Page, asking: str) -> None:
    options = window.get_by_role("option")
    opened(window, asking).keyboard.press("Control+k")
    expect(options.first).to_contain_text("Go to the request that waits")
    window.keyboard.type("pau")
    expect(options.first.locator("kbd")).to_have_text("p")
    window.keyboard.press("Enter")
    expect(window.get_by_role("button", name="Resume")).to_be_visible()

    window.keyboard.press("Control+k")
    window.keyboard.type("resume")
    window.keyboard.press("Enter")
    expect(window.get_by_role("button", name="Pause")).to_be_visible()

    window.keyboard.press("Control+k")
    window.keyboard.type("#1")
    expect(options.first).to_contain_text("Event 1 of this conversation")
    window.keyboard.press("Enter")
    expect(window.locator("#e1")).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_the_palette_begins_a_conversation_and_finds_events(served: Server, window: Page) -> None:
    work(served, "t.say(o, 'zeppelin', content='A zeppelin is stuck on the roof', client_id='1')")
    until(lambda: window.request.get("/api/v1/search?q=zeppelin").json()["items"], what="the event to be searched")
    opened(window, "/").keyboard.press("Control+k")
    window.keyboard.type("new conv")
    window.keyboard.press("Enter")
    expect(window.get_by_role("textbox", name="Message")).to_be_focused()

    window.keyboard.press("Control+k")
    window.keyboard.type("zeppelin")
    window.get_by_role("group", name="Events").get_by_role("option").first.click()

    window.wait_for_url("**/conversations/zeppelin/?event=**")
