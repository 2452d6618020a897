"""Lanes in a real browser: live, whole over a lost connection, wide and narrow, with and without scripts."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, Wires, violations, work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until
from tests.support.tiers import rounds

_number = itertools.count(1)
CARDS = """() => [...document.querySelectorAll('.rows > .lane-event')].map((one) =>
  [one.dataset.seq, one.dataset.sender, one.dataset.at, one.dataset.far, one.dataset.way, one.innerText])"""
VIEW = "?view=lanes"


@pytest.fixture
def lanes(page: Page, server: Server, token: str) -> Transcript:
    """A conversation with a few voices."""
    made = Transcript(page, server, token, f"lanes-{next(_number)}")
    made.publish({"type": "message", "sender": "Rosa", "recipient": "agent:Desk", "content": "Is anybody there?"})
    made.say("Somebody is at the desk.")
    made.stream(event="agent.handoff", from_agent="Desk", to_agent="Triage", reason="an incident")
    return made


def heads(page: Page) -> list[str]:
    """Return whose lanes there are, in order."""
    return page.locator(".lane-head .name").all_inner_texts()


@pytest.mark.slow
def test_a_card_shows_its_number_under_the_pointer_in_place_of_its_time(lanes: Transcript) -> None:
    lanes.open(VIEW)
    card = lanes.row(2)
    top = """(row) => {
      const box = row.querySelector(".seq").getBoundingClientRect();
      return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).localName;
    }"""
    assert card.evaluate(top) == "time"

    card.locator(".lane-card").hover()

    assert card.evaluate(top) == "a"
    expect(card.locator(".seq")).to_have_text("2")


@pytest.mark.thorough
def test_events_come_live_and_none_is_lost_or_doubled_over_a_cut_connection(lanes: Transcript) -> None:
    wires = Wires(lanes.page)
    lanes.open(VIEW)
    lanes.call(status="start")
    lanes.stream(event="token", agent="Dialogue", text="A crew ", index=0)
    lanes.stream(event="token", agent="Dialogue", text="is ", index=1)
    lanes.sees()
    card = lanes.row(5)
    expect(card.locator("[data-live-text]")).to_have_text("A crew is ")
    expect(card).to_contain_text("answering")

    wires.cut()
    expect(lanes.strip).to_contain_text("Showing events up to 6; reconnecting.")
    lanes.call(status="success", result_summary="found", duration_ms=412)
    lanes.stream(event="token", agent="Dialogue", text="coming", index=2)
    lanes.say("from a new voice", sender="agent:Insights")
    wires.mend()
    lanes.sees()
    expect(lanes.strip).to_contain_text("3 events restored, 7 to 9. Nothing is missing.")
    lanes.stream(event="output", agent="Dialogue", text="A crew is coming.")
    lanes.say("the last one", sender="agent:Insights")
    lanes.sees()

    live, names = lanes.page.evaluate(CARDS), heads(lanes.page)
    lanes.open(VIEW)
    assert live == lanes.page.evaluate(CARDS)
    assert [int(card[0]) for card in live] == [1, 2, 3, 4, 9, 10, 11]
    assert names == heads(lanes.page) == ["Rosa", "Desk", "Dialogue", "Triage", "Insights", "Tools"]


SIDES = "(one) => { const box = one.getBoundingClientRect(); return [box.left, box.right]; }"


@pytest.mark.slow
def test_a_card_stands_beside_its_lane_and_an_arrow_reaches_from_head_to_head(lanes: Transcript) -> None:
    lanes.call(status="start")
    lanes.open(VIEW)
    head = [sum(head_element.evaluate(SIDES)) / 2 for head_element in lanes.page.locator(".lane-head").all()]

    words, arrow = lanes.row(3).locator(".lane-card").evaluate(SIDES), lanes.row(3).locator(".arrow").evaluate(SIDES)
    card = lanes.row(4).locator(".lane-card").evaluate(SIDES)

    assert abs(arrow[0] - head[1]) < 2
    assert abs(arrow[1] - head[3]) < 2
    assert arrow[0] < words[0] < words[1] < arrow[1]
    assert 0 < card[0] - head[3] < 20


PLACES = (
    "() => [...document.querySelectorAll('.lane-event')].map(({ dataset }) => [dataset.seq, dataset.at, dataset.far])"
)


@pytest.mark.slow
def test_calls_point_at_the_lane_of_their_tool_which_stays_last_as_voices_come(lanes: Transcript) -> None:
    lanes.call(status="start")
    lanes.open(VIEW)
    assert heads(lanes.page) == ["Rosa", "Desk", "Dialogue", "Triage", "Tools"]
    expect(lanes.row(4)).to_have_attribute("data-far", "5")
    arrow, tools = lanes.row(4).locator(".arrow").evaluate(SIDES), lanes.page.locator(".lane-head").last.evaluate(SIDES)
    assert abs(arrow[1] - sum(tools) / 2) < 2
    expect(lanes.row(4).locator(".activity")).to_have_count(2)  # the agent's, the tool's

    lanes.say("from a new voice", sender="agent:Insights")
    lanes.call(call_id="c2", status="start", mcp_server="gis")
    lanes.call(status="success", output="found", duration_ms=412)
    lanes.sees()

    live, names = lanes.page.evaluate(PLACES), heads(lanes.page)
    assert names == ["Rosa", "Desk", "Dialogue", "Triage", "Insights", "Tools", "gis"]
    assert live[3:] == [["4", "4", "6"], ["5", "5", "4"], ["6", "4", "7"]]
    expect(lanes.row(4).locator(".activity")).to_have_count(2)
    back = "(arrow) => getComputedStyle(arrow, '::before').content"
    assert [lanes.row(seq).locator(".arrow").evaluate(back) for seq in (4, 6)] == ['""', "none"]
    lanes.open(VIEW)
    assert (lanes.page.evaluate(PLACES), heads(lanes.page)) == (live, names)


@pytest.mark.thorough
def test_a_screen_shows_fifteen_events_and_more(lanes: Transcript) -> None:
    for n in range(40):
        lanes.say(f"A line of some words, the {n}th", sender=f"agent:Worker {n % 5}")
    lanes.page.set_viewport_size({"width": 1440, "height": 900})
    lanes.open(VIEW)

    seen = lanes.page.evaluate(IN_VIEW)

    assert seen >= 18


IN_VIEW = """() => {
  const view = document.querySelector(".transcript").getBoundingClientRect();
  const top = document.querySelector("lane-heads").getBoundingClientRect().bottom;
  return [...document.querySelectorAll(".lane-event")].map((one) => one.getBoundingClientRect())
    .filter((box) => box.top >= top - 1 && box.bottom <= view.bottom + 1).length;
}"""
BARS = """() => [...document.querySelectorAll(".lane-event")].map((one) =>
  [...one.querySelectorAll(".activity")].map((bar) => Number(bar.dataset.at)))"""


@pytest.mark.thorough
def test_an_output_and_the_message_that_says_the_same_are_one_row(lanes: Transcript) -> None:
    lanes.open(VIEW)
    lanes.stream(event="output", agent="Dialogue", text="It is filed.")
    lanes.sees()
    expect(lanes.page.locator(".lane-event", has_text="It is filed.")).to_have_attribute("data-seq", "4")
    lanes.say("It is filed.")
    lanes.sees()

    for _ in range(2):
        expect(lanes.page.locator(".lane-event", has_text="It is filed.")).to_have_count(1)
        expect(lanes.row(5)).to_have_attribute("data-way", "on")
        assert lanes.rows == [1, 2, 3, 5]
        lanes.open(VIEW)
    lanes.page.goto(f"/conversations/{lanes.key}/{VIEW}&event=4#e4")
    expect(lanes.row(5)).to_have_attribute("aria-current", "true")


@pytest.mark.slow
def test_bars_show_who_holds_a_run_live_and_after_a_reload(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('bars', events=10)")
    page.goto(f"/conversations/bars/{VIEW}")
    expect(page.locator(".activity").first).to_be_attached()
    bars = page.evaluate(BARS)

    assert bars[0] == []  # the question
    assert bars[2:4] == [[2], [2]]  # the first agent, from when its run starts
    assert bars[5:7] == [[3, 5], [3]]  # the second, from the handoff on, and the tool that it calls
    assert 3 in bars[-1]  # until the run ends


@pytest.mark.thorough
def test_reading_upwards_pauses_and_the_pill_leads_back(lanes: Transcript) -> None:
    lanes.say(*[f"line {n}" for n in range(62)])
    lanes.open(VIEW)
    lanes.wheel(-300)

    lanes.say("one more")
    lanes.sees()

    expect(lanes.pill).to_have_text("1 new from Dialogue")
    lanes.wheel(-20_000)
    until(lambda: lanes.row(1).count() == 1, what="the older page")
    assert lanes.rows == list(range(1, lanes.head + 1))
    lanes.pill.click()
    until(lambda: lanes.is_following, what="the tail")


IN_OWN_LANES = """() => {
  const heads = [...document.querySelectorAll(".lane-head")].map((head) => head.dataset.key);
  const view = document.querySelector(".transcript").getBoundingClientRect();
  const cards = [...document.querySelectorAll(".lane-event")].filter((card) => {
    const { top, bottom } = card.getBoundingClientRect();
    return top >= view.top && bottom <= view.bottom;
  });
  return cards.length > 5 && cards.every(({ dataset }) => heads[dataset.at - 1] === dataset.sender);
}"""


@pytest.mark.thorough
def test_with_many_voices_only_the_lanes_scroll_sideways_and_show_the_newest_card(lanes: Transcript) -> None:
    for n in range(30):
        lanes.say(f"word {n}", sender=f"agent:Worker {n} with {'a long name ' * 8}")
    lanes.open(VIEW)
    for n in range(30, 65):
        lanes.say(f"word {n}", sender=f"agent:Worker {n}")
    lanes.sees()

    until(lambda: lanes.page.evaluate(IN_OWN_LANES), what="lanes for those in view")
    expect(lanes.row(lanes.head).locator(".lane-card")).to_be_in_viewport(ratio=1)
    assert lanes.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert lanes.page.locator(".transcript").evaluate("(e) => e.scrollWidth - e.clientWidth") > 1000
    assert len(heads(lanes.page)) <= 40
    expect(lanes.page.locator(".lane-head").last).to_contain_text("others")
    widths = lanes.page.locator(".lane-head .name").evaluate_all("(all) => all.map((one) => one.offsetWidth)")
    assert min(widths) > 30


@pytest.mark.thorough
def test_lanes_are_folded_to_those_who_are_in_view_wherever_that_is(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('folded', events=1_000)")
    page.goto(f"/conversations/folded/{VIEW}")
    expect(page.locator("lane-overview svg")).to_be_visible()
    until(lambda: page.evaluate(IN_OWN_LANES), what="lanes at the tail")
    at_tail = heads(page)

    page.locator(".transcript").hover()
    for _ in range(6):
        page.mouse.wheel(0, -1500)

    until(lambda: heads(page) != at_tail and page.evaluate(IN_OWN_LANES), what="lanes of those above")
    assert len(heads(page)) < 40


# Scrolls up a few rows a frame, while there are rows to scroll to, through three pages; returns the most rows that the
# browser began to style and lay out in one frame.
NEW_ROWS_A_FRAME = """(pages) => new Promise((done) => {
  const [host, scroller] = ["live-transcript", ".transcript"].map((name) => document.querySelector(name));
  const firsts = new Set();
  const isRendered = (row) => row.firstElementChild.checkVisibility({ contentVisibilityAuto: true });
  let rendered = new Set();
  let most = 0;
  const frame = () => {
    const rows = [...scroller.querySelectorAll(".lane-event")].filter(isRendered);
    if (rendered.size) most = Math.max(most, rows.filter((row) => !rendered.has(row)).length);
    rendered = new Set(rows);
    if (firsts.add(host.dataset.first).size > pages && scroller.scrollTop < 2500) return done(most);
    if (scroller.scrollTop > 2500) scroller.scrollTop -= 120;
    return requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


@pytest.mark.slow
def test_scrolling_up_renders_a_few_rows_a_frame_never_a_page_of_them(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('scrolled', events=1_000)")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"/conversations/scrolled/{VIEW}")
    expect(page.locator("lane-overview svg")).to_be_visible()

    most = page.evaluate(NEW_ROWS_A_FRAME, rounds(1, 3))

    assert 0 < most <= 24


@pytest.mark.slow
def test_the_overview_leads_anywhere_by_press_drag_and_keys(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('strip', events=1_000)")
    page.goto(f"/conversations/strip/{VIEW}")
    strip = page.get_by_role("slider", name="Overview of the conversation")
    expect(strip.locator("svg")).to_be_visible()
    expect(strip).to_have_attribute("aria-valuenow", "1000")
    box = strip.bounding_box()
    assert box

    page.mouse.click(box["x"] + 20, box["y"] + box["height"] / 2)
    until(lambda: 450 < at_of(page) < 550, what="the middle")
    expect(page.locator("#e500")).to_be_attached()
    page.mouse.down()
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] * 0.8, steps=5)
    page.mouse.up()
    until(lambda: 750 < at_of(page) < 850, what="where it was dragged to")
    page.keyboard.press("Home")
    expect(page.locator("#e1")).to_be_in_viewport()
    until(lambda: at_of(page) < 60, what="the beginning")
    page.keyboard.press("PageDown")
    until(lambda: 100 < at_of(page) < 200, what="a tenth further")
    page.keyboard.press("End")
    expect(page.locator("#e1000")).to_be_in_viewport()


@pytest.mark.slow
def test_the_overview_marks_the_newest_row_to_its_end(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('ended', events=10)")
    page.goto(f"/conversations/ended/{VIEW}")
    strip = page.get_by_role("slider", name="Overview of the conversation")
    expect(strip).to_have_attribute("aria-valuetext", "Events 1 to 10 of 10")

    work(server, "from tests.support import toolcalls; t.log.append(toolcalls.call('ended', 1))")

    expect(strip).to_have_attribute("aria-valuetext", "Events 1 to 12 of 12")  # a call, and its end in the same row


@pytest.mark.thorough
def test_what_is_drawn_during_a_drag_does_not_move_the_mark_away(server: Server, page: Page) -> None:
    work(server, "from tests.support import large_talks; large_talks.write('dragged', events=1_000)")
    page.goto(f"/conversations/dragged/{VIEW}")
    strip = page.get_by_role("slider", name="Overview of the conversation")
    expect(strip).to_have_attribute("aria-valuenow", "1000")
    box = strip.bounding_box()
    assert box

    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.evaluate(
        "() => { document.dispatchEvent(new CustomEvent('page:drawn')); return new Promise((done) => "
        "requestAnimationFrame(() => requestAnimationFrame(done))); }"
    )
    assert 450 < at_of(page) < 550
    page.mouse.up()

    expect(page.locator("#e500")).to_be_attached()


def at_of(page: Page) -> int:
    """Return the last event in view, as the overview says it."""
    return int(page.locator("lane-overview").get_attribute("aria-valuenow") or 0)


@pytest.mark.thorough
def test_a_card_leads_into_the_transcript_and_a_key_leads_back(lanes: Transcript) -> None:
    lanes.open(VIEW)
    lanes.row(2).locator(".says a").click()
    expect(lanes.page.locator("#e2.event:not(.lane-event)")).to_have_attribute("aria-current", "true")

    lanes.page.keyboard.press("g")
    lanes.page.keyboard.press("l")

    expect(lanes.page.locator(".lane-event#e2")).to_be_visible()
    expect(lanes.page).to_have_url(f"{lanes.server.url}/conversations/{lanes.key}/?view=lanes&event=2#e2")


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_narrow_lanes_are_one_column(
    lanes: Transcript, scheme: Literal["light", "dark"], width: int
) -> None:
    lanes.call(status="start")
    lanes.stream(event="token", agent="Dialogue", text="مرحبا", index=0)
    lanes.page.emulate_media(color_scheme=scheme)
    lanes.page.set_viewport_size({"width": width, "height": 900})
    lanes.open(VIEW)

    assert violations(lanes.page) == []
    if width == 390:
        prove_one_column(lanes)


def prove_one_column(lanes: Transcript) -> None:
    """Narrow lanes are one column, in which each card says from whom to whom."""
    expect(lanes.row(1).locator(".ends .name")).to_be_in_viewport()
    expect(lanes.row(1).locator(".ends .to")).to_have_text("Desk")
    assert lanes.page.locator(".transcript").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


@pytest.mark.thorough
def test_lanes_read_well_without_scripts(lanes: Transcript, plain_page: Page) -> None:
    lanes.open(VIEW)
    plain_page.goto(f"/conversations/{lanes.key}/{VIEW}")

    assert heads(plain_page) == ["Rosa", "Desk", "Dialogue", "Triage"]
    expect(plain_page.locator("#e3 .lane-card")).to_be_visible()
    expect(plain_page.locator("#e3 .arrow")).to_be_visible()
    left = "(one) => one.getBoundingClientRect().left"
    assert plain_page.locator("#e1 .lane-card").evaluate(left) < plain_page.locator("#e2 .lane-card").evaluate(left)
