"""The tool-calls page and the numbers in a real browser: live rows, filters by keyboard, zones, exports, axe."""

import csv
import io
import json
import re
import urllib.request
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import LOOKS, covered, violations
from tests.support.live import Server

NAMES = ("geo.locate", "refund", "بحث", "a_very_long_tool_name_" + "x" * 80)


def call(server: Server, token: str, number: int, **fields: Any) -> None:
    """Publish a call and its end; every third fails."""
    name = fields.pop("name", NAMES[number // 2 % len(NAMES)])
    step = {"event": "tool_step", "conversation_id": "calls", "agent": "Permit Desk", "name": name}
    step |= {"tool_call_id": f"call-{number}"}
    end = {"status": "error", "error": "=503"} if number % 3 == 0 else {"status": "success", "result_summary": "paid"}
    usage = {"event": "output", "conversation_id": "calls", "agent": "Permit Desk", "text": "Paid.", "model": "m"}
    for payload in (
        {**step, "status": "start", "args": {"who": "Ada", "number": number}},
        {**step, **end, "duration_ms": 40.0 * number, **fields},
        {**usage, "usage": {"input_tokens": 100, "output_tokens": number + 1}},
    ):
        assert server.publish(token, "stream:calls", payload)[0] == 201


@pytest.fixture(scope="module")
def calls(server: Server, token: str) -> Server:
    """A server with some calls."""
    for number in range(1, 9):
        call(server, token, number)
    return server


def rows(page: Page) -> Any:
    """The rows of the list."""
    return page.locator(".call-table [data-key]")


@pytest.mark.slow
def test_a_title_is_cut_only_where_the_row_has_no_room(page: Page, calls: Server, token: str) -> None:
    """Arguments and outcomes give way to it."""
    message = {
        "type": "message",
        "sender": "Ada",
        "recipient": "agent:Desk",
        "content": "Is the library open on Saturday?",
    }
    step = {"event": "tool_step", "agent": "Desk", "name": "roomy", "tool_call_id": "r1"}
    done = {"status": "success", "result_summary": "open until 20, closed on holidays " * 5}
    for payload in (message, {**step, "status": "start", "args": {"what": "library " * 40}}, {**step, **done}):
        assert calls.publish(token, "stream:roomy", payload)[0] == 201
    page.goto("/calls/?tool=roomy")
    title = rows(page).get_by_role("link", name="Is the library open on Saturday?")

    assert title.evaluate("(link) => link.scrollHeight - link.clientHeight") <= 0
    assert rows(page).evaluate("(row) => row.offsetHeight") < 40, "one line"
    assert page.locator(".table-frame").evaluate("(frame) => frame.scrollWidth - frame.clientWidth") == 0


def test_a_new_call_comes_by_itself_and_waits_while_somebody_reads(page: Page, calls: Server, token: str) -> None:
    page.goto("/calls/?tool=live")
    expect(page.get_by_text("No call matches")).to_be_visible()

    call(calls, token, 100, name="live")
    expect(rows(page)).to_have_count(1)
    rows(page).first.get_by_role("link").first.focus()
    call(calls, token, 101, name="live")

    pill = page.get_by_role("button", name="1 new call")
    expect(pill).to_be_visible()
    expect(rows(page)).to_have_count(1)
    assert covered(page, "[data-changed]", ":is([data-list], .filterbar label)") == []
    pill.click()
    expect(rows(page)).to_have_count(2)
    expect(rows(page).first).to_contain_text('"number": 101')


def test_arguments_have_room_to_tell_calls_apart(page: Page, calls: Server) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/calls/?agent=Permit+Desk")  # titles of other modules' conversations may be longer

    assert page.locator(".call-table td.fit.code").first.evaluate("(cell) => cell.offsetWidth") >= 11 * 16


@pytest.mark.parametrize("width", [1024, 1280, 1440])
def test_who_decided_stays_on_one_line_with_the_name(page: Page, calls: Server, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/calls/")
    page.locator(".call-table td.fit.quiet > span").first.evaluate("""(outcome) => {
      const make = (name, text, ...children) => {
        const element = document.createElement(name);
        element.append(text, ...children);
        return element;
      };
      const mark = make("span", "OW");
      Object.assign(mark, { className: "mark" });
      Object.assign(mark.dataset, { kind: "operator", size: "small" });
      outcome.prepend(Object.assign(make("span", "by ", mark, make("bdi", "owner")), { className: "who" }));
    }""")
    who = page.locator(".call-table .who", has_text="by ")

    assert who.evaluate("(who) => who.offsetHeight") < 24
    assert page.locator(".table-frame").evaluate("(frame) => frame.scrollWidth - frame.clientWidth") == 0
    if width >= 1280:
        assert who.locator("bdi").evaluate("(name) => name.scrollWidth - name.clientWidth") <= 0, "the name is not cut"


@pytest.mark.parametrize(("motion", "running"), [("reduce", 0), ("no-preference", 1)])
def test_nothing_moves_for_who_prefers_reduced_motion(
    chromium: Browser, owner: BrowserContext, calls: Server, token: str, motion: Any, running: int
) -> None:
    step = {"event": "tool_step", "agent": "Desk", "name": f"at-work-{motion}", "tool_call_id": "w", "status": "start"}
    assert calls.publish(token, f"stream:at-work-{motion}", step)[0] == 201
    state = owner.storage_state()
    context = chromium.new_context(base_url=calls.url, storage_state=state, reduced_motion=motion)
    page = context.new_page()
    page.goto(f"/calls/?tool=at-work-{motion}")
    expect(rows(page)).to_contain_text("running")

    animations = page.evaluate("document.getAnimations().filter((each) => each.playState === 'running').length")
    context.close()

    assert min(animations, 1) == running


def test_a_click_anywhere_in_a_row_opens_the_call(page: Page, calls: Server) -> None:
    page.goto("/calls/?tool=refund")
    page.locator("[data-cell=duration]").first.click()

    expect(page).to_have_url(re.compile(r"/calls/[^/?]+/$"))


@pytest.mark.thorough
def test_every_column_is_in_sight_on_a_small_laptop(page: Page, calls: Server) -> None:
    page.set_viewport_size({"width": 1100, "height": 800})
    page.goto("/calls/")
    frame, last = page.locator(".table-frame"), page.locator("[data-cell=in]").first

    assert (
        last.bounding_box()["x"] + last.bounding_box()["width"]
        <= frame.bounding_box()["x"] + frame.bounding_box()["width"]
    )


@pytest.mark.slow
def test_filters_work_by_the_keyboard_alone_and_live_in_the_address(page: Page, calls: Server) -> None:
    page.goto("/calls/")

    page.get_by_role("checkbox", name=re.compile("failed")).focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile(r"/calls/\?status=failed$"))
    expect(page.get_by_role("checkbox", name=re.compile("failed"))).to_be_focused()
    page.get_by_role("checkbox", name=re.compile("refund")).focus()
    page.keyboard.press("Space")
    expect(page).to_have_url(re.compile("tool=refund&status=failed|status=failed&tool=refund"))
    expect(rows(page).filter(has_not_text="failed")).to_have_count(0)
    expect(rows(page).first).to_contain_text("failed")
    page.get_by_label("At least").first.focus()
    page.keyboard.type("soon")
    expect(page.get_by_role("heading", name="Invalid filter")).to_be_visible()
    expect(page.get_by_label("At least").first).to_have_value("soon")
    expect(page.get_by_label("At least").first).to_be_focused()

    page.get_by_role("link", name="Clear all").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/calls/")  # till it is loaded: keys are its scripts'
    page.keyboard.press("j")
    expect(rows(page).first.get_by_role("link").first).to_be_focused()


@pytest.mark.thorough
def test_times_are_typed_in_the_viewers_zone_and_kept_in_utc(chromium: Browser, calls: Server, owner: Any) -> None:
    state = owner.storage_state()
    context = chromium.new_context(base_url=calls.url, storage_state=state, timezone_id="Asia/Kathmandu")
    page = context.new_page()
    page.goto("/calls/")

    page.get_by_label("From").fill("2026-01-02T05:45")

    expect(page).to_have_url(re.compile(re.escape("from=2026-01-02T00%3A00Z")))
    page.reload()
    expect(page.get_by_label("From")).to_have_value("2026-01-02T05:45")
    expect(page.get_by_text(re.compile("in your time, Asia/Kat"))).to_be_visible()
    context.close()


@pytest.mark.thorough
def test_a_view_is_saved_and_used(page: Page, calls: Server) -> None:
    page.goto("/calls/")
    page.get_by_role("checkbox", name=re.compile("failed")).check()
    expect(page).to_have_url(re.compile("status=failed"))

    page.get_by_role("button", name="Saved views").click()
    page.get_by_label("Name of the new view").fill("What failed")
    with page.expect_navigation():
        page.get_by_role("button", name="Save", exact=True).click()

    expect(page).to_have_url(re.compile(r"/calls/\?status=failed$"))
    page.goto("/calls/")
    page.get_by_role("button", name="Saved views").click()
    page.get_by_role("link", name="What failed").click()
    expect(page).to_have_url(re.compile(r"\?status=failed$"))


@pytest.mark.slow
def test_the_list_stays_live_after_a_view_was_refused(lenient_page: Page, calls: Server) -> None:
    page = lenient_page
    page.goto("/calls/?status=failed")
    for _ in range(2):
        page.get_by_role("button", name="Saved views").click()
        page.get_by_label("Name of the new view").fill("Twice")
        with page.expect_navigation():
            page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("There is already a view named 'Twice'")).to_be_visible()

    expect(page).to_have_url(re.compile(r"/calls/\?status=failed$"))


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1440])
def test_saved_views_open_under_their_button(page: Page, calls: Server, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto("/calls/")
    button = page.get_by_role("button", name="Saved views")

    button.click()

    views, above = page.locator("#views").bounding_box(), button.bounding_box()
    assert views
    assert above
    assert views["y"] >= above["y"] + above["height"]
    assert views["x"] >= 0
    assert views["x"] + views["width"] <= width


def test_the_export_is_streamed_and_is_what_the_list_shows(calls: Server, token: str) -> None:
    def fetched(form: str) -> str:
        address = f"{calls.url}/calls/export/{form}?status=failed&agent=Permit+Desk&tool=refund&tool=geo.locate"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.headers["Transfer-Encoding"] == "chunked"
            return str(answer.read().decode())

    lines = [json.loads(line) for line in fetched("jsonl").splitlines()]
    table = list(csv.DictReader(io.StringIO(fetched("csv"), newline="")))
    listed = calls.request("GET", "/api/v1/tool-calls?status=failed&tool=refund&tool=geo.locate", token=token)[1]

    assert lines == listed["items"]
    assert [row["id"] for row in table] == [line["id"] for line in lines]
    assert {row["error"] for row in table} == {"'=503"}


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_nothing_spills(calls: Server, lenient_page: Page, scheme: Any, width: int) -> None:
    page = lenient_page
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 844})
    faults = []
    few = "/calls/?agent=Permit+Desk"  # not those of other modules, too: axe-core looks at every cell
    for address in (few, "/calls/?agent=nobody", "/calls/?min_ms=x&status=done", "/numbers/?last=1h"):
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if address == few and width < 1000:
            page.get_by_role("button", name="Filters").click()
            expect(page.get_by_label("Run ID")).to_be_visible()
        for summary in page.locator(".behind > summary").all():
            summary.click()
        faults += violations(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address

    assert faults == []


@pytest.mark.thorough
def test_the_numbers_say_what_the_charts_show(page: Page, calls: Server) -> None:
    page.goto("/numbers/?last=1h")

    failed = page.locator(".figures > div", has_text="Failed")
    expect(failed).to_contain_text(re.compile(r"\d+ \(\d+\.\d %\)"))
    chart = page.get_by_role("img", name=re.compile("^Calls: .* failed"))
    expect(chart).to_be_visible()
    page.locator("figure", has_text="Tokens by agent").get_by_text("Show as table").click()
    expect(page.get_by_role("region", name="Tokens by agent, as a table")).to_contain_text("Permit Desk")
    page.get_by_role("link", name="Show these calls").click()
    expect(rows(page).first).to_be_visible()


@pytest.mark.thorough
def test_without_scripts_it_reads_and_filters(plain_page: Page, calls: Server) -> None:
    plain_page.goto("/calls/")
    plain_page.get_by_role("searchbox").fill("503")
    plain_page.get_by_role("checkbox", name=re.compile("failed")).check()
    plain_page.get_by_role("button", name="Filter").first.click()

    expect(plain_page).to_have_url(re.compile("status=failed"))
    expect(rows(plain_page).first).to_contain_text("=503")


HELD = """
with connection.cursor() as cursor:
    cursor.execute('''CREATE TRIGGER held BEFORE UPDATE ON conversations_conversation
WHEN NEW.indexed_seq<>OLD.indexed_seq BEGIN SELECT RAISE(ABORT,'the index is held'); END''')
"""
LET_GO = """
with connection.cursor() as cursor:
    cursor.execute('DROP TRIGGER held')
"""


@pytest.mark.slow
def test_a_call_is_listed_by_its_words_once_it_is_searchable(page: Page, calls: Server, token: str) -> None:
    """Without another event, whenever the search index gets to it."""
    page.goto("/calls/?q=lantern")
    expect(page.locator("live-state[data-state=live]")).to_be_visible()
    calls.command("shell", "-v0", "-c", f"from django.db import connection{HELD}")
    try:
        with page.expect_response("**part=list*") as response_info:
            call(calls, token, 40, name="lantern")
        assert response_info.value.ok
        expect(page.locator("[data-behind]")).to_be_attached()
        expect(rows(page)).to_have_count(0)
    finally:
        calls.command("shell", "-v0", "-c", f"from django.db import connection{LET_GO}")

    expect(rows(page)).to_have_count(1)
    expect(page.locator("[data-behind]")).not_to_be_attached()
