"""Scripts of a conversation's views in an empty page of a real browser: redactions, failed requests, slow responses."""

import pytest
from playwright.sync_api import Route, expect

from tests.browser import EMPTY
from tests.browser.socket_line import Line

TIMERS = "globalThis.timers = []; globalThis.setTimeout = (run) => timers.push(run); void 0"  # the test runs them
PARTS = """<h1></h1><p data-standing data-head="9"></p><p data-verbs="first"></p><p data-verbs="folded"></p>
  <p data-alarm></p>"""
CONTROL = """async ([parts, past]) => {
  document.body.innerHTML = `<live-transcript data-head="9"></live-transcript>${past}
    <conversation-control data-address="/state">${parts}</conversation-control>
    <conversation-panel><div data-sections data-head="9"></div></conversation-panel>`;
  await import("/static/js/conversation-control.js");
}"""
GRAPH = """async () => {
  document.body.innerHTML = `<conversation-graph data-topic="stream:c" data-epoch="e" data-src="/graph?part=1">
    <div data-part data-head="4"><a data-whole-link href="?whole=1">and 5 more</a></div></conversation-graph>`;
  await import("/static/js/conversation-graph.js");
}"""
DRAGGED = """async () => {
  document.body.innerHTML = `<main><div class="graph-scroll" tabindex="0">graph</div>
    <div class="waterfall-scroll"><div class="ticks">ticks</div></div></main>`;
  const { GraphView } = await import("/static/js/graph-view.js");
  const { TimelinePointer } = await import("/static/js/timeline-pointer.js");
  const { signal } = new AbortController();
  new GraphView(document.querySelector("main"), signal);
  new TimelinePointer(document.querySelector("main"), {}, () => {}, signal);
}"""
PLAYHEAD = """async () => {
  document.body.innerHTML = `<play-head data-at="3" data-head="9" data-address="/past"
    data-topic="stream:c" data-after="9" data-epoch="e"><a data-fork></a>
    <div data-moment-failed hidden><span></span><button></button></div>
    <input type="range" min="1" max="9" value="3"><p data-moment data-gaps="" data-head="9"></p>
    <button data-play><svg><use></use></svg></button><select data-speed><option value="1"></select></play-head>`;
  globalThis.redactions = 0;
  document.addEventListener("record:redacted", () => (redactions += 1));
  await import("/static/js/play-head.js");
}"""
CALL = """async () => {
  document.body.innerHTML = `<call-outcome data-src="/outcome" data-call="k" data-conversation="c" data-after="4">
    <div data-part></div></call-outcome>`;
  await import("/static/js/call-page.js");
}"""
OUTLINE = """async () => {
  document.body.innerHTML = `<div class="panel-switch"><button value="outline">Outline</button>
    <button value="facts">Facts</button></div><div class="panel">
    <div data-outline-failed hidden><span></span><button></button></div>
    <transcript-outline data-address="/outline" hidden></transcript-outline></div>`;
  await import("/static/js/transcript-outline.js");
}"""
PAGES = """async () => {
  document.body.innerHTML = `<main data-entries="/entries" data-first="5" data-last="9" data-head="9">
    <div class="transcript"><a data-older hidden></a></div><a data-newer hidden></a></main>`;
  const show = (html) => (globalThis.shown = html);
  const rows = { all: [], firstSeq: 5, reset: show, prepend: show, unloadOldest: () => 7, unloadNewest: () => 0 };
  const tail = { isFollowing: true, beforeChange() {}, afterChange() {}, scrollToRow() {} };
  const { TranscriptPages } = await import("/static/js/transcript-pages.js");
  globalThis.pages = new TranscriptPages(document.querySelector("main"), rows, tail);
}"""


def send(line: Line, seq: int, kind: str, **body: str) -> None:
    line.send(t="events", topic="stream:c", epoch="e", events=[{"seq": seq, "kind": kind, "body": body}])


def run_timer(line: Line) -> None:
    line.page.wait_for_function("timers.length === 1")
    line.page.evaluate("void timers.pop()()")


@pytest.mark.parametrize("past", ["", "<play-head></play-head>"], ids=["present", "past"])
def test_the_panel_is_requested_after_a_redaction_until_it_was_rendered(line: Line, past: str) -> None:
    queries: list[str] = []
    line.page.evaluate(CONTROL, [PARTS, past])

    def respond(route: Route) -> None:
        queries.append(route.request.url.partition("?")[2])
        if len(queries) == 1:
            route.fulfill(status=503)
        else:
            route.fulfill(body=f"{PARTS}<p data-deliveries></p>")

    line.page.route("**/state?*", respond)
    line.page.evaluate("document.dispatchEvent(new CustomEvent('record:redacted'))")
    line.wait(lambda: len(queries) == 2)
    line.page.wait_for_load_state("networkidle")
    line.page.evaluate("document.dispatchEvent(new CustomEvent('visibilitychange'))")
    line.wait(lambda: len(queries) == 3)

    assert queries == (["", "", ""] if past else ["panel=1", "panel=1", ""])


def test_a_graph_that_is_busy_shows_everybody_once_that_is_wanted(line: Line) -> None:
    routes: list[Route] = []
    line.page.route("**/graph?*", lambda route: routes.append(route))
    line.page.evaluate(TIMERS)
    line.page.evaluate(GRAPH)
    line.wait(lambda: len(line.requests) == 1)

    line.page.locator("[data-whole-link]").click()
    line.wait(lambda: len(routes) == 1)
    routes[0].fulfill(status=503)
    expect(line.page.locator("[data-whole-link]")).to_contain_text("Try again")
    send(line, 5, "message")
    run_timer(line)
    line.wait(lambda: len(routes) == 2)
    routes[1].fulfill(body='<div data-part data-head="5"><a data-whole-link href="?whole=1">and 5 more</a></div>')
    expect(line.page.locator("[data-part]")).to_have_attribute("data-head", "5")
    line.page.locator("[data-whole-link]").click()
    line.wait(lambda: len(routes) == 3)
    send(line, 6, "message")
    run_timer(line)
    line.wait(lambda: len(routes) == 4)

    assert ["whole=1" in route.request.url for route in routes] == [True, False, True, True]


def test_enter_shows_everybody_in_place_as_a_click_does(line: Line) -> None:
    routes: list[Route] = []
    line.page.route("**/graph?*", lambda route: routes.append(route))
    line.page.evaluate(GRAPH)

    line.page.locator("[data-whole-link]").press("Enter")

    line.wait(lambda: len(routes) == 1)
    assert "whole=1" in routes[0].request.url
    assert line.page.url == EMPTY


def test_a_cancelled_pointer_ends_a_drag(line: Line) -> None:
    line.page.evaluate(DRAGGED)
    pointer = """([selector, type, clientX]) => document.querySelector(selector).dispatchEvent(
      new PointerEvent(type, { bubbles: true, pointerType: "pen", clientX, clientY: 20 }))"""

    for selector in (".graph-scroll", ".waterfall-scroll"):
        for kind, x in (("pointerdown", 20), ("pointermove", 60), ("pointercancel", 60), ("pointermove", 90)):
            line.page.evaluate(pointer, [selector, kind, x])

    expect(line.page.locator("[data-dragged]")).to_have_count(0)
    expect(line.page.locator(".brush")).to_have_count(0)


def test_a_moment_after_a_redaction_is_the_last_one_that_was_wanted(line: Line) -> None:
    moments: list[str] = []

    def respond(route: Route) -> None:
        moments.append(route.request.url.partition("at=")[2])
        if len(moments) <= 2:
            route.fulfill(status=503)
        else:
            route.fulfill(body='<p data-moment data-gaps="" data-head="9">then</p>')

    line.page.route("**/past?*", respond)
    line.page.evaluate(TIMERS)
    line.page.evaluate(PLAYHEAD)
    line.wait(lambda: len(line.requests) == 1)

    send(line, 10, "event.redacted")
    strip = line.page.locator("[data-moment-failed]")
    expect(strip).to_contain_text("Event 3 could not be shown")
    line.page.locator("input").fill("5")
    expect(strip).to_contain_text("Event 5 could not be shown")
    run_timer(line)

    expect(line.page.locator("play-head")).to_have_attribute("data-at", "5")
    expect(strip).to_be_hidden()
    assert (moments, line.page.evaluate("redactions")) == (["3", "5", "5"], 1)


@pytest.mark.parametrize(("status", "is_repeated"), [(403, False), (404, False), (429, True), (503, True)])
def test_only_what_may_succeed_later_is_requested_again(line: Line, status: int, is_repeated: bool) -> None:
    line.page.route("**/past?*", lambda route: route.fulfill(status=status))
    line.page.evaluate(TIMERS)
    line.page.evaluate(PLAYHEAD)
    line.wait(lambda: len(line.requests) == 1)

    send(line, 10, "event.redacted")
    expect(line.page.locator("[data-moment-failed]")).to_contain_text("could not be shown")

    assert line.page.evaluate("timers.length") == is_repeated


PRESENCE = """async () => {
  document.body.innerHTML = `<header><conversation-presence hidden><span class="marks"></span><span data-words></span>
    </conversation-presence><span data-presence-status></span></header>`;
  await import("/static/js/conversation-presence.js");
  const { watchRedactions } = await import("/static/js/redaction-watch.js");
  watchRedactions({ topic: "stream:c", after: "4", epoch: "e" }, () => {});
}"""


def test_who_types_is_shown_to_a_reader_who_has_left_the_newest_events(line: Line) -> None:
    line.page.evaluate(PRESENCE)
    line.wait(lambda: len(line.requests) == 1)
    presence = line.page.locator("conversation-presence")

    line.send(t="presence", topic="stream:c", people=[{"name": "anna", "letters": "A", "state": "typing"}])
    expect(presence).to_contain_text("is typing")
    line.routes[-1].close(code=1006)

    expect(presence).to_be_hidden()


def test_the_page_of_a_call_is_loaded_again_after_a_redaction(line: Line) -> None:
    requests: list[str] = []
    line.page.on("request", lambda request: requests.append(request.url) if "/outcome" in request.url else None)
    line.page.evaluate(CALL)
    line.wait(lambda: len(line.requests) == 1)

    send(line, 5, "tool_step", status="start")
    send(line, 6, "event.redacted")

    line.page.wait_for_function("!document.querySelector('call-outcome')")
    assert requests == [], "the start of another call ends none"


def test_the_page_of_a_call_is_loaded_again_after_a_restore(line: Line) -> None:
    line.page.evaluate(CALL)
    line.wait(lambda: len(line.requests) == 1)

    line.send(t="reset", topic="stream:c", epoch="f")

    line.page.wait_for_function("!document.querySelector('call-outcome')")


def test_an_outline_requested_before_a_redaction_is_not_shown_after_it(line: Line) -> None:
    routes: list[Route] = []
    line.page.route("**/outline?*", lambda route: routes.append(route))
    line.page.evaluate(OUTLINE)
    line.page.get_by_role("button", name="Outline").click()
    line.wait(lambda: len(routes) == 1)
    line.page.get_by_role("button", name="Facts").click()

    line.page.evaluate("document.dispatchEvent(new CustomEvent('record:redacted'))")
    routes[0].fulfill(body='<ol data-outline-page data-head="4">before</ol>')
    line.page.wait_for_load_state("networkidle")
    line.page.get_by_role("button", name="Outline").click()

    line.wait(lambda: len(routes) == 2)
    routes[1].fulfill(body='<ol data-outline-page data-head="5">after</ol>')
    expect(line.page.locator("transcript-outline")).to_have_text("after")


def test_a_reader_who_went_elsewhere_is_not_taken_back_to_the_newest_events(line: Line) -> None:
    routes: list[Route] = []
    line.page.route("**/entries*", lambda route: routes.append(route))
    line.page.evaluate(TIMERS)
    line.page.evaluate(PAGES)
    page = {"html": "", "first": 3, "last": 9, "has_older": False, "has_newer": False, "head": 9, "epoch": "e"}

    line.page.evaluate("void pages.reloadNewest()")
    line.wait(lambda: len(routes) == 1)
    wanted = "new CustomEvent('page:wanted', { detail: { seq: 3 } })"
    line.page.evaluate(f"document.querySelector('main').dispatchEvent({wanted})")
    line.wait(lambda: len(routes) == 2)
    for route, html in zip(routes, ("newest", "wanted"), strict=True):
        route.fulfill(json={**page, "html": html})
    line.page.wait_for_function("globalThis.shown === 'wanted'")

    assert line.page.evaluate("timers.length") == 0


def test_an_older_page_is_dropped_if_rows_were_unloaded_meanwhile(line: Line) -> None:
    queries: list[str] = []
    routes: list[Route] = []
    page = {"html": "older", "first": 1, "last": 4, "has_older": False, "has_newer": True, "head": 9, "epoch": "e"}
    line.page.route("**/entries*", lambda route: (routes.append(route), queries.append(route.request.url)))
    line.page.evaluate(PAGES)
    line.page.evaluate("document.querySelector('[data-older]').click()")
    line.wait(lambda: len(routes) == 1)

    line.page.evaluate("pages.trim()")  # the oldest row is event 7 now
    routes[0].fulfill(json=page)

    line.wait(lambda: len(routes) == 2)
    assert line.page.evaluate("globalThis.shown") is None
    assert [address.partition("?")[2] for address in queries] == ["before=5", "before=7"]
    routes[1].fulfill(json=page)
    line.page.wait_for_function("globalThis.shown === 'older'")


ENTRIES = """<div data-outline-page data-head="{}" data-start="1"><ol>{}</ol></div>"""
ENTRY = """<li data-key="{0}" style="height: 300px"><a href="#e{0}" data-outline="{0}">event {0}</a></li>"""


def test_a_refreshed_outline_keeps_the_focus_and_the_scroll_position(line: Line) -> None:
    routes: list[Route] = []
    line.page.route("**/outline?*", lambda route: routes.append(route))
    line.page.evaluate(OUTLINE)
    line.page.evaluate("""document.body.insertAdjacentHTML("afterbegin",
      `<div class="column"><p data-seq="1" aria-current="true"></p></div>`)""")
    outline, first = line.page.locator("transcript-outline"), line.page.get_by_role("link", name="event 1", exact=True)
    outline.evaluate("(element) => (element.style = 'display: block; height: 300px; overflow: auto')")
    line.page.evaluate(TIMERS)
    line.page.get_by_role("button", name="Outline").click()
    line.wait(lambda: len(routes) == 1)
    routes[0].fulfill(body=ENTRIES.format(9, "".join(map(ENTRY.format, range(1, 9)))))
    expect(first).to_have_attribute("aria-current", "location")
    line.page.get_by_role("link", name="event 5").focus()
    place = outline.evaluate("(element) => element.scrollTop")
    assert place > 300

    line.page.evaluate("""document.dispatchEvent(new CustomEvent("transcript:drawn", { detail: { seq: 10 } }))""")
    run_timer(line)
    line.wait(lambda: len(routes) == 2)
    routes[1].fulfill(body=ENTRIES.format(10, "".join(map(ENTRY.format, range(1, 11)))))

    expect(line.page.get_by_role("link", name="event 10")).to_be_attached()
    expect(line.page.get_by_role("link", name="event 5")).to_be_focused()
    line.page.evaluate("document.activeElement.blur()")
    line.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert outline.evaluate("(element) => element.scrollTop") == place
    expect(first).to_have_attribute("aria-current", "location")
