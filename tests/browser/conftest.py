"""A real Chromium before a real server. Without one these tests skip, saying the remedy; with `CI` set they fail."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.live import Server

HERE = Path(__file__).parent
REMEDY = "no Chromium found: apt-get install chromium (or set CHROMIUM_PATH)"
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()
WIDE = {"width": 1440, "height": 900}


def find_chromium() -> str | None:
    """Answer the path of a Chromium: `$CHROMIUM_PATH`, else the first of the usual names."""
    return os.environ.get("CHROMIUM_PATH") or next(filter(None, map(shutil.which, NAMES)), None)


CHROMIUM = find_chromium()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; skip them where they cannot run."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if CHROMIUM is None and not os.environ.get("CI"):
                item.add_marker(pytest.mark.skip(reason=REMEDY))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One browser process for all tests."""
    if CHROMIUM is None:
        pytest.fail(REMEDY)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server for the tests that leave it running."""
    started = Server().start()
    yield started
    started.terminate()


@pytest.fixture(scope="session")
def token(server: Server) -> str:
    """What publishes to it."""
    return server.token()


@pytest.fixture(scope="session")
def owner(chromium: Browser, server: Server) -> Iterator[BrowserContext]:
    """The owner's browser: signed in by the link that the server printed. Its cache stays warm between tests."""
    context = chromium.new_context(base_url=server.url, viewport=WIDE)
    link = re.search(r"http\S+/sign-in/link/\S+", server.output())
    assert link, server.output()
    page = context.new_page()
    page.goto(link[0])
    page.wait_for_url(lambda url: "/sign-in/" not in url)
    page.close()
    yield context
    context.close()


@pytest.fixture
def page(owner: BrowserContext) -> Iterator[Page]:
    """A fresh wide window of the owner. The test fails when it reported an error that no lost server explains."""
    window = owner.new_page()
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    window.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    yield window
    window.evaluate("() => localStorage.clear()")
    window.close()
    assert [error for error in errors if "ERR_" not in error] == []


@pytest.fixture
def plain_page(chromium: Browser, owner: BrowserContext, server: Server) -> Iterator[Page]:
    """The owner's window in a browser that runs no scripts."""
    context = chromium.new_context(base_url=server.url, storage_state=owner.storage_state(), java_script_enabled=False)
    yield context.new_page()
    context.close()
