"""What needs a person: the first group of the list, the inbox in its order, the number in the tab."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, work
from tests.support.live import Server

ROWS = ".fleet > .conversation"


def ask(server: Server, *keys: str) -> None:
    work(server, "\n".join(f"t.ask(o, {key!r}, client_id='1', approval_id={key!r})" for key in keys))


def decide(server: Server, key: str) -> None:
    work(server, f"from conversations.runs.approvals import decide; decide.decide(o, {key!r}, 'reject')")


def group(page: Page, key: str) -> str:
    """Return the heading under which a conversation stands, as text."""
    row = page.locator(f'[data-key="{key}"]')
    return str(
        row.evaluate(
            "(row) => { let at = row; while (!at.matches('[data-group]')) at = at.previousElementSibling;"
            " return at.hidden ? 'hidden' : at.dataset.group }"
        )
    )


def open_list(page: Page, address: str = "/") -> None:
    page.goto(address)
    page.mouse.move(1, 1)
    page.wait_for_selector("live-state[data-state=live]")


@pytest.mark.slow
def test_a_question_moves_its_conversation_to_the_top_and_its_decision_back(served: Server, window: Page) -> None:
    work(served, "for n in range(3): t.say(o, f'quiet-{n}', client_id='1')")
    open_list(window)
    expect(window.locator(ROWS)).to_have_count(3)
    expect(window).not_to_have_title(re.compile(r"\("))
    icon = window.locator("link[rel=icon]")
    quiet = icon.get_attribute("href")

    ask(served, "older", "newer")

    expect(window.locator(ROWS).first).to_have_attribute("data-key", "older")
    expect(window.locator(ROWS).nth(1)).to_have_attribute("data-key", "newer")
    assert group(window, "older") == group(window, "newer") == "attention"
    expect(window.locator('[data-key="older"] .tag').first).to_contain_text("approval")
    expect(window).to_have_title(re.compile(r"^\(2\) "))
    assert icon.get_attribute("href") != quiet
    assert in_every_look(window, "the list") == {}

    decide(served, "older")
    expect(window.locator(ROWS).first).to_have_attribute("data-key", "newer")
    assert group(window, "older") == "live"
    decide(served, "newer")
    expect(window.locator('[data-group="attention"]')).to_be_hidden()
    expect(window).not_to_have_title(re.compile(r"\("))
    assert icon.get_attribute("href") == quiet


@pytest.mark.thorough
def test_the_inbox_begins_with_the_oldest_and_a_new_question_comes_last(served: Server, window: Page) -> None:
    ask(served, "first", "second")
    open_list(window, "/approvals/")
    keys = "(rows) => rows.map((row) => row.dataset.key)"
    assert window.locator("[data-requests] > [data-key]").evaluate_all(keys) == ["first", "second"]

    ask(served, "third")

    expect(window.locator("[data-requests] > [data-key]")).to_have_count(3)
    assert window.locator("[data-requests] > [data-key]").evaluate_all(keys) == ["first", "second", "third"]
    for key in ("first", "second", "third"):
        decide(served, key)


@pytest.mark.slow
def test_the_keyboard_leads_to_the_request_of_a_conversation(served: Server, window: Page) -> None:
    ask(served, "keyed")
    block = window.locator(".approval")
    open_list(window, "/conversations/keyed/")

    window.keyboard.press("Tab")
    expect(window.locator(":focus")).to_have_text("Go to the request")
    window.keyboard.press("Enter")
    expect(block).to_be_focused()
    window.keyboard.press("Tab")
    assert block.evaluate("(block) => block.contains(document.activeElement)")
    window.locator(".transcript").focus()
    window.keyboard.press("n")
    expect(block).to_be_focused()

    open_list(window, "/conversations/keyed/?view=graph")
    window.keyboard.press("Tab")
    expect(window.locator(":focus")).to_have_text("Go to the request")
    window.keyboard.press("n")
    expect(block).to_be_focused()
    decide(served, "keyed")
    expect(window.locator("[data-to-request]:not([hidden])")).to_have_count(0)
    window.locator(".transcript").focus()
    window.keyboard.press("Tab")
    expect(window.locator(":focus")).to_have_accessible_name("Link to event 1")


@pytest.mark.slow
def test_n_goes_from_one_request_to_the_next(served: Server, window: Page) -> None:
    ask(served, "next-1", "next-2")
    open_list(window, "/approvals/")

    expect(window.locator(".question")).to_be_visible()
    for key in ("next-1", "next-2", "next-1"):
        window.keyboard.press("n")
        expect(window.locator(f'.question[data-key="{key}"] .approval')).to_be_focused()

    expect(window.locator("[data-news]")).to_have_text("")  # nothing came meanwhile
    for key in ("next-1", "next-2"):
        decide(served, key)


@pytest.mark.slow
def test_whoever_decides_by_keyboard_goes_on_with_the_next_question(served: Server, window: Page) -> None:
    ask(served, "one", "two")
    open_list(window, "/approvals/")
    window.locator('.question[data-key="one"]').get_by_role("button", name="Reject").focus()

    window.keyboard.press("Enter")

    expect(window.locator('[data-decided] [data-key="one"]')).to_contain_text("rejected by owner")
    expect(window.locator('.question[data-key="two"] .approval')).to_be_focused()
    expect(window.get_by_role("status").filter(has_text="Rejected: file_incident.")).to_be_visible()
    decide(served, "two")


@pytest.mark.slow
def test_enter_rejects_from_the_reason_and_decides_from_no_other_field(served: Server, window: Page) -> None:
    ask(served, "reason-enter")
    open_list(window, "/conversations/reason-enter/")
    expect(window.get_by_label("Reason for rejecting file_incident")).to_be_visible()

    window.get_by_label("Note for the record").press("Enter")
    window.keyboard.press("Escape")
    expect(window.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    window.locator("#e1 .seq").focus()
    window.keyboard.press("r")
    window.keyboard.type("Already filed")
    window.keyboard.press("Enter")

    expect(window.locator(".verdict")).to_contain_text("by owner")
    expect(window.locator(".verdict")).to_contain_text("Already filed")


@pytest.mark.slow
def test_the_tools_identity_is_folded_below_its_card(served: Server, window: Page) -> None:
    work(served, "t.ask(o, 'layers', client_id='1', approval_id='layers', origin='mcp', mcp_server='city-desk')")
    open_list(window, "/approvals/")
    details = window.locator('.question[data-key="layers"] details', has_text="Tool details")
    expect(details.get_by_text("city-desk")).to_be_hidden()

    details.locator("summary").press("Enter")

    expect(details.locator("div", has_text="MCP server")).to_contain_text("city-desk")
    decide(served, "layers")


@pytest.mark.thorough
def test_a_question_that_policy_denies_by_now_offers_no_approval(served: Server, window: Page) -> None:
    ask(served, "denied")
    deny = "from conversations.runs.policy.edit_policy import set_policy\n"
    deny += "from conversations.runs.policy.evaluate import PolicyRule\n"
    work(served, deny + "set_policy(o, PolicyRule('', 'file_incident', 'deny'))")
    open_list(window, "/approvals/")

    card = window.locator('.question[data-key="denied"]')

    expect(card).to_contain_text("Policy denies this call")
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(card.get_by_role("button", name="Reject")).to_be_visible()
    work(
        served,
        "from conversations.runs.policy.edit_policy import remove_policy; remove_policy(o, ('', 'file_incident'))",
    )
    decide(served, "denied")


@pytest.mark.thorough
def test_the_palette_names_a_page_and_what_waits_there_apart(served: Server, window: Page) -> None:
    ask(served, "palette")
    open_list(window)
    window.keyboard.press("Control+k")

    option = window.get_by_role("option").filter(has_text="Approvals")

    expect(option.locator("> span").first).to_have_text("Approvals")
    expect(option.locator("small")).to_have_text("1 waiting")
    decide(served, "palette")


@pytest.mark.thorough
def test_a_new_filter_clears_the_selection(served: Server, window: Page) -> None:
    work(served, "for n in range(2): t.say(o, f'picked-{n}', client_id='1')")
    open_list(window)
    window.locator('[data-key="picked-0"] .pick input').check()
    expect(window.locator("#bulk [data-count]")).to_have_text("1 selected")

    window.get_by_placeholder("Title, ID or text").fill("picked-1")

    expect(window.locator(ROWS)).to_have_count(1)
    expect(window.locator("#bulk")).to_have_attribute("data-none", "")


@pytest.mark.slow
def test_no_row_moves_when_the_first_is_picked(served: Server, window: Page) -> None:
    work(served, "for n in range(3): t.say(o, f'still-{n}', client_id='1')")
    open_list(window)
    place = "(row) => row.getBoundingClientRect().top"
    row = window.locator('[data-key="still-1"]')
    before = row.evaluate(place)

    row.locator(".pick input").check()
    expect(window.locator("#bulk [data-count]")).to_be_visible()

    assert row.evaluate(place) == before
    last = window.locator(ROWS).last
    last.scroll_into_view_if_needed()
    window.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    bar = window.locator("#bulk").bounding_box() or {}
    box = last.bounding_box() or {}
    assert box["y"] + box["height"] <= bar["y"]  # the last row can be reached under it


@pytest.mark.thorough
def test_the_dialog_that_asks_for_a_reason_has_its_parts_in_place(served: Server, window: Page) -> None:
    work(served, "t.say(o, 'reason', client_id='1')")
    open_list(window)
    window.locator('[data-key="reason"] .pick input').check()
    window.locator("#bulk").get_by_role("button", name="Abort").click()
    dialog = window.locator("dialog.reason")

    boxes = [dialog.locator(part).bounding_box() or {} for part in ("h2", "[data-close]", "button[value=do]", ":scope")]
    title, close, button, whole = boxes

    assert abs(title["y"] + title["height"] / 2 - close["y"] - close["height"] / 2) < 4  # on one line
    assert title["x"] >= whole["x"] + 12
    assert button["x"] + button["width"] <= whole["x"] + whole["width"] - 12
    assert in_every_look(window, "the reason dialog") == {}


@pytest.mark.thorough
def test_a_long_title_keeps_most_of_its_row(served: Server, window: Page) -> None:
    ask(served, "long")
    work(served, "Conversation.objects.filter(key='long').update(title='A very long name of a conversation ' * 5)")
    open_list(window)

    share = window.locator('[data-key="long"] h3').evaluate(
        "(title) => title.querySelector('a').getBoundingClientRect().width / title.getBoundingClientRect().width"
    )

    assert share >= 0.6
    decide(served, "long")


WATCH = """
  globalThis.shown = [];
  globalThis.Notification = class extends EventTarget {
    static permission = "default";
    static async requestPermission() { return (this.permission = "granted"); }
    constructor(title, options) { super(); shown.push([title, options.body]); }
    close() {}
  };
  Object.defineProperty(document, "hidden", { get: () => globalThis.isAway === true });
"""


@pytest.mark.thorough
def test_a_notification_is_shown_only_to_who_wants_it_and_looks_elsewhere(served: Server, window: Page) -> None:
    window.add_init_script(WATCH)
    window.goto("/")
    badge = window.locator("[data-waiting] > span").last
    before = int(badge.inner_text() or 0)

    def wait_for(number: int, key: str, *, is_away: bool) -> None:
        window.evaluate("(isAway) => (globalThis.isAway = isAway)", is_away)
        work(served, f"t.ask(o, {key!r}, client_id='1')")
        expect(badge).to_have_text(str(before + number))

    wait_for(1, "unasked", is_away=True)
    assert window.evaluate("shown") == []
    window.get_by_role("button", name="Account: owner").click()
    window.get_by_role("button", name="Notifications: off").click()
    expect(window.get_by_role("button", name="Notifications: on")).to_be_visible()
    wait_for(2, "in-sight", is_away=False)
    assert window.evaluate("shown") == []
    wait_for(3, "away", is_away=True)

    assert window.evaluate("shown") == [["Switchboard", f"{before + 3} requests are waiting for your approval."]]


@pytest.mark.thorough
def test_a_row_shows_its_last_hour_and_each_new_event_in_it(served: Server, window: Page) -> None:
    work(served, "for n in range(3): t.say(o, 'sparkling', client_id=str(n))")
    open_list(window)
    spark = window.locator('[data-key="sparkling"] .spark').get_by_role("img")
    expect(spark).to_have_attribute("aria-label", re.compile(r"^\d+ events in the last hour$"))
    before = spark.get_attribute("aria-label") or ""

    work(served, "t.say(o, 'sparkling', client_id='4')")

    expect(spark).not_to_have_attribute("aria-label", before)
    assert in_every_look(window, "a row with its last hour") == {}


@pytest.mark.thorough
def test_an_imported_row_is_not_marked_unread_until_something_comes(
    served: Server, window: Page, tmp_path: Path
) -> None:
    recording = tmp_path / "recording.json"
    recording.write_text(json.dumps([{"role": "user", "content": "Where is **my** bus?"}] * 3))
    served.command("import", str(recording))
    open_list(window)
    row = window.locator('[data-key="recording"]')
    expect(row.get_by_role("link")).to_have_text("Where is my bus?")
    expect(row.locator(".unread")).to_be_hidden()

    window.reload()  # the list asks for the markers of rows that come and come back
    window.wait_for_selector("live-state[data-state=live]")
    expect(row.locator(".unread")).to_be_hidden()
    work(served, "t.say(o, 'recording', client_id='1')")

    expect(row.locator("[data-unread-count]")).to_have_text("1")


@pytest.mark.slow
def test_who_comes_back_finds_what_they_missed_and_dismisses_it_by_keyboard(served: Server, window: Page) -> None:
    ask(served, "missed")
    open_list(window)
    expect(window.locator(".since-left")).to_have_count(0)
    away = "from conversations.models import Visit; from django.db.models import F\n"
    work(served, f"{away}Visit.objects.update(last_at=F('last_at') - 3_600_000_000)")
    open_list(window)
    panel = window.get_by_role("region", name="Since you left")

    expect(panel.get_by_role("heading", name="Asked, still waiting")).to_be_visible()
    assert in_every_look(window, "since you left") == {}
    request = panel.get_by_role("link").and_(panel.locator('[href^="/conversations/missed/"]')).first
    expect(request).to_have_attribute("href", re.compile(r"\?event=\d+#e\d+$"))
    request.click()
    expect(window).to_have_url(re.compile("/conversations/missed/"))
    open_list(window)
    panel.get_by_role("button", name="Dismiss").focus()
    window.keyboard.press("Enter")

    expect(panel).to_have_count(0)
    open_list(window)
    expect(panel).to_have_count(0)
    decide(served, "missed")
