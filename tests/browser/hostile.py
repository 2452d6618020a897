"""A browser in which nothing hostile goes unseen, and where every address but the server's leads into a trap."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser import ARGUMENTS, found_path
from tests.support.live import Server

BAIT = b"alert('the trap was run')"
BROWSERS_OWN = (
    "content-autofill.googleapis.com",
    "accounts.google.com",
    "clients2.google.com",
    "update.googleapis.com",
)

# Told at once, over a binding: what ran is known even when the page goes elsewhere. The driver's own evaluations pass.
HOOKS = """
(() => {
  const tell = window.tellOfHostility;
  const ours = (stack) => stack.includes("UtilityScript");
  const run = window.eval;
  for (const name of ["alert", "confirm", "prompt", "print", "open"])
    window[name] = (...said) => void tell(`${name}(${said.join()}) ran`);
  window.eval = (words) => (ours(new Error().stack) || tell(`eval(${words}) ran`), run(words));
  document.addEventListener("securitypolicyviolation", (event) =>
    tell(`policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`), true);
  addEventListener("error", (event) => tell(`error: ${event.message ?? event.target?.outerHTML}`), true);
})()
"""

LOOK = (Path(__file__).parent / "hostile_look.js").read_text()


class Trap:
    """Every address of the world, on loopback: takes a connection, notes it, answers with a script."""

    def __init__(self) -> None:
        self.caught: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Take no more."""
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(2)
                self.caught.append(_described(_first_bytes(connection)))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nAccess-Control-Allow-Origin: *\r\n")
                connection.sendall(b"Connection: close\r\n\r\n<script>" + BAIT + b"</script>")


def _described(words: bytes) -> str:
    """Tell a request by its first line and host, a TLS greeting by the host in it."""
    names = re.findall(rb"[\w-]+(?:\.[\w-]+)+", words)
    return b" ".join([words.partition(b"\r\n")[0][:80] if words[:1].isalpha() else b"TLS", *names[:3]]).decode(
        "ascii", "replace"
    )


def _first_bytes(connection: socket.socket) -> bytes:
    try:
        return connection.recv(4096)
    except OSError:
        return b""


class Guard:
    """Notes what no page may do, in every window of a context."""

    def __init__(self, context: BrowserContext, trap: Trap, server: Server) -> None:
        self.trap, self.ours = trap, server.url
        self.noted: list[str] = []
        context.expose_binding("tellOfHostility", lambda source, words: self.noted.append(str(words)[:500]))
        context.add_init_script(HOOKS)
        context.on("console", self._note_console)
        context.on("weberror", lambda error: self.noted.append(f"error: {error.error}"))
        context.on("request", lambda request: self._note_request(request.url))
        context.on("page", self._watch)

    def forget(self) -> None:
        """Begin anew."""
        self.noted.clear()
        self.trap.caught.clear()

    @property
    def problems(self) -> list[str]:
        """Everything noted so far, connections to the trap too."""
        return self.noted + [f"trap: {words}" for words in self.trap.caught]

    def _watch(self, page: Page) -> None:
        page.on("dialog", lambda dialog: (self.noted.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("popup", lambda popup: self.noted.append(f"popup: {popup.url}"))
        page.on("download", lambda download: self.noted.append(f"download: {download.url}"))
        page.on("frameattached", lambda frame: self.noted.append(f"frame: {frame.url}"))

    def _note_console(self, message: Any) -> None:  # Any: playwright does not export the type of a console message
        if message.type == "error" and "status of 4" not in message.text:
            self.noted.append(f"console: {message.text}")

    def _note_request(self, address: str) -> None:
        if not address.startswith(self.ours):
            self.noted.append(f"request: {address}")


@contextmanager
def trapped(chromium: Browser) -> Iterator[tuple[Browser, Trap]]:
    """Start a second browser for which every host but loopback is the trap, port and all."""
    trap = Trap()
    own = ", ".join(f"MAP {host} ~NOTFOUND" for host in BROWSERS_OWN)
    rules = f"--host-resolver-rules={own}, MAP * 127.0.0.1:{trap.port}, EXCLUDE 127.0.0.1"
    kind = chromium.browser_type
    browser = kind.launch(executable_path=found_path(), args=[*ARGUMENTS, rules])
    try:
        yield browser, trap
    finally:
        browser.close()
        trap.close()


def look(page: Page, cards: str) -> tuple[list[str], int]:
    """Open what is collapsed and look at every card; return what is wrong and how many cards there were."""
    page.evaluate(
        "() => document.querySelectorAll('.page details, main details').forEach((one) => { one.open = true; })"
    )
    seen = page.evaluate(LOOK, cards)
    return [str(fault) for fault in seen["found"]], int(seen["cards"])


def lines_of_import(conversations: list[tuple[str, list[dict[str, Any]]]]) -> bytes:
    """Write conversations as the import door reads them."""
    lines: list[dict[str, Any]] = []
    for key, events in conversations:
        lines += [{"conversation": key}, *({"payload": {**event, "conversation_id": key}} for event in events)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, {"end": len(conversations)}])
