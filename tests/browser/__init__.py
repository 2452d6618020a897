"""A real Chromium for tests, and a way to be signed in at a real server. `chromium` is a fixture of every test."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, WebSocketRoute, expect, sync_playwright

from tests.support.live import Server, until
from tests.support.tiers import IS_SHORT

# the first opens a window with a tenth of the CPU
PATHS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
REMEDY = "no Chromium: apt-get install chromium-headless-shell (or set CHROMIUM_PATH)"
WITHIN_MS = 60_000  # for whatever is waited for: a busy machine is no failure
expect.set_options(timeout=WITHIN_MS)
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]

# What turns or blinks costs a fifth of a core for as long as it is in sight; `make test` asks for pages without.
MOTION: dict[str, Any] = {"reduced_motion": "reduce"} if IS_SHORT else {}


def found_path() -> str | None:
    """Return where Chromium is."""
    return os.environ.get("CHROMIUM_PATH") or next(filter(None, map(shutil.which, PATHS)), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Start Chromium once for the whole run (playwright allows one). None: skip with the remedy, or fail with `CI`."""
    path = found_path()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(REMEDY)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        make = browser.new_context

        def new_context(**options: Any) -> BrowserContext:
            context = make(**(MOTION | options))
            context.set_default_timeout(WITHIN_MS)
            return context

        browser.new_context = new_context  # type: ignore[method-assign]
        yield browser
        browser.close()


class Wires:
    """A page's sockets, which go to the server until they are cut."""

    def __init__(self, page: Page, *, is_cut: bool = False) -> None:
        self.open: list[WebSocketRoute] = []
        self.is_cut = is_cut
        page.route_web_socket("**/ws/", self._take)

    def _take(self, wire: WebSocketRoute) -> None:
        if self.is_cut:
            wire.close()
            return
        wire.connect_to_server()
        self.open.append(wire)

    def cut(self) -> None:
        """End those that are open, and let none through."""
        self.is_cut = True
        while self.open:
            self.open.pop().close()

    def mend(self) -> None:
        """Let the next one through."""
        self.is_cut = False


EMPTY = "http://static.test/"


def serve_scripts(browser: Page | BrowserContext, address: str = EMPTY) -> None:
    """Have a page find an empty document and our scripts at an address, without a server."""
    root = Path(__file__).resolve().parents[2]

    def serve(route: Route) -> None:
        path = root / "static" / route.request.url.partition("/static/")[2]
        kind = "text/javascript" if path.suffix == ".js" else "text/html"
        route.fulfill(body=path.read_text() if path.is_file() else "<!doctype html>", content_type=kind)

    browser.route(f"{address}**", serve)


def open_empty_page(page: Page) -> None:
    """Have a page that is empty and finds our scripts, without a server."""
    serve_scripts(page)
    page.goto(EMPTY)


NEWCOMER = """
from conversations.access.accounts.people import create_person
from conversations.core.principals import SYSTEM
from tests.support.visits import link_for
create_person(SYSTEM, {!r}, [{!r}])
print(link_for({!r}))
"""


BY_HAND = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}  # what a browser says of a link typed or clicked


def owners_link(server: Server) -> str:
    """Return the link of a server's first start; once it is printed, there is an owner."""
    link = until(lambda: re.search(r"One-time sign-in link: (\S+)", server.output()), what="the link")
    assert link
    return link[1]


def sign_in(server: Server, context: BrowserContext, name: str = "", role: str = "admin") -> None:
    """Sign somebody in by a link: the owner by the one of the first start, a new person by a command."""
    if name:
        printed = server.command("shell", "--no-imports", "-c", NEWCOMER.format(name, role, name))
        link = server.url + printed.strip().splitlines()[-1]
    else:
        link = owners_link(server)
    answer = context.request.get(link, headers=BY_HAND, max_redirects=0)
    assert answer.status == 302, answer.text()


BEFORE = f"""
from conversations.models import *
from tests.support import teamwork as t
IS_SHORT = {IS_SHORT}
o = User.objects.filter(username="owner").first()
"""


def work(server: Server, code: str) -> str:
    """Run lines beside the server: `t` is the team's work, `o` the owner."""
    return server.command("shell", "-v0", "-c", f"{BEFORE}\n{code}")


RENEW = """
import time
from conversations.core.database_clock import database_now
from conversations.models import Run
while True:
    Run.objects.filter(status="running").update(lease_until=database_now() + 14_000_000)
    print("renewed", flush=True)
    time.sleep(1)
"""  # as its worker would: a run without one is interrupted, not asked to stop


@contextmanager
def renewed(server: Server) -> Iterator[None]:
    """Renew the leases of all runs, once before it begins."""
    printed = server.data_dir / "renewed"
    printed.touch()
    process = server.spawn(["shell", "--no-imports", "-c", RENEW], printed, printed)
    try:
        until(lambda: "renewed" in printed.read_text(), what="the leases to be renewed")
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def team_server(begin: str = "t.team()", **settings: str) -> Iterator[Server]:
    """Start a server that runs no agents, and have `work` done there first; a run that is claimed stays so."""
    started = Server(SWITCHBOARD_TEAMS="", **settings).start()
    owners_link(started)
    with renewed(started):
        work(started, begin)
        yield started
    started.terminate()


# Each scheme and each width once; `make test` has one look, a narrow and dark one.
LOOKS = [("dark", 390)] if IS_SHORT else [("light", 390), ("dark", 1440)]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE: dict[str, Any] = {"runOnly": RULES, "preload": False, "resultTypes": ["violations"]}
"""How axe-core is run: what passes is not described, which is most of its time."""
PARSED_ONCE = """() => {
  const color = axe.commons.color.Color.prototype, parse = color.parseString, parsed = new Map();
  color.parseString = function (text) {
    if (!parsed.has(text)) {
      parse.call(this, text);
      parsed.set(text, [this.r, this.g, this.b, this.alpha]);
    }
    [this.r, this.g, this.b, this.alpha] = parsed.get(text);
    return this;
  };
}"""
"""Has axe-core parse each colour of a page once, where it parses those of each element and of all that is behind it."""


class Faults:
    """What pages must not have: errors, violations of the policy, requests elsewhere. A lost server is none."""

    def __init__(self, context: BrowserContext, server: Server) -> None:
        self.noted: list[str] = []
        context.on("console", self._note)
        context.on("weberror", lambda error: self.noted.append(f"error: {error.error}"))
        context.on("request", lambda request: self._look(request.url, server.url))

    def _note(self, message: Any) -> None:
        if message.type == "error" and "WebSocket" not in message.text and "ERR_" not in message.text:
            self.noted.append(message.text)

    def _look(self, address: str, ours: str) -> None:
        if not address.startswith((ours, "data:", "blob:", "chrome")):
            self.noted.append(f"request elsewhere: {address}")


def violations(page: Page) -> list[str]:
    """Run axe-core with the rules of WCAG 2.2 A and AA and best practice; return what it found, one line each."""
    from axe_playwright_python.sync_playwright import Axe

    if not page.evaluate("Boolean(globalThis.axe)"):  # else this page was looked at before
        page.evaluate(Axe().axe_script)
        page.evaluate(PARSED_ONCE)
    faults = page.evaluate("(options) => axe.run(options).then((results) => results.violations)", AXE)
    return [f"{fault['id']}: {node['html'][:160]}" for fault in faults for node in fault["nodes"]]


def covered(page: Page, over: str, under: str) -> list[str]:
    """Return the words of what `under` selects and `over` covers a part of."""
    return page.locator(under).evaluate_all(
        """(all, over) => {
          const box = document.querySelector(over).getBoundingClientRect();
          const ofWords = document.createRange();
          const isCovered = (one) => {
            ofWords.selectNodeContents(one);
            const { left, right, top, bottom } = ofWords.getBoundingClientRect();
            return left < box.right && right > box.left && top < box.bottom && bottom > box.top;
          };
          return all.filter(isCovered).map((one) => one.textContent.trim());
        }""",
        over,
    )


def in_every_look(page: Page, name: str, *, is_part_of_another: bool = False) -> dict[str, list[str]]:
    """Look at the page as it stands, light and narrow, dark and wide; return what axe-core finds and what is too wide,
    by look. `make test` leaves out what another look has as well: `is_part_of_another`."""
    by_look: dict[str, list[str]] = {}
    if IS_SHORT and is_part_of_another:
        return by_look
    for scheme, width in LOOKS:
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        by_look[f"{name}, {scheme}, {width}"] = violations(page) + [f"{wide} px too wide"] * (wide > 0)
    return {look: faults for look, faults in by_look.items() if faults}
