"""The page's side of the socket (§3.5), its modules run in a real browser against a socket of the test's own."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.socket_line import Line


def test_events_are_handed_on_once_and_in_order(line: Line) -> None:
    line.subscribe(after=4, epoch="e")

    line.events(5, 6)
    line.events(6, 7)

    line.wait(lambda: line.received("events") == [[5, 6], [7]])
    assert line.requests == [{"op": "subscribe", "topic": "stream:c", "after": 4, "epoch": "e"}]


def test_a_hole_makes_it_ask_again_after_the_last_it_has(line: Line) -> None:
    line.subscribe(after=4, epoch="e")
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)

    line.events(5, 7)

    line.wait(lambda: len(line.requests) == 2)
    assert line.requests[1]["after"] == 5
    line.events(6, 7)
    line.wait(lambda: line.received("events") == [[5], [6, 7]])


def test_the_newest_page_may_begin_anywhere(line: Line) -> None:
    line.subscribe()

    line.events(90, 93)
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=93)
    line.events(94)

    line.wait(lambda: line.received("events") == [[90, 93], [94]])


def test_after_a_loss_it_goes_on_where_it_was(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.events(1, 2)
    line.wait(lambda: line.received("events") == [[1, 2]])

    line.routes[-1].close(code=1012)

    line.wait(lambda: len(line.requests) == 2)
    assert line.requests[1]["after"] == 2
    assert (len(line.received("down")), len(line.received("up"))) == (1, 1)


def test_a_head_that_stays_ahead_makes_it_ask_again(line: Line) -> None:
    line.subscribe(after=3, epoch="e")
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=3)

    line.send(t="head", topic="stream:c", seq=5)

    line.wait(lambda: len(line.requests) == 2)
    assert line.requests[1]["after"] == 3


def test_a_reset_forgets_what_was_seen_and_takes_the_new_epoch(line: Line) -> None:
    line.subscribe(after=900, epoch="old")

    line.send(t="reset", topic="stream:c", epoch="e")
    line.events(1, 2)

    line.wait(lambda: line.received("events") == [[1, 2]])
    assert len(line.received("reset")) == 1


def test_a_gap_is_told_and_passed(line: Line) -> None:
    line.subscribe(after=0, epoch="e")

    line.send(t="gap", topic="stream:c", **{"from": 1, "to": 6}, reason="trimmed")
    line.events(7)

    line.wait(lambda: line.received("events") == [[7]])
    assert len(line.requests) == 1


def test_of_a_row_the_latest_version_wins(line: Line) -> None:
    line.subscribe("fleet")

    for version, html in ((2, "new"), (1, "old"), (3, "newer")):
        line.send(t="rows", topic="fleet", rows=[{"key": "a", "version": version, "html": html}])

    line.wait(lambda: line.received("rows") == [["new"], ["newer"]])


def test_an_id_erased_since_the_page_was_drawn_is_told_once_whatever_the_clocks_say(line: Line) -> None:
    now = 1_700_000_000_000_000
    line.page.evaluate("now => (document.body.dataset.drawnAt = now)", now)
    line.subscribe("fleet")
    snapshot = {"t": "rows", "topic": "fleet", "rows": [{"key": "a", "version": 1, "html": "row"}]}

    line.send(**snapshot, erased_at=now - 60_000_000)
    line.wait(lambda: line.received("rows") == [["row"]])
    line.send(**snapshot, erased_at=now + 5)
    line.wait(lambda: line.received("reset") == [None])
    line.page.evaluate("now => (document.body.dataset.drawnAt = now)", now + 1)  # drawn anew, by a clock that is behind
    line.send(**snapshot, erased_at=now + 5)
    line.wait(lambda: len(line.received("rows")) == 2)

    assert line.received("reset") == [None]


def rows(first: int, last: int, version: int = 1) -> list[dict[str, Any]]:
    """Rows of a topic, the newest first."""
    return [{"key": str(n), "version": version, "html": str(n)} for n in range(last, first - 1, -1)]


ESCALATED = {"key": "1", "version": 1, "html": "1", "escalated": "admin"}


@pytest.mark.parametrize(
    ("after", "is_missed"),
    [
        (rows(101, 200), True),
        (rows(1, 100, 2), True),
        ([*rows(101, 200), ESCALATED], True),
        (rows(100, 199), False),
        (rows(1, 99, 2), False),
        ([*rows(100, 199), ESCALATED], False),
        ([ESCALATED | {"key": str(n)} for n in range(1, 101)], False),
        ([*rows(101, 101), *(ESCALATED | {"key": str(n)} for n in range(1, 101))], False),
    ],
    ids=[
        "100 new ones", "100 changed ones", "100 new ones and an escalated one", "99 new ones", "99 changed ones",
        "99 new ones and an escalated one", "100 escalated ones as they were",
        "one new one and 100 escalated ones as they were",
    ],
)  # fmt: skip
def test_a_page_that_missed_more_than_it_is_told_notices(line: Line, after: list[Any], is_missed: bool) -> None:
    line.subscribe("approvals")
    line.send(t="rows", topic="approvals", rows=rows(1, 100))
    line.wait(lambda: len(line.received("rows")) == 1)

    line.routes[-1].close(code=1006)
    line.wait(lambda: len(line.requests) == 2)
    line.send(t="rows", topic="approvals", rows=after)

    line.wait(lambda: len(line.received("rows")) + len(line.received("missed")) == 2)
    assert len(line.received("missed")) == is_missed


@pytest.mark.parametrize(("code", "state"), [(4401, "signed-out"), (4403, "forbidden")])
def test_what_ended_for_good_is_not_tried_again(line: Line, code: int, state: str) -> None:
    line.subscribe(after=0, epoch="e")

    line.routes[-1].close(code=code)

    line.wait(lambda: line.page.evaluate("socket.state") == state)
    line.page.evaluate("dispatchEvent(new Event('online'))")
    assert len(line.routes) == 1
    assert line.received("down") == [], "nothing reconnects"


def test_a_strip_that_speaks_of_reconnecting_goes_once_nothing_reconnects(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.page.evaluate(
        """async () => {
          await import("/static/js/connection.js");
          document.body.innerHTML = "<p data-lost><reconnect-now><button>Try now</button></reconnect-now></p>";
        }"""
    )
    line.page.route_web_socket("ws://static.test/ws/", lambda route: route.close(code=4401))

    line.routes[-1].close(code=1006)

    line.wait(lambda: line.page.evaluate("socket.state") == "signed-out")
    expect(line.page.locator("[data-lost]")).to_be_hidden()


def test_a_network_that_comes_back_is_used_at_once(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.page.evaluate("Math.random = () => 1; globalThis.setTimeout = () => 0")  # no retry of its own
    line.routes[-1].close(code=1006)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")

    line.page.evaluate("dispatchEvent(new Event('online'))")

    line.wait(lambda: len(line.routes) == 2)


def test_a_button_has_it_try_at_once_and_never_twice_at_a_time(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.page.evaluate(
        """async () => {
          await import("/static/js/connection.js");
          document.body.innerHTML = "<reconnect-now><button>Try now</button></reconnect-now>";
          globalThis.setTimeout = () => 0; // no retry of its own
          globalThis.opened = 0;
          globalThis.WebSocket = class extends EventTarget { // opens when the test says so
            static CONNECTING = 0;
            constructor() { super(); opened += 1; globalThis.wire = this; }
            send() {}
            close() {}
          };
        }"""
    )
    line.routes[-1].close(code=1006)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")
    button = line.page.get_by_role("button")
    button.focus()

    for _ in range(3):
        line.page.keyboard.press("Enter")
    assert line.page.evaluate("opened") == 1
    assert button.inner_text() == "Trying…"
    line.page.evaluate("wire.dispatchEvent(new CloseEvent('close', { code: 1006 }))")
    assert button.inner_text() == "Try now"

    line.page.keyboard.press("Enter")
    assert line.page.evaluate("opened") == 2
    line.page.evaluate("wire.dispatchEvent(new Event('open'))")
    assert line.page.evaluate("socket.state") == "live"
    line.page.keyboard.press("Enter")
    assert line.page.evaluate("opened") == 2
    assert button.inner_text() == "Try now"


def test_nobody_listening_means_no_socket(line: Line) -> None:
    line.subscribe(after=0, epoch="e")

    line.page.evaluate("stop()")

    assert line.page.evaluate("socket.state") == "idle"


def test_the_dot_tells_of_a_loss_after_a_second_however_often_it_is_tried_again(timed_line):
    timed_line.page.clock.install()
    timed_line.subscribe()
    timed_line.page.evaluate(
        """async () => {
          await import("/static/js/connection.js");
          document.body.append(document.createElement("live-state"));
        }"""
    )
    state = timed_line.page.locator("live-state")
    timed_line.page.clock.run_for(1)
    assert state.text_content() == "Live"

    timed_line.page.route_web_socket("ws://static.test/ws/", lambda route: route.close())
    timed_line.routes[-1].close()
    timed_line.wait(lambda: timed_line.page.evaluate("socket.state") == "down")
    for _ in range(11):
        timed_line.page.clock.run_for(100)

    assert state.text_content() == "Reconnecting"


def test_who_begins_to_follow_during_a_loss_hears_of_its_end(line: Line) -> None:
    line.subscribe(after=0, epoch="e")
    line.page.evaluate("globalThis.setTimeout = () => 0")  # no retry of its own
    line.routes[-1].close(code=1006)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")

    line.page.evaluate("socket.subscribe('fleet', {}, { up: () => heard.push(['later up', null]) }), void 0")
    line.wait(lambda: len(line.requests) == 3)

    line.wait(lambda: line.received("up"))
    assert line.received("later up") == [None]


def test_a_connection_that_dies_before_its_first_head_is_opened_anew(timed_line: Line) -> None:
    timed_line.page.clock.install()
    timed_line.subscribe(after=3, epoch="e")
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=3)
    timed_line.wait(lambda: timed_line.received("caughtUp"))

    timed_line.page.clock.run_for(50_000)

    timed_line.wait(lambda: len(timed_line.requests) == 2)
    assert len(timed_line.routes) == 2


@pytest.mark.parametrize("noticed", ["by itself", "by the network", "by the window"])
def test_a_computer_that_wakes_up_opens_its_connection_anew(timed_line: Line, noticed: str) -> None:
    timed_line.page.clock.install()
    timed_line.subscribe(after=3, epoch="e")
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=3)
    timed_line.wait(lambda: timed_line.received("caughtUp"))
    wakes = {
        "by itself": "void 0",
        "by the network": "dispatchEvent(new Event('online'))",
        "by the window": "document.dispatchEvent(new Event('visibilitychange'))",
    }

    # `performance.now()` stands still while it sleeps
    timed_line.page.evaluate("{ const now = Date.now; Date.now = () => now() + 3_600_000 }")
    timed_line.page.evaluate(wakes[noticed])
    timed_line.page.clock.run_for(6_000 if noticed == "by itself" else 0)

    timed_line.wait(lambda: len(timed_line.requests) == 2)
    assert len(timed_line.routes) == 2


def test_a_head_during_catching_up_asks_for_nothing_twice(timed_line: Line) -> None:
    timed_line.page.clock.install()
    timed_line.subscribe(after=3, epoch="e")

    timed_line.send(t="head", topic="stream:c", seq=900)
    timed_line.events(4)
    timed_line.wait(lambda: timed_line.received("events") == [[4]])
    timed_line.page.clock.run_for(10_000)

    assert len(timed_line.requests) == 1
    timed_line.send(t="caught_up", topic="stream:c", epoch="e", seq=900)
    timed_line.wait(lambda: timed_line.received("caughtUp"))
    timed_line.page.clock.run_for(10_000)
    timed_line.wait(lambda: len(timed_line.requests) == 2)


PART = """async () => {
  document.body.innerHTML = `<main data-topic="stream:c" data-epoch="e"><p data-part data-head="4"></p></main>`;
  const { LivePart } = await import("/static/js/live-part.js");
  const part = document.querySelector("[data-part]");
  globalThis.heard = [];
  globalThis.draws = [];
  new LivePart(part.parentElement, () => new Promise((done) => draws.push((head) => done(part.dataset.head = head))));
}"""


WATCH = """async () => {
  document.body.innerHTML = `<p data-part></p>`;
  const { watchRedactions } = await import("/static/js/redaction-watch.js");
  watchRedactions({ topic: "stream:c", after: "4", epoch: "e" }, () => {});
}"""


@pytest.mark.parametrize("follows", [PART, WATCH], ids=["part", "watch"])
def test_a_page_of_a_restored_record_is_loaded_again_and_says_so_once(line: Line, follows: str) -> None:
    line.page.evaluate(follows)
    line.wait(lambda: len(line.requests) == 1)

    line.send(t="reset", topic="stream:c", epoch="f")

    line.page.wait_for_function("!document.querySelector('[data-part]')")
    for says in ("The record was restored from a backup. This page was reloaded.", ""):
        line.page.evaluate("document.body.append(document.createElement('main'))")
        line.page.evaluate(STRIP)
        expect(line.page.locator("conversation-strip > span")).to_have_text(says)
        line.page.reload()


STRIP = """async () => {
  document.querySelector("main").insertAdjacentHTML("beforeend", `<conversation-strip hidden><svg><use></use></svg>
    <span></span><a></a><reconnect-now></reconnect-now><button data-dismiss></button></conversation-strip>`);
  await import("/static/js/conversation-strip.js");
}"""


def test_a_part_that_begins_to_follow_during_a_loss_says_how_long_that_took(line: Line) -> None:
    line.subscribe("approvals")
    line.page.evaluate("globalThis.setTimeout = () => 0")  # no retry of its own
    line.routes[-1].close(code=1006)
    line.wait(lambda: line.page.evaluate("socket.state") == "down")
    line.page.evaluate("() => { const now = performance.now(); performance.now = () => now + 7_000 }")

    line.page.evaluate(PART)
    line.page.evaluate(STRIP)
    line.page.evaluate("dispatchEvent(new Event('online'))")
    line.wait(lambda: len(line.requests) == 3)
    line.send(t="caught_up", topic="stream:c", epoch="e", seq=4)

    expect(line.page.locator("conversation-strip span")).to_have_text("Reconnected after 7 s. No new events.")


LIST = """async () => {
  document.body.innerHTML = `<conversation-list><section><p id="part" data-lost hidden>Last updated</p></section>
    <p id="list" data-lost hidden>Connection lost</p><button data-changed hidden><span></span></button>
    <div data-list></div></conversation-list>`;
  await import("/static/js/conversation-list.js");
}"""


@pytest.mark.slow
def test_a_lost_connection_shows_the_strip_of_the_list_and_not_that_of_a_part(line: Line) -> None:
    line.page.evaluate(LIST)
    line.wait(lambda: len(line.requests) == 1)

    line.routes[-1].close()

    expect(line.page.locator("#list")).to_be_visible()
    expect(line.page.locator("#part")).to_be_hidden()
