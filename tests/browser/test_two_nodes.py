"""Agents on Redis, over HTTP and in a process of ours, in one list; two browsers at two web processes; parts die."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import sign_in
from tests.support.deployment import START, Agent, Deployment, over_http, over_redis
from tests.support.live import Server, until
from tests.support.services import running

pytestmark = pytest.mark.timeout(300)

OURS = """
import time
from conversations.events import log
from conversations.core import principals
n = 0
while True:
    words = {"type": "message", "sender": "agent:Embedded", "recipient": "chat:ours", "content": f"word {n}"}
    try:
        log.append([log.from_internal("ours", words, principals.SYSTEM, topic="chat:ours")])
        n += 1
    except Exception:
        time.sleep(0.1)
    time.sleep(0.2)
"""
PAUSE = 0.2  # seconds: six open pages on a small machine keep up
KEYS = ("ours", "by-http", "by-redis")


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """Start everything once."""
    with running(Deployment()) as deployment:
        yield deployment


@pytest.fixture
def agents(deployment: Deployment) -> Iterator[list[Agent]]:
    """Three agents that go on talking: a process of ours, one over HTTP to node A, one on Redis."""
    log = deployment.home / "ours.log"
    ours = deployment.a.spawn(["shell", "--no-imports", "-c", OURS], log, log)
    others = [
        over_http(deployment.a, deployment.token, "by-http", PAUSE),
        over_redis(deployment.redis, "by-redis", PAUSE),
    ]
    for agent in others:
        agent.start()
    yield others
    for agent in others:
        agent.finish()
    ours.kill()
    ours.wait()


@pytest.fixture
def browsers(chromium: Browser, deployment: Deployment) -> Iterator[list[BrowserContext]]:
    """Two people: one at each node."""
    contexts = []
    for name, node in (("anna", deployment.a), ("berta", deployment.b)):
        context = chromium.new_context(base_url=node.url)
        sign_in(node, context, name)
        contexts.append(context)
    yield contexts
    for context in contexts:
        context.close()


def has_all(page: Page) -> bool:
    """Return whether the list shows all three."""
    return all(page.locator(f'.conversation[data-key="{key}"]').count() for key in KEYS)


def goes_on(page: Page, what: str) -> None:
    """Wait until an open conversation has grown by a few events."""
    drawn = page.locator("live-transcript")

    def head() -> int:
        return int(drawn.get_attribute("data-head") or 0)

    before = head()
    until(lambda: head() > before + 3, within=START, what=what)


def restart(node: Server) -> None:
    """Kill a node and start it again."""
    node.kill()
    node.launch()
    until(node._is_ready, within=START, what="the node to be back")


@pytest.mark.thorough
def test_three_kinds_of_agents_are_live_at_both_nodes_while_parts_die(
    deployment: Deployment, agents: list[Agent], browsers: list[BrowserContext]
) -> None:
    lists = [context.new_page() for context in browsers]
    for page in lists:
        page.goto("/")
        expect(page.locator("live-state")).to_have_text("Live")
        until(lambda page=page: has_all(page), within=START, what="all three in the list")
    open_pages = {}
    for context, keys in zip(browsers, (("by-redis", "ours"), ("by-http", "by-redis")), strict=True):
        for key in keys:
            page = context.new_page()
            page.goto(f"/conversations/{key}/")
            open_pages[page] = key
            goes_on(page, f"{key} to be live")

    deployment.redis.kill()
    deployment.redis.start()
    deployment.kill_active_recorder()
    restart(deployment.b)

    for page, key in open_pages.items():
        goes_on(page, f"{key} to go on after Redis, the recorder and node B died")
    for page in lists:
        expect(page.locator("live-state")).to_have_text("Live")
