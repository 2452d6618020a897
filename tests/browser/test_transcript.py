"""The transcript, live, in a real browser before a real server."""

import itertools

import pytest
from playwright.sync_api import Page, expect

from tests.browser.transcript import Transcript
from tests.support.live import Server, until

_number = itertools.count(1)
LONG = "The underpass at Mill Street is under water again, up to the kerb, and a car is stuck in it. " * 3


@pytest.fixture
def transcript(page: Page, server: Server, token: str) -> Transcript:
    """A conversation nobody has written in."""
    return Transcript(page, server, token, f"th-{next(_number)}")


@pytest.mark.slow
def test_tokens_grow_in_one_block_and_the_output_takes_its_place(transcript: Transcript) -> None:
    transcript.say("Please write.")
    transcript.open()

    for n, text in enumerate(("It is ", "<b>rising", " slowly")):
        transcript.stream(event="token", agent="Format Coordinator", text=text, index=n)
    transcript.sees()
    row = transcript.row(2)
    expect(row.locator("[data-live-text]")).to_have_text("It is <b>rising slowly")
    expect(row.locator(".name")).to_have_text("Format Coordinator")

    transcript.stream(event="output", agent="Format Coordinator", text="It is **rising** slowly.")
    transcript.sees()

    assert transcript.rows == [1, 5]
    expect(transcript.row(5).locator("strong")).to_have_text("rising")
    expect(transcript.page.locator("[data-live-text]")).to_have_count(0)


@pytest.mark.slow
def test_a_window_that_gets_no_frames_is_drawn_all_the_same(transcript: Transcript) -> None:
    """On another workspace it may count as visible."""
    transcript.say("Please write.")
    transcript.page.add_init_script("globalThis.requestAnimationFrame = () => 1")
    transcript.page.goto(f"/conversations/{transcript.key}/")
    transcript.page.wait_for_selector("live-transcript:defined")

    transcript.say("Written.")

    until(lambda: transcript.drawn >= transcript.head, what="the message in a window without frames")
    expect(transcript.row(transcript.head)).to_contain_text("Written.")


NUMBERS = """() => [...document.querySelectorAll(".rows > [data-seq] > .seq")]
    .map((link) => (link.dataset.from ?? "") + link.textContent + (link.dataset.to ?? ""))"""


@pytest.mark.slow
def test_the_numbers_have_no_hole_where_events_share_a_row(transcript: Transcript) -> None:
    transcript.say("Please write.")
    transcript.open()
    for n in range(3):
        transcript.stream(event="token", agent="Dialogue", text="It is rising. "[4 * n : 4 * n + 4], index=n)
    transcript.sees()
    transcript.stream(event="output", agent="Dialogue", text="It is rising.")
    transcript.call(status="start", args={"street": "Mill Street"})
    transcript.call(status="success", result_summary="3")
    transcript.say("Thank you.")
    transcript.sees()

    live = transcript.page.evaluate(NUMBERS)
    transcript.open()

    assert live == transcript.page.evaluate(NUMBERS) == ["1", "2–5", "6–7", "8"]
    transcript.open("?event=3#e3")
    expect(transcript.row(5)).to_have_attribute("aria-current", "true")
    expect(transcript.page.locator("[data-picked] .code").first).to_have_text("5")


@pytest.mark.thorough
def test_an_output_goes_to_its_own_place_behind_what_came_meanwhile(transcript: Transcript) -> None:
    transcript.say("Please write.")
    transcript.open()
    transcript.stream(event="token", text="slow", index=0)
    transcript.say("meanwhile", sender="agent:Triage")
    transcript.sees()
    assert transcript.rows == [1, 2, 3]

    transcript.stream(event="output", text="slowly")
    transcript.sees()
    live = transcript.rows
    transcript.open()

    assert live == transcript.rows == [1, 3, 4]


@pytest.mark.thorough
def test_a_turn_in_the_middle_goes_on_after_the_page_was_opened(transcript: Transcript) -> None:
    transcript.stream(event="token", agent="Dialogue", text="first ", index=0)
    transcript.open()

    transcript.stream(event="token", agent="Dialogue", text="second", index=1)
    transcript.sees()

    assert transcript.rows == [1]
    expect(transcript.row(1).locator("[data-live-text]")).to_have_text("first second")


@pytest.mark.thorough
def test_a_result_completes_the_call_that_a_reader_opened(transcript: Transcript) -> None:
    transcript.call(status="start", args={"street": "Mill Street"})
    transcript.open()
    summary = transcript.row(1).locator("details.tool > summary")
    summary.focus()
    transcript.page.keyboard.press("Enter")

    transcript.call(status="success", result_summary='{"reports": 3}', duration_ms=412)
    transcript.sees()

    assert transcript.rows == [1]
    expect(transcript.row(1).locator("details.tool")).to_have_attribute("open", "")
    expect(transcript.row(1).locator("details.tool")).to_have_attribute("data-state", "done")
    expect(summary).to_be_focused()


@pytest.mark.slow
def test_the_tail_is_followed_until_the_reader_scrolls_up(transcript: Transcript) -> None:
    transcript.say(*[f"{n}. {LONG}" for n in range(12)])
    transcript.open()
    assert transcript.is_following
    transcript.say(LONG)
    transcript.sees()
    assert transcript.is_following

    transcript.wheel(-40)
    y = transcript.y(10)
    transcript.say(LONG, LONG)
    transcript.sees()

    assert not transcript.is_following
    assert transcript.y(10) == y
    expect(transcript.pill).to_have_text("2 new from Dialogue")


@pytest.mark.thorough
def test_a_scroll_without_a_wheel_pauses_too(transcript: Transcript) -> None:
    transcript.say(*[f"{n}. {LONG}" for n in range(12)])
    transcript.open()
    assert transcript.is_following

    transcript.page.locator(".transcript").evaluate("(t) => t.scrollBy(0, -40)")

    expect(transcript.page.locator("tail-follow[data-paused]")).to_be_attached()


@pytest.mark.thorough
def test_the_pill_leads_back_to_the_tail(transcript: Transcript) -> None:
    transcript.say(*[f"{n}. {LONG}" for n in range(12)])
    transcript.open()
    transcript.wheel(-400)
    transcript.say("one", sender="Rosa")
    transcript.say("two")
    transcript.sees()
    expect(transcript.pill).to_have_text("2 new from 2 participants")

    transcript.pill.click()

    until(lambda: transcript.is_following, what="the tail to be followed")
    expect(transcript.pill).to_be_hidden()


@pytest.mark.thorough
def test_older_pages_load_without_moving_what_is_read(transcript: Transcript) -> None:
    transcript.record(*[f"{n}. {LONG}" for n in range(200)])
    transcript.open()
    assert transcript.rows[0] == 141
    where = "() => document.querySelector('#e150').getBoundingClientRect().top"
    transcript.page.locator(".transcript").evaluate("(t) => { t.scrollTop = 400; }")
    transcript.settle()
    y = transcript.page.evaluate(where)

    until(lambda: transcript.rows[0] == 81, what="the older page")
    transcript.settle()

    assert abs(transcript.page.evaluate(where) - y) <= 1
    assert transcript.rows == list(range(81, 201))


@pytest.mark.slow
def test_all_history_is_reached_by_scrolling_up(transcript: Transcript) -> None:
    transcript.record(*[f"{n}. {LONG}" for n in range(150)])
    transcript.open()

    def scrolled_to_the_start() -> bool:
        transcript.page.locator(".transcript").evaluate("(t) => { t.scrollTop = 0; }")
        return transcript.rows[0] == 1

    until(scrolled_to_the_start, what="the first event")

    assert transcript.rows == list(range(1, 151))
    expect(transcript.page.locator("[data-older]")).to_be_hidden()


@pytest.mark.thorough
def test_the_page_stays_short_and_what_it_dropped_comes_back(transcript: Transcript) -> None:
    transcript.say("first")
    transcript.open()
    transcript.say(*[f"line {n}" for n in range(820)])
    transcript.sees()
    rows = transcript.rows
    assert 600 <= len(rows) <= 800
    assert rows == list(range(rows[0], 822))

    transcript.page.locator(".transcript").evaluate("(t) => { t.scrollTop = 0; }")
    until(lambda: transcript.rows[0] < rows[0], what="the rows before")

    again = transcript.rows
    assert again == list(range(again[0], 822))


@pytest.mark.slow
def test_a_permalink_opens_its_call_and_the_pill_leads_to_the_latest(transcript: Transcript) -> None:
    transcript.record(*[f"{n}. {LONG}" for n in range(40)])
    transcript.call(status="start", args={"street": "Mill Street"})
    transcript.call(status="success", result_summary="[]")
    transcript.record(*[f"{n}. {LONG}" for n in range(80)])

    transcript.open("?event=41#e41")

    expect(transcript.row(41).locator("details.tool")).to_have_attribute("open", "")
    expect(transcript.row(41)).to_have_attribute("aria-current", "true")
    assert 0 <= transcript.y(41) <= 900
    assert transcript.rows[-1] < transcript.head
    transcript.pill.click()
    until(lambda: transcript.is_following and transcript.rows[-1] == transcript.head, what="the tail")
    transcript.say("and on")
    transcript.sees()
    assert transcript.is_following


@pytest.mark.thorough
def test_scrolling_down_from_a_permalink_reaches_the_live_tail(transcript: Transcript) -> None:
    transcript.record(*[f"{n}. {LONG}" for n in range(150)])
    transcript.open("?event=20")

    def at_the_tail() -> bool:
        transcript.page.locator(".transcript").evaluate("(t) => { t.scrollTop += 4000; }")
        return transcript.is_following

    until(at_the_tail, what="the tail")
    transcript.say("and on")
    transcript.sees()

    rows = transcript.rows
    assert rows == list(range(rows[0], 152))


@pytest.mark.thorough
def test_a_press_on_the_number_links_to_the_event_and_copies_it(transcript: Transcript) -> None:
    transcript.say("one", "two")
    transcript.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    transcript.open()

    transcript.row(1).locator(".seq").click()

    expect(transcript.page.locator("news-announcer")).to_have_text("Link to event 1 copied")
    assert transcript.page.url.endswith(f"/conversations/{transcript.key}/?event=1#e1")
    assert transcript.page.evaluate("() => navigator.clipboard.readText()") == transcript.page.url
    expect(transcript.page.locator("[data-picked] .code").first).to_have_text("1")


@pytest.mark.thorough
def test_a_value_its_path_and_the_whole_are_copied(transcript: Transcript) -> None:
    transcript.call(status="start", args={"deep": {"list": [1, {"x": "<y>"}]}, "n": 1.50})
    transcript.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    transcript.open("?event=1")
    row = transcript.row(1).locator('[data-path="$.deep.list"]')

    def copied(what: str) -> str:
        transcript.page.evaluate("() => navigator.clipboard.writeText('')")
        place = transcript.row(1).locator("[data-copies]").first if what == "whole" else row
        place.locator(f'[data-copy="{what}"]').last.dispatch_event("click")
        return until(lambda: str(transcript.page.evaluate("() => navigator.clipboard.readText()")), what=what)

    assert copied("path") == "$.deep.list"
    assert copied("value") == '[\n  1,\n  {\n    "x": "<y>"\n  }\n]'
    assert copied("whole").startswith('{\n  "deep": {')


def test_keys_walk_open_and_hide(transcript: Transcript) -> None:
    transcript.say("one")
    transcript.call(status="start", args={"q": 1})
    transcript.open()
    current = transcript.page.locator('.event[aria-current="true"]')

    transcript.page.keyboard.press("k")
    expect(current).to_have_attribute("data-seq", "2")
    transcript.page.keyboard.press("o")
    expect(transcript.row(2).locator("details.tool")).to_have_attribute("open", "")
    transcript.page.keyboard.press("k")
    expect(current).to_have_attribute("data-seq", "1")
    transcript.page.keyboard.press("-")
    transcript.page.keyboard.press("-")

    expect(transcript.row(2)).to_be_hidden()
    expect(transcript.page.get_by_label("Chat")).to_be_checked()


@pytest.mark.thorough
def test_a_level_without_rows_says_so_and_does_not_load_all_history(transcript: Transcript) -> None:
    transcript.say("the only words")
    for n in range(400):
        transcript.stream(event="log", level="info", message=f"line {n}")
    transcript.open()
    everything = len(transcript.rows)

    transcript.page.get_by_label("Chat").click()

    expect(transcript.page.locator(".transcript")).to_have_attribute("data-blank", "")
    older = transcript.page.locator("[data-older]")
    until(lambda: len(transcript.rows) == everything + 3 * 60, what="three pages")
    transcript.settle()
    older.click()
    until(lambda: transcript.rows[0] == 1, what="the first event")
    expect(transcript.row(1)).to_be_visible()
    expect(transcript.page.locator(".transcript")).not_to_have_attribute("data-blank", "")


def test_looking_at_the_tail_marks_as_read(transcript: Transcript) -> None:
    transcript.say("one", "two", "three")

    transcript.open()

    until(lambda: marker(transcript.server, transcript.key) == (3, 3), what="the marker at the head")


@pytest.mark.slow
def test_what_came_while_the_reader_looked_elsewhere_stays_unread(transcript: Transcript) -> None:
    transcript.say(*[f"{n}. {LONG}" for n in range(12)])
    transcript.open()
    until(lambda: marker(transcript.server, transcript.key) == (12, 12), what="the marker at the head")
    transcript.wheel(-400)

    transcript.say("unseen")
    transcript.sees()
    transcript.page.evaluate("() => new Promise((done) => setTimeout(done, 1000))")  # longer than a marker waits
    assert marker(transcript.server, transcript.key) == (12, 12)
    transcript.pill.click()

    until(lambda: marker(transcript.server, transcript.key) == (13, 13), what="the marker at the head")


@pytest.mark.thorough
def test_new_events_are_announced_by_number_and_name_and_tokens_are_not(transcript: Transcript) -> None:
    transcript.say("one")
    transcript.open()
    announcer = transcript.page.locator("news-announcer")

    transcript.stream(event="token", agent="Dialogue", text="secret words", index=0)
    transcript.say("two", "three")

    expect(announcer).to_have_text("3 new events from Dialogue")
    expect(announcer).to_have_attribute("aria-live", "polite")
    expect(transcript.page.locator("[role=log]")).to_have_attribute("aria-live", "off")


def marker(server: Server, key: str) -> tuple[int, int] | None:
    """Return how far anybody has read, and how many messages that is."""
    with server.database() as database:
        row: tuple[int, int] | None = database.execute(
            "SELECT m.last_seq,m.messages_seen FROM conversations_readmarker m"
            " JOIN conversations_conversation c ON c.id=m.conversation_id WHERE c.key=?",
            [key],
        ).fetchone()
        return row
