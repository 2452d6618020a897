"""The first five minutes: what this is, the demo's call, a token, the first event."""

import json
import re
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import Faults, sign_in, violations, work
from tests.support.live import Server

DEMO = """
from conversations.core import principals
from conversations.events import log
from conversations.import_export import demo_script
from dashboard import demo
opened = {"event": "conversation.opened", "id": "o", "title": "Dark footpath", "demo": True}
log.append([demo._recorded("demo-1", opened)])
call = {"run_id": "r", "agent": "Format Coordinator"}
asked = {"event": "approval.requested", "approval_id": "a", "tool_call": "t", "name": "file_incident"}
asked |= {"args": {"incident_type": "street lighting", "severity_level": 3, "lamps": []}}
"""
ASK = """
run = call | {"run_kind": "recording"}
bodies = [
    {"event": "run.queued", "input_seq": 1, **run},
    {"event": "run.started", "attempt": 1, "worker": "demo", **run},
    asked | call | {"args_raw": "{}", "why": "it sends out a crew"},
    {"event": "run.waiting", "reason": "approval", **call},
]
demo._request("demo-1", [body | {"id": str(n)} for n, body in enumerate(bodies)], demo_script.FILE_INCIDENT)
"""


@pytest.fixture
def fresh() -> Iterator[Server]:
    """A server on its first day."""
    started = Server(SWITCHBOARD_TEAMS="").start()
    yield started
    started.terminate()


@pytest.fixture
def newcomer(chromium: Browser, fresh: Server) -> Iterator[BrowserContext]:
    context = chromium.new_context(base_url=fresh.url, viewport={"width": 1440, "height": 900})
    sign_in(fresh, context)
    yield context
    context.close()


def test_from_the_first_page_to_the_first_event(fresh: Server, newcomer: BrowserContext) -> None:
    work(fresh, DEMO)
    faults, page = Faults(newcomer, fresh), newcomer.new_page()
    page.goto("/")
    steps = page.get_by_role("region", name="First steps")
    expect(steps).to_contain_text("Switchboard shows what your AI agents do, live, and lets people step in")
    expect(steps).to_contain_text("a recording with made-up people")

    demo = newcomer.new_page()
    demo.goto("/conversations/demo-1/")
    expect(demo.locator(".conversation-head .tag")).to_have_text("demo recording")
    expect(demo.get_by_text("Your turn: approve this call.")).to_be_hidden()
    work(fresh, DEMO.replace("log.append", "0 and log.append") + ASK)
    expect(demo.get_by_text("Your turn: approve this call.")).to_be_visible()

    link = steps.get_by_role("link", name="approve this call")
    expect(link).to_be_visible()
    assert violations(page) == []
    link.click()
    page.get_by_role("button", name="Approve", exact=True).first.click()
    expect(demo.locator("[data-next-step]")).to_have_text("Next step: connect your agent")  # nor that it was decided

    page.goto("/")
    steps.get_by_role("link", name="Now connect your agent").click()
    page.get_by_label("Name of your agent").fill("Scout")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_text("Waiting for your first event")).to_be_visible()
    assert violations(page) == []
    run_lines(page)

    page.get_by_role("link", name="Open it").click()
    expect(page.get_by_role("log").get_by_text("Hello from Scout.")).to_be_visible()
    page.goto("/")
    expect(steps).to_have_count(0)
    assert faults.noted == []


def run_lines(page: Page) -> None:
    """Do what the page says, in a shell."""
    lines = [page.get_by_label(f"Line {number}").input_value() for number in (1, 2, 3)]
    done = subprocess.run(["/bin/sh", "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


@pytest.mark.thorough
def test_the_steps_are_dismissed_for_good_by_keyboard(newcomer: BrowserContext) -> None:
    page = newcomer.new_page()
    page.goto("/")
    button = page.get_by_role("button", name="Dismiss")
    expect(button).to_be_visible()

    button.press("Enter")
    expect(button).to_have_count(0)
    page.reload()

    expect(page.get_by_role("heading", name="Conversations", exact=True)).to_be_visible()
    expect(button).to_have_count(0)


@pytest.mark.thorough
def test_on_a_phone_nothing_spills_and_the_sign_in_page_says_what_this_is(
    chromium: Browser, fresh: Server, newcomer: BrowserContext
) -> None:
    work(fresh, DEMO + ASK)
    page = newcomer.new_page()
    page.set_viewport_size({"width": 360, "height": 780})
    for path in ("/", "/connect/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert violations(page) == []

    stranger = chromium.new_context(base_url=fresh.url).new_page()
    stranger.goto("/sign-in/")
    expect(stranger.get_by_text(re.compile("See what your AI agents do, live"))).to_be_visible()
    stranger.context.close()
