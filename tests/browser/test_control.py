"""Steer: two people in two browsers, verbs over a selection, keys, alarms; every look of it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, team_server, violations, work
from tests.support.live import Server

CLAIM = "c = t.claim({!r})"
STANDING = re.compile("/standing/")
LONG = "Wasser in der Unterführung " * 9 + "\n" + "مرحبا، الماء في الشارع " * 9 + "x" * 200


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server with a team whose worker is played by commands."""
    with team_server(
        "t.team()\nfor key in ('flood', 'mill', 'park'): t.say(o, key)\n" + CLAIM.format("mill")
    ) as started:
        yield started


@pytest.fixture(scope="module")
def second() -> tuple[str, str]:
    """An operator."""
    return "otto", "operator"


@pytest.fixture
def owner(window: Page) -> Page:
    """A fresh window of the owner."""
    return window


@pytest.fixture
def otto(second_window: Page) -> Page:
    """A fresh window of the operator."""
    return second_window


@pytest.mark.slow
def test_one_takes_over_and_the_other_sees_it_live_and_hands_back(owner: Page, otto: Page) -> None:
    for page in (owner, otto):
        page.goto("/conversations/flood/")
        expect(page.locator("live-state")).to_have_attribute("data-state", "live")
    bar = owner.locator("[data-standing]")

    otto.get_by_role("button", name="Take over").click()
    otto.get_by_role("dialog", name="Agents wait until").get_by_role("textbox").fill("I know her")
    otto.get_by_role("dialog").get_by_role("button", name="Take over").click()
    expect(otto.locator("[data-standing]")).to_contain_text("You took over")
    expect(bar).to_contain_text(re.compile("otto took over, .*: I know her"))
    expect(owner.locator(".event", has_text="took over, agents paused")).to_be_visible()

    owner.get_by_role("button", name="Hand back").click()
    dialog = owner.get_by_role("dialog", name="otto took over.")
    dialog.get_by_role("button", name="Hand back").click()  # without a reason it stays
    expect(dialog).to_be_visible()
    dialog.get_by_role("textbox").fill("he has gone home")
    dialog.get_by_role("textbox").press("Tab")
    owner.keyboard.press("Enter")
    expect(otto.locator("[data-standing]")).to_contain_text(re.compile(r"^\s*Queued"))
    expect(otto.locator(".event", has_text="he has gone home")).to_be_visible()


@pytest.mark.slow
def test_keys_pause_and_resume_and_who_comes_second_is_told(owner: Page, otto: Page) -> None:
    owner.goto("/conversations/park/")
    otto.route(STANDING, lambda route: route.abort())  # a stale tab
    otto.goto("/conversations/park/")

    owner.keyboard.press("p")
    expect(owner.locator("[data-standing]")).to_contain_text("Paused by you")
    otto.get_by_role("button", name="Pause").click()
    expect(
        otto.get_by_text(re.compile(r"Not done\. The conversation is already paused: user:owner paused it at"))
    ).to_be_visible()
    otto.unroute(STANDING)
    owner.keyboard.press("p")
    for page in (owner, otto):
        expect(page.locator("[data-standing]")).to_contain_text(re.compile(r"^\s*Queued"))
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
    owner.keyboard.press("?")
    expect(owner.get_by_text("Stop after this turn").last).to_be_visible()


@pytest.mark.thorough
def test_a_selection_is_stopped_and_the_list_filtered_live(served: Server, owner: Page, otto: Page) -> None:
    otto.goto("/?state=paused")
    owner.goto("/")
    owner.locator("[data-key=flood] a").first.focus()
    owner.keyboard.press("x")
    expect(owner.locator("[data-key=flood] .pick input")).to_be_checked()
    owner.locator("[data-key=mill] .pick input").check()
    expect(owner.get_by_text("2 selected")).to_be_visible()

    owner.get_by_role("button", name="Pause").click()
    expect(owner.get_by_text("2 of 2 done.")).to_be_visible()
    expect(otto.locator("[data-key=flood]")).to_be_visible()
    expect(otto.locator("[data-key=park]")).to_have_count(0)
    owner.locator("[data-key=flood] .pick input").check()
    owner.locator("[data-key=mill] .pick input").check()
    owner.locator("#bulk").get_by_role("button", name="Stop after this turn").click()
    expect(owner.get_by_text("2 of 2 done.")).to_be_visible()

    stopped = "print(*Run.objects.filter(conversation__key__in=('flood','mill')).values_list('status', 'stop'))"
    assert "('running', 'stop')" in work(served, stopped)
    assert "('cancelled', '')" in work(served, stopped)


STUCK = f"""
from conversations.events import log
from conversations.runs import claims as calls
from conversations.conversation import control
t.say(o, "stuck", content={LONG!r}); {CLAIM.format("stuck")}
for n in range(6):
    step = {{"event": "tool_step", "name": "geo_locate" * 9, "tool_call": f"stuck-{{n}}", "tool_call_id": f"c{{n}}"}}
    calls.begin_execution(c, {{**step, "agent": "Dialogue", "status": "start", "args": {{"place": "Elm"}}, "turn": n}})
control.pause(o, "stuck", {LONG!r}); control.take_over(User.objects.get(username="otto"), "stuck", {LONG!r})
"""


@pytest.mark.thorough
def test_what_looks_stuck_is_said_and_stopped_with_one_click_and_looks_well(served: Server, owner: Page) -> None:
    work(served, STUCK)
    faults: dict[str, Any] = {}
    owner.goto("/conversations/stuck/")
    expect(owner.get_by_role("alert").filter(has_text="6 times with the same arguments")).to_be_visible()
    faults |= in_every_look(owner, "held")
    owner.goto("/")
    owner.locator("[data-key=stuck] .pick input").check()
    faults |= in_every_look(owner, "list")

    owner.locator("[data-key=stuck]").get_by_role("button", name="Stop").click()
    expect(owner.get_by_text("Stopping after this turn.")).to_be_visible()

    assert faults == {}
    assert violations(owner) == []
