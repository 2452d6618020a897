"""`start`: from an empty folder to the demo on the screen, as a newcomer does it: clone, `make run`, the printed link.

Targets: cold (no `.venv`) at most 60 s until a line of the live demo conversation is drawn; warm (everything there, the
server stopped) at most 3 s until the first screen is drawn; the first screen at most 150 kB over the wire with an empty
cache, everything counted, and no request elsewhere. Package caches stay as they are unless `EMPTY_CACHE=1`.
"""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.benchmarks import common
from tests.benchmarks.render import chromium
from tests.support.live import ROOT, free_port, until

COLD, WARM, FIRST_SCREEN = 60.0, 3.0, 150_000  # seconds, seconds, bytes
STARTS = 3  # warm ones


class Newcomer:
    """A clone of the checkout in an empty folder, and `make run` in it."""

    def __init__(self, home: Path) -> None:
        self.folder, self.port, self.log = home / "switchboard", free_port(), home / "run.log"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.folder)], check=True)
        ours = ("SWITCHBOARD_", "DJANGO_", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self.environment["PYTHONUNBUFFERED"] = "1"
        if os.environ.get("EMPTY_CACHE"):
            caches = {"UV_CACHE_DIR": home / "uv", "PIP_CACHE_DIR": home / "pip"}
            self.environment |= {name: str(path) for name, path in caches.items()}

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def run(self) -> None:
        """Call `make run`."""
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                ["make", "run", f"PORT={self.port}"], cwd=self.folder, env=self.environment,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def link(self) -> str:
        """Wait for the link that it prints; return it."""
        link = until(
            lambda: self._alive() and re.search(r"One-time sign-in link: (\S+)", self.log.read_text()), within=300
        )
        return str(link[1])

    def serves(self, path: str) -> bool:
        """Return whether it answers there with no error."""
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
                return bool(self._alive() and answer.status == 200)
        except OSError:
            return False

    def is_ready(self) -> bool:
        """Return whether all of it serves, agents included."""
        return self.serves("/readyz")

    def _alive(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"`make run` ended:\n{self.log.read_text()}")
        return True

    def stop(self) -> None:
        """Stop what `make run` started, as Ctrl-C does."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(30)


class Wire:
    """Counts what a page loads: bytes over the wire, answers, and who was asked."""

    def __init__(self, page: Page) -> None:
        self.bytes, self.answers, self.addresses = 0, 0, list[str]()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", lambda event: self.addresses.append(event["request"]["url"]))
        session.on("Network.webSocketCreated", lambda event: self.addresses.append(event["url"]))
        session.on("Network.loadingFinished", self._count)

    def _count(self, event: Any) -> None:
        self.bytes += int(event["encodedDataLength"])
        self.answers += 1

    def elsewhere(self, port: int) -> list[str]:
        """Return the addresses that are not ours."""
        return [
            address
            for address in self.addresses
            if not re.match(rf"(?:https?|ws)://127\.0\.0\.1:{port}/|data:", address)
        ]


def show(page: Page) -> None:
    """Go to the first screen and wait until the demo's row is on it."""
    page.goto("/")
    page.locator(".fleet a[href^='/conversations/']").first.wait_for()


def cold(newcomer: Newcomer, browser: Browser) -> tuple[float, float, BrowserContext]:
    """Do all for the first time; answer seconds until the link and until a line of the demo, and who is signed in."""
    start = time.monotonic()
    newcomer.run()
    link = newcomer.link()
    linked = time.monotonic() - start
    until(newcomer.is_ready, within=30, what="the server to be ready")
    context = browser.new_context(base_url=newcomer.url)
    page = context.new_page()
    page.goto(link)
    show(page)
    page.locator(".fleet a[href^='/conversations/']").first.click()
    page.locator("live-transcript:defined .rows > [data-seq]").first.wait_for()
    seconds, head = time.monotonic() - start, page.locator("live-transcript").get_attribute("data-head")
    until(lambda: page.locator("live-transcript").get_attribute("data-head") != head, within=20, what="it to go on")
    assert page.locator(".tag", has_text="demo").count()
    page.close()
    return linked, seconds, context


def warm(newcomer: Newcomer, page: Page) -> tuple[float, float]:
    """Start again; answer seconds until all is ready, agents included, and until the first screen is drawn."""
    start = time.monotonic()
    newcomer.run()
    until(lambda: newcomer.serves("/healthz"), within=30, what="the port")
    show(page)
    drawn = time.monotonic() - start
    until(newcomer.is_ready, within=30, what="the server to be ready")
    return time.monotonic() - start, drawn


def measure(context: BrowserContext, browser: Browser, port: int) -> Wire:
    """Load the first screen into an empty cache and wait until it is live and nothing more comes."""
    fresh = browser.new_context(base_url=f"http://127.0.0.1:{port}", storage_state=context.storage_state())
    page = fresh.new_page()
    wire = Wire(page)
    show(page)
    until(lambda: any("/ws/" in address for address in wire.addresses), what="the socket")
    page.wait_for_load_state("networkidle")
    fresh.close()
    return wire


def main() -> None:
    """Be a newcomer, then come back."""
    home = common.scratch()
    newcomer = Newcomer(home)
    try:
        with chromium() as browser:
            linked, seconds, context = cold(newcomer, browser)
            wire = measure(context, browser, newcomer.port)
            newcomer.stop()
            page, starts = context.new_page(), []
            for _ in range(STARTS):
                starts.append(warm(newcomer, page))
                newcomer.stop()
    finally:
        if newcomer.process.poll() is None:
            newcomer.stop()
        shutil.rmtree(home, ignore_errors=True)
        common.tear_down()
    _report(linked, seconds, starts, wire, wire.elsewhere(newcomer.port))


def _report(linked: float, seconds: float, starts: list[tuple[float, float]], wire: Wire, elsewhere: list[str]) -> None:
    share = common.share_of_a_core()
    caches = "empty" if os.environ.get("EMPTY_CACHE") else "as it was on this machine"
    common.report(
        "start-cold", ratio=seconds / COLD, target="empty folder to the live demo on screen <= 60 s",
        met=seconds <= COLD, seconds=round(seconds, 1), link_after_s=round(linked, 1), package_cache=caches,
        share_of_a_core=share,
    )  # fmt: skip
    drawn = common.median([seconds for _, seconds in starts])
    common.report(
        "start-warm", ratio=drawn / WARM, target="start to first screen drawn <= 3 s", met=drawn <= WARM,
        seconds=[round(seconds, 2) for _, seconds in starts],
        ready_after_s=[round(ready_s, 2) for ready_s, _ in starts],
        share_of_a_core=share,
    )  # fmt: skip
    common.report(
        "start-bytes", ratio=wire.bytes / FIRST_SCREEN, target="first screen <= 150 kB, no request elsewhere",
        met=wire.bytes <= FIRST_SCREEN and not elsewhere, kilobytes=round(wire.bytes / 1000, 1), answers=wire.answers,
        elsewhere=elsewhere,
    )  # fmt: skip


if __name__ == "__main__":
    main()
