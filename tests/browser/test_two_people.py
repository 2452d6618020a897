"""Two people at two browsers, by keyboard alone: who sees what the other does, who loses politely, and what becomes of
words when the server is killed between them and the record."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser import in_every_look, team_server, work
from tests.browser.test_composer import MESSAGES
from tests.support.live import Server

TABS = 60  # presses after which a button counts as out of reach
BEGUN = "c = t.claim({key!r})"
ANSWERED = """
from tests.support import held_run
c = t.claim({key!r})
ended = {{"event": "run.done"}}
held_run.finish(c, ended, {{"event": "output", "text": "It is filed.", "turn": 1, "final": True}})
"""
COUNT = "print(Event.objects.filter(conversation__key={key!r}, kind='message', principal='user:maria').count())"
FAILED = """
from conversations.runs.claims import Claim
from tests.support import held_run
r = Run.objects.get(conversation__key="fate", status="running")
c = Claim(r.id, r.attempt, "fate", r.agent, r.kind, r.input_seq, None, None, None)
held_run.finish(c, {"event": "run.failed", "reason": "no street"})
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a team whose worker is played by commands; what nobody begins with is late after a second."""
    with team_server(SWITCHBOARD_LATE_S="1") as started:
        yield started


@pytest.fixture
def owner(window: Page) -> Page:
    """A fresh window of the owner."""
    return window


@pytest.fixture
def maria(second_window: Page) -> Page:
    """A fresh window of maria."""
    return second_window


def both_at(key: str, *pages: Page) -> None:
    """Open a conversation in every window and wait until it is live."""
    for page in pages:
        page.goto(f"/conversations/{key}/")
        expect(page.locator("live-state")).to_have_attribute("data-state", "live")


def press(page: Page, button: Locator) -> None:
    """Go to a button by the Tab key and press it."""
    expect(button).to_be_enabled()
    for _ in range(TABS):
        if button.evaluate("(button) => button === document.activeElement"):
            page.keyboard.press("Enter")
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"not within {TABS} tabs: {button}")


def field(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def write(page: Page, words: str) -> None:
    """Type into the field; how one gets there is no part of it."""
    field(page).focus()
    page.keyboard.type(words)


def send(page: Page) -> None:
    page.keyboard.press("Control+Enter")


def fate(page: Page, words: str) -> Locator:
    """What became of the message with these words."""
    return page.locator(".event[data-kind=message]", has_text=words).locator("[data-delivery]")


@pytest.mark.thorough
def test_they_see_each_other_come_type_and_go(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.say(o, 'meet')")
    both_at("meet", owner)
    here = owner.locator("conversation-presence")
    expect(here).to_be_hidden()

    both_at("meet", maria)
    expect(here).to_have_text(re.compile("maria.? is viewing"))
    expect(maria.locator("conversation-presence")).to_have_text(re.compile("owner.? is viewing"))
    write(maria, "I am on it")
    expect(here).to_have_text(re.compile("maria.? is typing"))
    expect(owner.locator("[data-presence-status]")).to_have_text(re.compile("maria.? is typing"))

    maria.goto("/")
    expect(here).to_be_hidden()


@pytest.mark.thorough
def test_the_second_to_decide_is_told_who_was_first(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.ask(o, 'race', client_id='1')")
    owner.route_web_socket(re.compile("/ws/"), lambda ws: ws.close())  # it does not hear of the decision
    owner.goto("/conversations/race/")
    both_at("race", maria)

    press(maria, maria.get_by_role("button", name="Reject"))
    expect(maria.locator(".verdict")).to_have_text(re.compile("rejected ?by maria"))
    press(owner, owner.get_by_role("button", name="Approve"))

    expect(owner.get_by_text(re.compile("maria already decided: reject"))).to_be_visible()
    decided = "print(*Approval.objects.filter(conversation__key='race').values_list('decision', 'decided_by'))"
    assert work(served, decided).strip().splitlines()[-1] == "('reject', 'user:maria')"


@pytest.mark.thorough
def test_one_takes_over_and_hands_back_before_the_others_eyes(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.say(o, 'wheel')")
    both_at("wheel", owner, maria)

    maria.keyboard.press("t")
    expect(maria.get_by_role("dialog")).to_be_visible()
    maria.keyboard.type("I know her")
    press(maria, maria.get_by_role("dialog").get_by_role("button", name="Take over"))

    expect(owner.locator("[data-standing]")).to_contain_text(re.compile("maria took over, .*: I know her"))
    expect(fate(owner, "Water on Elm Street")).to_contain_text(
        re.compile("Not picked up by Dialogue, .*: maria took over")
    )
    expect(maria.get_by_role("dialog")).to_be_hidden()
    expect(maria.get_by_role("button", name="Hand back")).to_be_visible()  # from here on the key means this
    maria.keyboard.press("t")
    expect(owner.locator("[data-standing]")).to_contain_text(re.compile(r"^\s*Queued"))
    work(served, ANSWERED.format(key="wheel"))
    expect(fate(owner, "Water on Elm Street")).to_contain_text("Answered by Dialogue")


@pytest.mark.thorough
def test_words_outlive_a_killed_server_and_are_said_once(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.say(o, 'kept')\n" + ANSWERED.format(key="kept"))
    both_at("kept", owner, maria)

    def store_and_lose(route: Route) -> None:
        route.fetch()  # it is stored, and the server is killed before its answer comes
        served.kill()
        route.abort()

    maria.route(MESSAGES, store_and_lose, times=1)
    write(maria, "Is anybody there?")
    send(maria)
    expect(maria.get_by_text("Not sent. The server did not respond.")).to_be_visible()
    expect(field(maria)).to_have_value("Is anybody there?")
    send(maria)
    expect(maria.get_by_text("Not sent. The server did not respond.")).to_be_visible()

    served.start()
    expect(maria.get_by_text("Reconnected.")).to_be_visible()
    expect(fate(owner, "Is anybody there?")).to_have_attribute("data-state", "late")
    maria.reload()
    expect(maria.get_by_text("Draft saved.")).to_be_visible()
    field(maria).focus()
    send(maria)

    expect(maria.get_by_text(re.compile("Sent as event"))).to_be_visible()
    expect(maria.locator(".event[data-kind=message]", has_text="Is anybody there?")).to_have_count(1)
    assert work(served, COUNT.format(key="kept")).strip().splitlines()[-1] == "1"


@pytest.mark.thorough
def test_what_becomes_of_a_message_is_told_live_and_after_a_kill(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.say(o, 'fate')\n" + ANSWERED.format(key="fate"))
    both_at("fate", owner, maria)
    write(maria, "And the cellar?")
    send(maria)
    for page in (owner, maria):
        expect(fate(page, "And the cellar?")).to_contain_text(re.compile("Not picked up by Dialogue"))

    work(served, BEGUN.format(key="fate"))
    for page in (owner, maria):
        expect(fate(page, "And the cellar?")).to_have_text(re.compile("Picked up by Dialogue"))

    served.kill()
    work(served, FAILED)
    served.start()
    for page in (owner, maria):
        expect(fate(page, "And the cellar?")).to_contain_text("Dialogue failed: no street")
    owner.reload()

    press(owner, fate(owner, "And the cellar?").get_by_role("button", name="Run again"))
    expect(fate(maria, "And the cellar?")).to_contain_text("Not picked up by Dialogue")
    work(served, ANSWERED.format(key="fate"))
    expect(fate(maria, "And the cellar?")).to_contain_text("Answered by Dialogue")
    press(maria, fate(maria, "And the cellar?").get_by_role("link"))
    expect(maria.locator(".event:is(:target, [aria-current=true])")).to_contain_text("It is filed.")  # as it is marked


@pytest.mark.thorough
def test_who_answers_what_was_just_answered_is_asked_first(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.fail(o, 'twice')")
    both_at("twice", owner, maria)
    write(owner, "Come at nine")
    write(maria, "Come at ten")
    send(maria)
    expect(owner.locator(".event", has_text="Come at ten")).to_be_visible()

    send(owner)
    expect(owner.get_by_text(re.compile("maria replied at .* while you were typing"))).to_be_visible()
    expect(field(owner)).to_have_value("Come at nine")
    expect(owner.locator(".event[data-kind=message]", has_text="Come at nine")).to_have_count(0)
    expect(owner.locator("conversation-presence")).to_be_visible()
    expect(fate(owner, "Water on Elm Street").get_by_role("button", name="Run again")).to_be_visible()
    assert in_every_look(owner, "asked") == {}
    expect(owner.get_by_role("button", name="Send anyway")).to_be_focused()
    owner.keyboard.press("Enter")

    expect(owner.locator(".event[data-kind=message]", has_text="Come at nine")).to_be_visible()
    expect(field(owner)).to_have_value("")


@pytest.mark.thorough
def test_several_are_stopped_at_once_and_the_other_sees_it(served: Server, owner: Page, maria: Page) -> None:
    work(served, "t.say(o, 'b1'); t.say(o, 'b2'); " + BEGUN.format(key="b1"))
    both_at("b2", maria)
    owner.goto("/")
    for key in ("b1", "b2"):
        owner.locator(f"[data-key={key}] a").first.focus()
        owner.keyboard.press("x")
    expect(owner.get_by_text("2 selected")).to_be_visible()

    press(owner, owner.locator("#bulk").get_by_role("button", name="Stop after this turn"))

    expect(owner.get_by_text("2 of 2 done.")).to_be_visible()
    expect(fate(maria, "Water on Elm Street")).to_contain_text("Dialogue was stopped")
