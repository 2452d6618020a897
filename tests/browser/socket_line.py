"""The server's end of a page's socket, in the hands of a test: what the page asks for, and what it is sent."""

import json
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.browser import EMPTY

SETUP = """async ([topic, from]) => {
  const { socket } = await import("/static/js/socket.js");
  globalThis.heard = [];
  const told = (frame) => frame?.events?.map((e) => e.seq) ?? frame?.rows?.map((r) => r.html) ?? null;
  const note = (name) => (frame) => heard.push([name, told(frame)]);
  const names = ["events", "caughtUp", "gap", "reset", "rows", "missed", "down", "up"];
  globalThis.stop = socket.subscribe(topic, from, Object.fromEntries(names.map((name) => [name, note(name)])));
  globalThis.socket = socket;
}"""


class Line:
    """The server's end of every socket that the pages of a browser open: one at a time, and empty at first."""

    page: Page

    def __init__(self, browser: BrowserContext) -> None:
        self.requests: list[dict[str, Any]] = []
        self.routes: list[Any] = []
        browser.route_web_socket("ws://static.test/ws/", self._open)

    def begin(self, page: Page) -> None:
        """Open an empty page, which has asked for nothing yet."""
        self.page = page
        self.requests.clear()
        self.routes.clear()
        page.goto(EMPTY)

    def _open(self, route: Any) -> None:
        self.routes.append(route)
        route.on_message(lambda text: self.requests.append(json.loads(text)))

    def subscribe(self, topic: str = "stream:c", **start: Any) -> None:
        """Have the page follow a topic, and wait until it asked."""
        self.page.evaluate(SETUP, [topic, start])
        self.wait(lambda: len(self.requests) == 1)

    def send(self, **frame: Any) -> None:
        """Send a frame on the newest socket."""
        self.routes[-1].send(json.dumps(frame))

    def events(self, *seqs: int) -> None:
        """Send events."""
        self.send(t="events", topic="stream:c", epoch="e", events=[{"seq": seq} for seq in seqs])

    def received(self, name: str) -> list[Any]:
        """What reached the page's handler."""
        return [value for kind, value in self.page.evaluate("heard") if kind == name]

    def wait(self, condition: Any, within: int = 8000) -> None:
        """Let the browser run until it is so."""
        for _ in range(within // 20):
            if condition():
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"not within {within} ms; asked {self.requests}, heard {self.page.evaluate('heard')}")
