"""Five programs that nobody here wrote, at once: an operator sees them all in the list, and decides one's question."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Faults, sign_in, violations
from tests.support import five_programs
from tests.support.five_programs import FivePrograms
from tests.support.live import Server, until
from tests.support.services import RedisServer

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
logger = logging.getLogger(__name__)
STARTED_MS = 240_000  # five interpreters import their frameworks, on a machine that may be busy


@pytest.fixture
def programs(redis_server: RedisServer) -> Iterator[FivePrograms]:
    """The five, not begun, beside a server on its first day."""
    server = Server(None, "--no-demo", SWITCHBOARD_REDIS_URL=redis_server.url, SWITCHBOARD_TEAMS="").start()
    with five_programs.started(server, redis_server) as programs:
        yield programs
    server.terminate()


def test_five_programs_are_in_one_list_and_one_is_answered(chromium: Browser, programs: FivePrograms) -> None:
    context = chromium.new_context(base_url=programs.server.url, viewport={"width": 1440, "height": 900})
    sign_in(programs.server, context)
    faults, page = Faults(context, programs.server), context.new_page()
    page.goto("/")

    began = time.monotonic()
    programs.begin()

    rows = page.locator("[data-item][data-key]")
    expect(rows).to_have_count(5, timeout=STARTED_MS)
    logger.info("all five are in the list %.1f s after they began", time.monotonic() - began)
    keys = {str(row.get_attribute("data-key")) for row in rows.all()}
    assert keys > set(programs.names.values())
    expect(page.locator(f'[data-key="{programs.names["agents-sdk"]}"]')).to_contain_text("approval,")
    assert violations(page) == []

    page.goto("/approvals/")
    expect(page.get_by_role("link", name="Restart service")).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).first.click()

    output, _ = programs.sdk.communicate(timeout=100)
    assert output == "Payments is up again.\n"
    page.goto("/")
    expect(page.locator(f'[data-key="{programs.names["agents-sdk"]}"]')).to_contain_text("Payments is up again.")
    expect(page.locator(f'[data-key="{programs.names["magent2"]}"]')).to_contain_text("Found two.")
    expect(page.locator(f'[data-key="{programs.names["langgraph"]}"]')).to_contain_text("Rainy.")
    expect(page.locator(f'[data-key="{programs.names["claude-code"]}"]')).to_contain_text("Added GET /health")
    (traced,) = keys - set(programs.names.values())
    expect(page.locator(f'[data-key="{traced}"]')).to_contain_text("Rainy.")
    until(lambda: len(programs.worker.read) == 1)
    assert faults.noted == []
    context.close()
