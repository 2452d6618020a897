"""One server and one signed-in browser for the tests of this folder; and, for a file that asks for it, a server of its
own with a team (`served`), and windows of two people at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.browser import EMPTY, Faults, serve_scripts, sign_in, team_server
from tests.browser.socket_line import Line
from tests.browser.windows import Windows
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


@pytest.fixture(scope="session")
def empty_browser(chromium: Browser) -> Iterator[BrowserContext]:
    """A browser that finds the scripts, not in a secure context, without a server."""
    context = chromium.new_context()
    serve_scripts(context)
    yield context
    context.close()


@pytest.fixture(scope="session")
def empty_windows(empty_browser: BrowserContext) -> Windows:
    """Its windows."""
    return Windows(empty_browser)


@pytest.fixture
def empty_page(empty_windows: Windows) -> Iterator[Page]:
    """An empty page that has the scripts."""
    with empty_windows.lent() as window:
        window.goto(EMPTY)
        yield window


@pytest.fixture(scope="session")
def only_line(empty_browser: BrowserContext) -> Line:
    """The other end of the sockets of empty pages."""
    return Line(empty_browser)


@pytest.fixture
def line(only_line: Line, empty_windows: Windows) -> Iterator[Line]:
    """An empty page and the other end of its socket."""
    with empty_windows.lent() as window:
        only_line.begin(window)
        yield only_line


@pytest.fixture
def timed_line(chromium: Browser) -> Iterator[Line]:
    """The same in a browser of its own, whose clock the test sets."""
    context = chromium.new_context()
    serve_scripts(context)
    line = Line(context)
    line.begin(context.new_page())
    yield line
    context.close()


@pytest.fixture(scope="session")
def windows(owner: BrowserContext) -> Windows:
    """The owner's windows."""
    return Windows(owner)


@pytest.fixture
def page(windows: Windows, faults: Faults) -> Iterator[Page]:
    """A window of the owner; nothing may have gone wrong in it at the end."""
    faults.noted.clear()
    with windows.lent() as window:
        yield window
    assert faults.noted == []


@pytest.fixture
def lenient_page(windows: Windows) -> Iterator[Page]:
    """A window of the owner where a page may be refused: nobody notes its errors."""
    with windows.lent() as window:
        yield window


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


@pytest.fixture(scope="module")
def desk_windows(desk: BrowserContext) -> Windows:
    """The owner's windows at it."""
    return Windows(desk)


@pytest.fixture(scope="module")
def second_windows(second_desk: BrowserContext) -> Windows:
    """The second person's."""
    return Windows(second_desk)


@pytest.fixture
def window(desk_windows: Windows) -> Iterator[Page]:
    """A window of the owner."""
    with desk_windows.lent() as page:
        yield page


@pytest.fixture
def second_window(second_windows: Windows) -> Iterator[Page]:
    """A window of the second person."""
    with second_windows.lent() as page:
        yield page
