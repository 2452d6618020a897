"""Speak, watch, decide, stop: the composer, questions and runs inside calls, the agents page in a real browser."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser import in_every_look, sign_in, work
from tests.support.live import Server, until

MESSAGES = "**/api/v1/conversations/*/messages"
LONG = "Wasser in der Unterführung " * 40 + "\n" + "مرحبا، الماء في الشارع " * 10 + "x" * 300


ASK = """
c = t.claim(Conversation.objects.get(title="Water on Elm Street").key)
from conversations.runs import claims
from conversations.events import log
turn = {"event": "model.turn", "turn": 1, "model": "demo", "demo": True, "tools": ["a"], "duration_ms": 9}
log.append([c.event(turn)])
claims.suspend(c, "approval", {"event": "approval.requested", "approval_id": "ask-" + c.run, "tool_call_id": "c1",
  "tool_call": claims.our_call_id(c.run, "c1", 1), **t.ASKED}, **t.SEALED)
"""


REJECTED = """
from conversations.access.accounts.people import create_person
from conversations.core.principals import SYSTEM
from conversations.runs.approvals import decide
create_person(SYSTEM, "april", ["approver"])
decide.decide(User.objects.get(username="april"), "ask-race", "reject")
"""


@pytest.mark.thorough
def test_a_report_is_written_watched_and_approved(served: Server, window: Page) -> None:
    window.goto("/")
    window.get_by_text("New conversation").click()
    window.get_by_label("First message").fill("Water on Elm Street\nIt rises.")
    window.get_by_label("First message").press("Control+Enter")
    expect(window.get_by_role("heading", name="Water on Elm Street")).to_be_visible()
    expect(window.get_by_text("It rises.")).to_be_visible()

    work(served, ASK)
    question = window.get_by_role("group", name="Approval request")
    expect(question.get_by_text("waiting for approval")).to_be_visible()
    question.get_by_label("Reason for rejecting").fill("go ahead")
    question.get_by_role("button", name="Approve").click()
    expect(question.locator(".verdict")).to_have_text(re.compile("approved ?by owner"))
    expect(question.get_by_role("button", name="Approve")).to_have_count(0)
    work(served, "t.go_on(Approval.objects.latest('decided_at'))")

    expect(window.get_by_text("It is filed.")).to_be_visible()
    expect(question.get_by_text("go ahead")).to_be_visible()
    window.get_by_label("Message", exact=True).fill("Thank you")
    window.get_by_role("button", name="Send").click()
    expect(window.locator("[data-said]", has_text=re.compile(r"Sent as event \d+"))).to_be_visible()
    expect(window.locator(".event", has_text="Thank you")).to_have_count(1)
    expect(window.get_by_label("Message", exact=True)).to_have_value("")


@pytest.mark.slow
def test_words_that_could_not_be_sent_stay_and_are_said_once(served: Server, window: Page) -> None:
    work(served, "t.say(o, 'kept', client_id='1')")
    window.goto("/conversations/kept/")
    words: list[str] = []

    def lose(route: Route) -> None:
        words.append(json.loads(route.request.post_data or "")["client_id"])
        if len(words) == 1:
            route.abort()
        elif len(words) == 2:
            route.fetch()  # it is stored, and the answer is lost
            route.abort()
        else:
            route.continue_()

    window.route(MESSAGES, lose)
    field = window.get_by_label("Message", exact=True)
    field.fill("Is anybody there?")
    for _ in range(2):
        window.get_by_role("button", name="Send").click()
        expect(window.get_by_text("Not sent.")).to_be_visible()
        expect(field).to_have_value("Is anybody there?")
    window.reload()
    expect(window.get_by_text("Draft saved.")).to_be_visible()
    expect(field).to_have_value("Is anybody there?")
    window.get_by_role("button", name="Send").click()

    expect(window.get_by_text(re.compile("Sent as event"))).to_be_visible()
    assert len(words) == 3
    assert len(set(words)) == 1
    expect(window.locator(".event", has_text="Is anybody there?")).to_have_count(1)


@pytest.mark.slow
def test_two_quick_presses_say_it_once_and_enter_makes_a_line(served: Server, window: Page) -> None:
    work(served, "t.say(o, 'quick', client_id='1')")
    window.goto("/conversations/quick/")
    field = window.get_by_label("Message", exact=True)
    field.fill("one")
    field.press("Enter")
    field.press_sequentially("two")
    expect(field).to_have_value("one\ntwo")

    window.evaluate("() => { const f = document.querySelector('.composer'); f.requestSubmit(); f.requestSubmit(); }")

    expect(window.get_by_text(re.compile("Sent as event"))).to_be_visible()
    expect(window.locator(".event .said", has_text="two")).to_have_count(1)


@pytest.mark.thorough
def test_who_may_not_sees_the_question_and_no_control(chromium: Browser, served: Server) -> None:
    work(served, "t.ask(o, 'seen', client_id='1'); t.fail(o, 'broke', client_id='1')")
    context = chromium.new_context(base_url=served.url)
    sign_in(served, context, "vera", "viewer")
    page = context.new_page()

    page.goto("/conversations/seen/")
    question = page.get_by_role("group", name="Approval request")
    expect(question.get_by_text("Only approvers and admins can decide on this request.")).to_be_visible()
    expect(question.get_by_text("Elm").last).to_be_visible()  # what it would be called with
    expect(question.locator("form, button:not([data-copy]), input, a.button")).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_count(0)
    page.goto("/conversations/broke/")
    expect(page.get_by_text("no such street").first).to_be_visible()
    expect(page.get_by_role("button", name="Run again")).to_have_count(0)
    context.close()


@pytest.mark.thorough
def test_who_comes_second_is_told_who_was_first(served: Server, window: Page) -> None:
    work(served, "t.ask(o, 'race', client_id='1')")
    window.route_web_socket("**/ws/", lambda wire: wire.close())
    window.goto("/conversations/race/")
    question = window.get_by_role("group", name="Approval request")
    expect(question.get_by_role("button", name="Approve")).to_be_visible()
    work(served, REJECTED)

    question.get_by_role("button", name="Approve").click()

    expect(window.get_by_text("april already decided: reject")).to_be_visible()
    expect(question.locator(".verdict")).to_have_text(re.compile("rejected ?by april"))
    expect(question.get_by_role("button", name="Approve")).to_have_count(0)


@pytest.mark.thorough
def test_what_failed_is_run_again_from_the_transcript(served: Server, window: Page) -> None:
    work(served, "t.fail(o, 'again', client_id='1')")
    window.goto("/conversations/again/")

    window.get_by_role("button", name="Run again").last.click()

    expect(window.get_by_text("queued to retry")).to_be_visible()
    expect(window.get_by_text("Running again.")).to_be_visible()
    finish = "held_run.finish(t.claim('again'), {'event': 'run.done'})"
    work(served, f"from tests.support import held_run\n{finish}")


@pytest.mark.slow
def test_the_list_and_the_navigation_tell_live_what_waits(served: Server, window: Page) -> None:
    window.goto("/")
    before = int(window.locator("[data-waiting] > span").last.inner_text() or 0)

    work(served, "t.ask(o, 'badge', client_id='1')")

    row = window.locator("[data-key=badge]")
    expect(row.locator(".tag", has_text=re.compile("^approval, "))).to_be_visible()
    expect(window.locator("[data-waiting] > span").last).to_have_text(str(before + 1))


@pytest.mark.slow
def test_without_scripts_one_speaks_and_decides_by_forms(chromium: Browser, served: Server, desk: Any) -> None:
    work(served, "t.ask(o, 'plain', client_id='1')")
    state = desk.storage_state()
    context = chromium.new_context(base_url=served.url, storage_state=state, java_script_enabled=False)
    page = context.new_page()
    page.goto("/conversations/plain/")
    page.get_by_label("Reason for rejecting").fill("not today")
    page.get_by_label("Reason for rejecting").press("Enter")
    expect(page.get_by_role("button", name="Reject")).to_be_visible()  # Enter decides nothing

    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("not today")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("A plain word")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("A plain word")).to_be_visible()
    page.goto("/")
    page.get_by_text("New conversation").click()
    page.get_by_label("First message").fill("Begun by a form")
    page.get_by_role("button", name="Start").click()

    expect(page.get_by_role("heading", name="Begun by a form")).to_be_visible()
    context.close()


FULL = f"""
from conversations.runs.approvals import decide as approvals
from conversations.events import log
from tests.support import held_run
t.ask(o, "looks", client_id="1", why={LONG!r}, args={{"street": {LONG!r}, "position": None}}, name="file_" * 30)
approvals.decide(o, Approval.objects.get(conversation__key="looks").id, "reject", message={LONG!r})
held_run.finish(t.claim("looks"), {{"event": "run.failed", "reason": "error", "error": {LONG!r}}})
t.ask(o, "looks", client_id="2", approval_id="looks-2")
t.say(o, "looks", client_id="3", content={LONG!r})
"""


@pytest.mark.thorough
def test_pages_are_well_built_with_questions_failures_and_teams(served: Server, window: Page) -> None:
    work(served, FULL)
    faults: dict[str, Any] = {}
    window.goto("/conversations/looks/")
    expect(window.get_by_role("button", name="Approve")).to_be_visible()
    window.get_by_label("Message", exact=True).fill(LONG)
    window.locator(".approval[data-state=waiting]").last.scroll_into_view_if_needed()
    faults |= in_every_look(window, "conversation")
    window.goto("/")
    window.get_by_text("New conversation").click()
    faults |= in_every_look(window, "conversations")
    window.goto("/agents/")
    faults |= in_every_look(window, "agents")

    assert faults == {}


NEST = """
from conversations.events import log
c = t.claim(Conversation.objects.get(title="Nested").key)
step = {"event": "tool_step", "name": "ask_desk", "tool_call": "outer-" + c.run, "tool_call_id": "s", "args": {}}
at = {"agent": "Formatter", "turn": 2, "parent_call": "outer-" + c.run}
inner = {**step, **at, "name": "look", "tool_call": "inner-" + c.run}
for one in (
    {**step, "status": "start"}, {"event": "town_hall.stage", "stage": "triage", "agent": "Dialogue"},
    {"event": "token", "text": "Sor", "index": 0, **at}, {**inner, "status": "start"},
    {"event": "token", "text": "ted.", "index": 1, **at}, {"event": "output", "text": "Sorted.", **at},
    {"event": "model.turn", "model": "demo", "demo": True, "tools": [], **at, "parent_call": "inner-" + c.run},
    {**inner, "status": "success", "output": "seen"},
): log.append([c.event(one)])
"""
MORE = """
from conversations.events import log
from conversations.runs.claims import Claim
r = Run.objects.get(conversation__title="Nested")
c = Claim(r.id, r.attempt, r.conversation.key, r.agent, r.kind, r.input_seq, None, None, None)
at = {"agent": "Formatter", "turn": 3, "parent_call": "outer-" + c.run}
end = {"event": "tool_step", "name": "ask_desk", "tool_call": "outer-" + c.run, "tool_call_id": "s"}
for one in ({"event": "output", "text": "And more.", **at}, {**end, "status": "success", "output": "done"}):
    log.append([c.event(one)])
"""
TREE = """() => { const seqs = (root) => [...root.querySelectorAll(":scope > [data-seq]")].map((row) =>
  [row.dataset.seq, row.querySelector(":scope > .inner") ? seqs(row.querySelector(":scope > .inner")) : []]);
  return [...document.querySelectorAll(".rows")].flatMap(seqs); }"""


@pytest.mark.thorough
def test_what_happens_inside_a_call_grows_in_its_block_live_and_is_there_after_a_reload(
    served: Server, window: Page
) -> None:
    work(served, "t.say(o, 'nested'); Conversation.objects.filter(key='nested').update(title='Nested')")
    window.goto("/conversations/nested/")
    expect(window.locator("live-transcript")).to_have_attribute("data-head", re.compile("3"))

    work(served, NEST)
    outer = window.locator("#e5")
    expect(outer.locator(".inner", has_text="Sorted.").first).to_be_visible()
    outer.locator("summary").first.click()  # what a reader opened stays open while it goes on
    work(served, MORE)
    expect(outer.get_by_text("And more.")).to_be_visible()
    expect(outer.locator("> .body .tool")).to_have_attribute("data-state", "done")

    live = window.evaluate(TREE)
    expect(outer.locator("> .body .tool")).to_have_attribute("open", "")
    window.reload()
    expect(outer.get_by_text("And more.")).to_be_visible()
    assert live == window.evaluate(TREE)
    assert [len(inner) for seq, inner in live if seq == "5"] == [3]


@pytest.mark.slow
def test_a_question_is_withdrawn_before_the_eyes_of_who_would_decide_it(served: Server, window: Page) -> None:
    work(served, "t.ask(o, key='stopped')")
    window.goto("/conversations/stopped/")
    question = window.get_by_role("group", name="Approval request")
    expect(question.get_by_role("button", name="Approve")).to_be_visible()

    window.get_by_role("button", name="Stop this run").click()

    expect(question.locator(".verdict")).to_have_text(re.compile("withdrawn.*the run was stopped by owner"))
    expect(question.get_by_role("button", name="Approve")).to_have_count(0)
    expect(window.get_by_role("button", name="Run again").last).to_be_visible()
    expect(window.locator(".run > summary")).to_contain_text("stopped")


FAR = """
from conversations.events import log
t.say(o, "{key}"); c = t.claim("{key}")
step = {{"event": "tool_step", "name": "ask_desk", "tool_call": "{key}-call", "tool_call_id": "s", "args": {{}}}}
def lines(most, **more): return [c.event({{"event": "log", "text": f"line {{n}}", **more}}) for n in range(most)]
log.append([c.event({{**step, "status": "start"}})])
inside = {{"parent_call": "{key}-call"}}
"""
INNER = "() => [...document.querySelectorAll('#e5 > .inner > [data-seq]')].map((row) => Number(row.dataset.seq))"


def to_the_top(window: Page) -> bool:
    """Scroll up as far as it goes now; older pages come by themselves."""
    window.locator(".transcript").evaluate("(transcript) => { transcript.scrollTop = 0; }")
    return True


@pytest.mark.thorough
def test_rows_whose_call_is_on_an_older_page_go_into_its_block_when_that_is_loaded(
    served: Server, window: Page
) -> None:
    work(served, FAR.format(key="older") + "log.append([*lines(70, **inside), *lines(1), *lines(2, **inside)])")
    window.goto("/conversations/older/")
    expect(window.locator(".rows > [data-within]")).to_have_count(59)

    until(lambda: to_the_top(window) and window.locator("#e5").count(), what="the page with the call")

    expect(window.locator(".rows > [data-within]")).to_have_count(0)
    assert window.evaluate(INNER) == [*range(6, 76), 77, 78]
    rows = "() => [...document.querySelectorAll('.rows > [data-seq]')].map((row) => Number(row.dataset.seq))"
    assert window.evaluate(rows) == [1, 2, 3, 4, 5, 76]


@pytest.mark.faults
def test_a_row_inside_a_call_is_never_lost_when_the_call_is_unloaded_and_loaded_again(
    served: Server, window: Page
) -> None:
    work(served, FAR.format(key="far"))
    window.goto("/conversations/far/")
    expect(window.locator("#e5 > .inner")).to_have_count(1)

    go_on = "from conversations.runs.claims import Claim\nr = Run.objects.get(conversation__key='far')\n"
    go_on += "c = Claim(r.id, r.attempt, 'far', r.agent, r.kind, r.input_seq, None, None, None)\n"
    lines = FAR.format(key="far").splitlines()
    more = "log.append([*lines(300), *lines(1, parent_call='far-call'), *lines(600)])"
    work(served, "\n".join([lines[1], go_on, lines[4], more]))
    expect(window.locator("live-transcript")).to_have_attribute("data-head", "906", timeout=60000)

    expect(window.locator("#e5")).to_have_count(0)
    expect(window.locator(".rows > #e306[data-within]")).to_have_count(1)
    assert window.evaluate("() => document.querySelector('#e306').previousElementSibling.dataset.seq") == "305"
    until(lambda: to_the_top(window) and window.locator("#e5").count(), within=60, what="the page with the call")
    assert window.evaluate(INNER) == [306]
    assert window.evaluate("() => document.querySelector('#e305').nextElementSibling.dataset.seq") == "307"


@pytest.mark.slow
@pytest.mark.parametrize("by_key", [False, True], ids=["click", "key"])
def test_who_begins_a_conversation_types_into_it_at_once(window: Page, by_key: bool) -> None:
    window.goto("/")
    window.wait_for_function("Boolean(customElements.get('message-composer'))")
    summary = window.locator("summary", has_text="New conversation")
    if by_key:
        summary.press("Enter")
    else:
        summary.click()
    text = window.locator("message-composer textarea")
    expect(text).to_be_focused()

    window.keyboard.type("x marks the place")

    expect(text).to_have_value("x marks the place")
    text.fill("")  # or it is there as a draft again
