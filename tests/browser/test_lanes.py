"""Lanes in a real browser: live, whole over a lost connection, wide and narrow, with and without scripts."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser import LOOKS, violations
from tests.browser.transcript import Transcript
from tests.support.live import Server, until

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


class Wires:
    """The page's sockets, which go to the server until they are cut."""

    def __init__(self, page: Page) -> None:
        self.open: list[WebSocketRoute] = []
        self.is_cut = False
        page.route_web_socket("**/ws/", self._take)

    def _take(self, wire: WebSocketRoute) -> None:
        if self.is_cut:
            wire.close()
            return
        wire.connect_to_server()
        self.open.append(wire)

    def cut(self) -> None:
        """End those that are open, and let none through."""
        self.is_cut = True
        while self.open:
            self.open.pop().close()

    def mend(self) -> None:
        """Let the next one through."""
        self.is_cut = False


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
    assert names == heads(lanes.page) == ["Rosa", "Desk", "Dialogue", "Triage", "Insights"]


def test_a_card_stands_under_its_head_and_its_arrow_ends_under_the_recipients(lanes: Transcript) -> None:
    lanes.open(VIEW)
    middle = "(one) => { const box = one.getBoundingClientRect(); return box.left + box.width / 2; }"
    head = [one.evaluate(middle) for one in lanes.page.locator(".lane-head").all()]
    card, reach = lanes.row(3).locator(".lane-card"), lanes.row(3).locator(".reach")

    ends = reach.evaluate("(one) => { const box = one.getBoundingClientRect(); return [box.left, box.right]; }")

    assert abs(card.evaluate(middle) - head[1]) < 2
    assert abs(ends[0] - head[1]) < 2
    assert abs(ends[1] - head[3]) < 2


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


def test_with_many_voices_only_the_lanes_scroll_sideways_and_show_the_newest_card(lanes: Transcript) -> None:
    for n in range(30):
        lanes.say(f"word {n}", sender=f"agent:Worker {n} with {'a long name ' * 8}")
    lanes.open(VIEW)
    for n in range(30, 45):
        lanes.say(f"word {n}", sender=f"agent:Worker {n}")
    lanes.sees()

    expect(lanes.row(lanes.head).locator(".lane-card")).to_be_in_viewport(ratio=1)
    assert lanes.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert lanes.page.locator(".transcript").evaluate("(e) => e.scrollWidth - e.clientWidth") > 1000
    live, names = lanes.page.evaluate(CARDS), heads(lanes.page)
    lanes.open(VIEW)
    assert live == lanes.page.evaluate(CARDS)
    assert names == heads(lanes.page)
    assert (len(names), names[-1]) == (40, "Others")


def test_a_card_leads_into_the_transcript_and_a_key_leads_back(lanes: Transcript) -> None:
    lanes.open(VIEW)
    lanes.row(2).locator(".says a").click()
    expect(lanes.page.locator("#e2.event:not(.lane-event)")).to_have_attribute("aria-current", "true")

    lanes.page.keyboard.press("g")
    lanes.page.keyboard.press("l")

    expect(lanes.page.locator(".lane-event#e2")).to_be_visible()
    expect(lanes.page).to_have_url(f"{lanes.server.url}/conversations/{lanes.key}/?view=lanes&event=2#e2")


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


def test_lanes_read_well_without_scripts(lanes: Transcript, plain_page: Page) -> None:
    lanes.open(VIEW)
    plain_page.goto(f"/conversations/{lanes.key}/{VIEW}")

    assert heads(plain_page) == ["Rosa", "Desk", "Dialogue", "Triage"]
    expect(plain_page.locator("#e3 .lane-card")).to_be_visible()
    expect(plain_page.locator("#e3 .reach")).to_be_visible()
    left = "(one) => one.getBoundingClientRect().left"
    assert plain_page.locator("#e1 .lane-card").evaluate(left) < plain_page.locator("#e2 .lane-card").evaluate(left)
