"""Scripts of pages, each by itself in an empty page of a real browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser import EMPTY, serve_scripts
from tests.browser.socket_line import Line

TIMES = """async () => {
  const drawn = (form) => `<time datetime="2001-11-21T22:02:07Z" ${form}>22:02:07</time>`;
  document.body.innerHTML = drawn("data-clock") + drawn("data-age") + drawn('data-clock="minute"');
  const { drawTimes } = await import("/static/js/clock.js");
  drawTimes();
  return [...document.querySelectorAll("time")].map((time) => [time.textContent, time.title]);
}"""
ELAPSED = """async (agoS) => {
  const since = new Date(Date.now() - 1000 * agoS).toISOString();
  document.body.innerHTML = `<time datetime="${since}" data-elapsed></time>`;
  await import("/static/js/clock.js");
}"""
DRAFTS = """async () => {
  const { Draft } = await import("/static/js/drafts.js");
  const draft = new Draft("maria:flood", "first");
  draft.edited(false);
  draft.keep({ content: "Close the road" });
  const [sent, again] = [draft.clientId, new Draft("maria:flood", "second")];
  const kept = again.restore();
  const found = [kept.content, again.clientId === sent];
  again.edited(false);
  return [...found, new Set(["first", "second", sent, again.clientId]).size];
}"""

FLOODED = """async (count) => {
  const { DrawQueue } = await import("/static/js/draw-queue.js");
  const [drawn, order] = [[], []];
  let frame = 0;
  const busy = (ms) => { for (const end = performance.now() + ms; performance.now() < end; ) ; };
  const queue = new DrawQueue((take) => {
    drawn.push(frame);
    for (let item = take(); item !== undefined; item = take()) order.push(item);
    busy(30); // as a browser that lays out and paints a lot
  });
  let sent = 0;
  return new Promise((done) => {
    const tick = () => {
      frame += 1;
      if (sent < 30 * count) queue.push(Array.from({ length: count }, () => sent++));
      if (order.length === 30 * count) return done([drawn, order.every((item, n) => item === n)]);
      return requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}"""

QUEUED = """async (pushes) => {
  const { DrawQueue } = await import("/static/js/draw-queue.js");
  const drawn = [];
  const total = pushes.flat(2).length;
  let seen = 0;
  return new Promise((done) => {
    const queue = new DrawQueue((take) => {
      for (let event = take(); event; event = take()) {
        seen += 1;
        const { seq, html, text, opens } = event;
        if ((html ?? text ?? opens) !== undefined) drawn.push([seq, html ?? null, text ?? null]);
      }
      if (seen === total) return done(drawn);
      if (!queue.length) setTimeout(push); // what comes after a drawing
    });
    const push = () => pushes.shift().forEach((events) => queue.push(events));
    push();
  });
}"""

SELECTION = """async () => {
  const pick = '<label class="pick"><input type="checkbox" name="conversation"></label>';
  const row = (n) => `<li data-key="c${n}">${pick}</li>`;
  document.body.innerHTML = `<ul data-list>${Array.from({ length: 201 }, (_, n) => row(n)).join("")}</ul>
    <bulk-actions><form id="bulk" action="/control"><span data-count></span><button name="action">Pause</button>
    <a data-compare="/compare/" hidden>Compare</a><button type="button" data-clear></button></form><p data-said></p>
    </bulk-actions>`;
  await import("/static/js/bulk-actions.js");
}"""

LIST_OF_TWO = """async ({ olderLink }) => {
  globalThis.row = (key, at) => ({ key, cursor: `${at}.${at}`, html: `<article data-key="${key}" data-messages="1"
    data-cursor="${at}.${at}"><h3><a>${key}</a></h3><span class="unread"><b data-unread-count></b></span></article>` });
  document.body.dataset.may = "";
  document.body.innerHTML = `<div id="list"><section class="fleet" data-read-at="9">${row("b", 8).html}
    ${row("a", 7).html}</section>${olderLink}</div>`;
  const { ConversationRows } = await import("/static/js/conversation-rows.js");
  const rows = new ConversationRows(document.querySelector("#list"));
  globalThis.update = (...changes) => {
    rows.update(changes, { acceptsNew: true, isSnapshot: true });
    return rows.pendingMoves;
  };
  globalThis.reorder = () => (rows.reorder(), [...document.querySelectorAll("article")].map((one) => one.dataset.key));
}"""
OLDER = '<a data-older href="?before=7.7">Older</a>'

NOTIFYING = """
  globalThis.shown = [];
  globalThis.Notification = class extends EventTarget {
    static permission = "granted";
    constructor(title, options) { super(); shown.push(options.body); }
  };
  localStorage.setItem("switchboard.notifications", "on");
  Object.defineProperty(document, "hidden", { get: () => globalThis.isAway === true });
"""
LOOK = """(isAway) => {
  globalThis.isAway = isAway;
  document.dispatchEvent(new Event("visibilitychange"));
}"""
NOTIFY = """async (count) => {
  const { notifyOf } = await import("/static/js/desktop-notifications.js");
  await notifyOf(count);
  return shown.splice(0);
}"""

TIME_FIELDS = """async () => {
  const field = (name) => `<utc-field><input name="${name}" value="2026-11-22T08:30Z"></utc-field>`;
  const times = `<fieldset>${field("from")}${field("to")}</fieldset>`;
  const fields = (count) => `<p>${count} failed</p>${times}<p>${count} done</p>`;
  document.body.innerHTML = `<div data-facets>${fields(1)}</div>`;
  await import("/static/js/utc-field.js");
  const { render } = await import("/static/js/html.js");
  const { replaceFields } = await import("/static/js/replace-fields.js");
  globalThis.renderAgain = () => replaceFields(document.querySelector("div"), render(fields(2)));
}"""


@pytest.fixture(scope="module")
def window(chromium: Browser) -> Iterator[Page]:
    """A window far east of Greenwich."""
    context = chromium.new_context(timezone_id="Asia/Kathmandu", locale="en-GB")
    serve_scripts(context)
    yield context.new_page()
    context.close()


@pytest.fixture
def place(window: Page) -> Page:
    """An empty page in it that has the scripts."""
    window.goto(EMPTY)
    return window


def test_times_are_drawn_in_the_readers_zone_and_told_in_utc(place: Page) -> None:
    clock, age, minute = place.evaluate(TIMES)

    assert clock == ["22 Nov 2001 03:47:07", "2001-11-21 22:02:07.000 UTC"]
    assert age == ["22 Nov 2001", "2001-11-21 22:02:07.000 UTC"]
    assert minute == ["22 Nov 2001 03:47", "2001-11-21 22:02:07.000 UTC"]


def test_a_duration_that_goes_on_is_kept_up_to_date(timed_line: Line) -> None:
    page = timed_line.page
    page.clock.install()
    page.evaluate(ELAPSED, 24)
    elapsed = page.locator("time")
    expect(elapsed).to_have_text("20 s")

    page.clock.run_for(240_000)
    expect(elapsed).to_have_text("4 min 20 s")

    page.clock.run_for(3_600_000)
    expect(elapsed).to_have_text("1.1 h")


MESSAGES = """async (message) => {
  const { sentenceOf } = await import("/static/js/fetch.js");
  const { report } = await import("/static/js/page-report.js");
  report(message, "failed");
  return [sentenceOf({ message }), document.querySelector(".report [role=status]").textContent];
}"""


def test_a_message_about_who_was_first_gives_the_time_in_the_readers_zone(place: Page) -> None:
    sentence, reported = place.evaluate(MESSAGES, "user:maria already decided: approve, at 2001-11-21 22:02:07 UTC")

    assert sentence == "maria already decided: approve, at 22 Nov 2001 03:47:07."
    assert reported == "user:maria already decided: approve, at 22 Nov 2001 03:47:07"


def test_a_draft_keeps_its_id_until_its_words_change(place: Page) -> None:
    content, is_the_same, ids = place.evaluate(DRAFTS)

    assert content == "Close the road"
    assert is_the_same
    assert ids == 4


def test_a_flood_leaves_frames_to_the_reader_and_loses_nothing(place: Page) -> None:
    drawn, is_whole = place.evaluate(FLOODED, 40)

    assert is_whole
    assert len(drawn) < drawn[-1] / 2  # at least every other frame is free


def test_what_comes_now_and_then_is_drawn_in_the_next_frame(place: Page) -> None:
    drawn, is_whole = place.evaluate(FLOODED, 1)

    assert is_whole
    assert len(drawn) >= 29


def test_a_blocks_outdated_markup_is_not_drawn(place: Page) -> None:
    turn = [
        {"seq": 1, "group": "turn:r:0", "text": "a", "opens": "<open>"},
        {"seq": 2, "group": "call:c", "html": "<called>"},
        {"seq": 3, "group": "turn:r:0", "text": "b"},
        {"seq": 4, "html": "<message>"},
        {"seq": 5, "group": "turn:r:0", "html": "<output>"},
    ]
    result = {"seq": 6, "group": "call:c", "html": "<returned>"}

    drawn = place.evaluate(QUEUED, [[turn, [result]]])

    assert drawn == [[2, "<returned>", None], [4, "<message>", None], [5, "<output>", None]]


def test_markup_that_comes_after_a_drawing_is_drawn(place: Page) -> None:
    def event(seq: int, html: str) -> dict[str, Any]:
        return {"seq": seq, "group": "call:c", "html": html}

    drawn = place.evaluate(QUEUED, [[[event(1, "<called>")]], [[event(2, "<waits>"), event(3, "<returned>")]]])

    assert drawn == [[1, "<called>", None], [2, "<returned>", None]]


REQUESTS = """async (further) => {
  const row = '<div class="ask" data-key="a" data-status="pending"><a href="#"></a></div>';
  document.body.innerHTML = `<div data-view=""><div data-requests>${row}</div><p data-empty hidden>Nothing waits.</p>
    <div hidden><div data-decided-rows></div></div>${further}</div>`;
  const { ApprovalRows } = await import("/static/js/approval-rows.js");
  new ApprovalRows(document.querySelector("[data-view]")).take([{ key: "a", status: "decided",
    html: '<div class="ask" data-key="a" data-status="decided"><a href="#"></a></div>' }]);
}"""
FURTHER = "<p data-further hidden>Nothing is left on this page.</p>"


@pytest.mark.parametrize(
    ("further", "says"), [("", "Nothing waits."), (FURTHER, "Nothing is left on this page.")], ids=["all", "page"]
)
def test_a_page_whose_requests_are_decided_does_not_speak_for_the_next_one(
    empty_page: Page, further: str, says: str
) -> None:
    empty_page.evaluate(REQUESTS, further)

    expect(empty_page.locator("p:visible")).to_have_text([says])


def test_a_conversation_that_left_the_list_is_no_longer_selected(place: Page) -> None:
    place.evaluate(SELECTION)
    for key in ("c0", "c1"):
        place.locator(f"[data-key={key}] input").check()
    expect(place.locator("[data-count]")).to_have_text("2 selected")

    place.evaluate("document.querySelector('[data-key=c1]').remove()")

    expect(place.locator("[data-count]")).to_have_text("1 selected")
    expect(place.locator("[data-said]")).to_have_text("1 deselected: no longer on this page.")


def test_rows_of_the_next_page_are_not_counted_as_moves(empty_page: Page) -> None:
    empty_page.evaluate(LIST_OF_TWO, {"olderLink": OLDER})

    moves = empty_page.evaluate("update(row('b', 8), row('a', 7), row('older', 6), row('oldest', 5))")

    assert moves == 0
    assert empty_page.evaluate("reorder()") == ["b", "a"]
    assert empty_page.evaluate("update(row('newer', 9), row('oldest', 5))") == 1
    assert empty_page.evaluate("reorder()") == ["newer", "b"]


def test_every_new_row_of_the_only_page_is_counted(empty_page: Page) -> None:
    empty_page.evaluate(LIST_OF_TWO, {"olderLink": ""})

    assert empty_page.evaluate("update(row('newer', 9), row('a', 10), row('oldest', 5))") == 3
    assert empty_page.evaluate("reorder()") == ["a", "newer", "b", "oldest"]


SORTED = """async () => {
  let longest = 0;
  const { sort } = Array.prototype;
  Array.prototype.sort = function (compare) {
    longest = Math.max(longest, this.length);
    return sort.call(this, compare);
  };
  for (let n = 0; n < 1000; n += 10) update(...Array.from({ length: 10 }, (_, m) => row(`new-${n + m}`, 10 + n + m)));
  return longest;
}"""


def test_conversations_that_wait_while_the_list_is_read_are_no_more_than_it_shows(empty_page: Page) -> None:
    empty_page.evaluate(LIST_OF_TWO, {"olderLink": ""})

    assert empty_page.evaluate(SORTED) <= 2 * 200 + 10
    shown = empty_page.evaluate("reorder()")
    assert shown == [f"new-{n}" for n in range(999, 799, -1)]


def test_conversations_beyond_the_limit_of_a_request_stay_selected(place: Page) -> None:
    def respond(route: Route) -> None:
        ids = route.request.post_data_json["conversations"]
        route.fulfill(json={"items": [{"conversation_id": key} for key in ids]})

    place.route("**/control", respond)
    place.evaluate(SELECTION)
    place.evaluate("document.querySelectorAll('.pick input').forEach((input) => input.click())")
    expect(place.locator("[data-count]")).to_have_text("201 selected")

    place.get_by_role("button", name="Pause").click()

    expect(place.locator("[data-said]")).to_have_text("200 of 201 done.")
    expect(place.locator("[data-count]")).to_have_text("1 selected")


def test_a_time_field_that_is_rendered_again_keeps_the_focus(place: Page) -> None:
    place.evaluate(TIME_FIELDS)
    field = place.locator("[type=datetime-local]").last.element_handle()
    field.focus()

    place.evaluate("renderAgain()")

    assert field.evaluate("(field) => field === document.activeElement"), (
        "with the hour or minute that is being entered"
    )
    expect(place.locator("p")).to_have_text(["2 failed", "2 done"])
    expect(place.locator("fieldset")).to_have_count(1)


def test_of_several_tabs_one_notifies_unless_the_person_looks_at_one(chromium: Browser) -> None:
    context = chromium.new_context()
    secure = EMPTY.replace("http:", "https:")  # as browsers require it of pages that notify
    serve_scripts(context, secure)
    context.add_init_script(NOTIFYING)
    tabs = [context.new_page() for _ in range(3)]
    for tab in tabs:
        tab.goto(secure)

    def notify(count: int) -> list[str]:
        return [body for tab in tabs for body in tab.evaluate(NOTIFY, count)]

    assert notify(0) == []
    for tab in tabs:
        tab.evaluate(LOOK, True)
    assert notify(1) == ["1 request is waiting for your approval."]
    tabs[0].evaluate(LOOK, False)
    assert notify(2) == []
    tabs[0].evaluate(LOOK, True)
    assert notify(3) == ["3 requests are waiting for your approval."]
    tabs.pop(0).close()  # the one that has shown it
    assert notify(4) == ["4 requests are waiting for your approval."]
    context.close()


def test_exactly_two_selected_conversations_can_be_compared(empty_page: Page) -> None:
    empty_page.evaluate(SELECTION)
    link = empty_page.get_by_text("Compare")

    empty_page.locator("[data-key=c7] input").check()
    expect(link).to_be_hidden()
    empty_page.locator("[data-key=c3] input").check()
    expect(link).to_have_attribute("href", "/compare/?a=c7&b=c3")
    expect(link).to_be_visible()
    empty_page.locator("[data-key=c5] input").check()
    expect(link).to_be_hidden()
