"""One server and one signed-in browser for the tests of this folder; and, for a file that asks for it, a server of its
own with a team (`served`), and windows of two people at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.browser import Faults, open_empty_page, sign_in, team_server
from tests.support.live import Server
from tests.support.shared_servers import writers

HERE = Path(__file__).parent
WIDE = ViewportSize(width=1440, height=900)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start one server. A test that stops it starts it again."""
    started = writers.share("the browsers", Server().start())
    yield started
    started.terminate()


@pytest.fixture(scope="session")
def token(server: Server) -> str:
    """Make what publishes to it."""
    return server.token()


@pytest.fixture(scope="session")
def owner(chromium: Browser, server: Server) -> Iterator[BrowserContext]:
    """Sign the owner in. One context for all tests: its cache stays warm."""
    context = chromium.new_context(base_url=server.url, viewport=WIDE)
    sign_in(server, context)
    yield context
    context.close()


@pytest.fixture(scope="session")
def faults(owner: BrowserContext, server: Server) -> Faults:
    """Note what goes wrong in the owner's windows."""
    return Faults(owner, server)


@pytest.fixture
def empty_page(chromium: Browser) -> Iterator[Page]:
    """Open an empty page that has the scripts, not in a secure context, without a server."""
    context = chromium.new_context()
    window = context.new_page()
    open_empty_page(window)
    yield window
    context.close()


@pytest.fixture
def page(owner: BrowserContext, faults: Faults) -> Iterator[Page]:
    """Open a fresh window of the owner; nothing may have gone wrong in it at the end."""
    faults.noted.clear()
    window = owner.new_page()
    yield window
    window.evaluate("() => localStorage.clear()")
    window.close()
    assert faults.noted == []


@pytest.fixture
def plain_page(chromium: Browser, owner: BrowserContext, server: Server) -> Iterator[Page]:
    """Open the owner's window in a browser that runs no scripts."""
    context = chromium.new_context(base_url=server.url, storage_state=owner.storage_state(), java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    """A server of a file's own, with a team whose worker is played by commands."""
    with team_server() as started:
        yield started


@pytest.fixture(scope="module")
def desk(chromium: Browser, served: Server) -> Iterator[BrowserContext]:
    """The owner's browser at it."""
    context = chromium.new_context(base_url=served.url)
    sign_in(served, context)
    yield context
    context.close()


@pytest.fixture(scope="module")
def second() -> tuple[str, str]:
    """The second person's name and role; a file may have another."""
    return "maria", "admin"


@pytest.fixture(scope="module")
def second_desk(chromium: Browser, served: Server, second: tuple[str, str]) -> Iterator[BrowserContext]:
    """The second person's browser at it."""
    context = chromium.new_context(base_url=served.url)
    sign_in(served, context, *second)
    yield context
    context.close()


@pytest.fixture
def window(desk: BrowserContext) -> Iterator[Page]:
    """A fresh window of the owner."""
    page = desk.new_page()
    yield page
    page.close()


@pytest.fixture
def second_window(second_desk: BrowserContext) -> Iterator[Page]:
    """A fresh window of the second person."""
    page = second_desk.new_page()
    yield page
    page.close()
