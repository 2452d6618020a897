"""Recordings of the three sample families play live before two people at once, and both see the same."""

import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page

from tests.support.live import ROOT, Server, until

FILES = (
    "who-and-when/Hand-Crafted/54.json",
    "tau-bench/MockAirlineDomainEnv-few_shot.jsonl",
    "tau2-bench/telecom_gpt-4o_20sims.json.gz",
)
OPTIONS = ("--speed", "300", "--tokens", "--limit", "1", "--conversation")
SEQS = "() => [...document.querySelectorAll('.rows > [data-seq]')].map((row) => row.dataset.seq)"


@pytest.fixture
def players(server: Server):
    """One `play` for each family, one conversation each, quick; ended at the end."""
    missing = [name for name in FILES if not (Path(settings.SAMPLES_DIR) / name).exists()]
    if missing:
        pytest.skip(f"no sample data: {missing[0]} is not in {settings.SAMPLES_DIR}")
    started = [
        subprocess.Popen(
            [sys.executable, "manage.py", "play", str(Path(settings.SAMPLES_DIR) / name), *OPTIONS, f"family-{i}"],
            cwd=ROOT,
            env=server.env(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i, name in enumerate(FILES)
    ]
    yield started
    for player in started:
        player.kill()
        player.communicate()


def watch(context: BrowserContext, page: Page, key: str) -> Page:
    """Open a conversation and wait until it follows the tail."""
    page.goto(f"/conversations/{key}/")
    page.wait_for_selector("live-transcript:not([data-has-newer])")
    return page


@pytest.mark.thorough
def test_three_families_play_live_in_two_browsers(
    chromium: Browser, owner: BrowserContext, server: Server, players
) -> None:
    keys = [f"family-{i}" for i in range(len(FILES))]

    def exist() -> bool:
        with server.database() as database:
            marks = ",".join("?" * len(keys))
            count = database.execute(f"SELECT COUNT(*) FROM conversations_conversation WHERE key IN ({marks})", keys)
            return bool(count.fetchone()[0] == len(keys))

    until(exist, within=120, what="all three conversations")
    other = chromium.new_context(base_url=server.url, storage_state=owner.storage_state())
    pages = {key: [watch(c, c.new_page(), key) for c in (owner, other)] for key in keys}
    for player in players:
        _, errors = player.communicate(timeout=60)
        assert player.returncode == 0, errors

    for key, both in pages.items():
        head = server.rows("SELECT head_seq FROM conversations_conversation WHERE key=?", [key])[0][0]
        for page in both:
            drawn = page.locator("live-transcript")
            until(
                lambda drawn=drawn, head=head: int(drawn.get_attribute("data-head") or 0) >= head,
                what=f"{key} at {head}",
            )
        first, second = (page.evaluate(SEQS) for page in both)
        least = min(len(first), len(second))
        assert least > 5
        assert first[-least:] == second[-least:]
        for page in both:
            page.close()
    other.close()
