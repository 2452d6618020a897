"""A document that comes in two pieces, as over a slow line: a small server that waits between them. Without scripts."""

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from playwright.sync_api import Page

from tests.support.live import Server

FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


@contextmanager
def _served(server: Server, first: str, rest: str, goes_on: threading.Event) -> Iterator[str]:
    """Serve a document in its two pieces, and the style sheets and fonts of a real server; give its address."""

    class Handler(BaseHTTPRequestHandler):
        """Answers one request."""

        def do_GET(self) -> None:
            """Send the document, or what the real server has."""
            if self.path != "/":
                with urllib.request.urlopen(server.url + self.path, timeout=20) as answer:
                    self._begin(answer.headers["Content-Type"])
                    self.wfile.write(answer.read())
                return
            self._begin("text/html; charset=utf-8")
            self.wfile.write(first.encode())
            goes_on.wait(30)
            self.wfile.write(rest.encode())

        def _begin(self, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as small:
        thread = threading.Thread(target=small.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{small.server_address[1]}/"
        small.shutdown()
        thread.join()


def open_in_pieces(page: Page, server: Server, html: str, at: int) -> None:
    """Open a document of a server whose end comes once its first `at` characters are painted."""
    goes_on = threading.Event()
    page.route("**/*.js", lambda route: route.abort())
    with _served(server, html[:at], html[at:], goes_on) as address:
        page.goto(address, wait_until="commit")
        page.wait_for_function("() => performance.getEntriesByType('paint').length > 0")
        page.evaluate(FRAMES)
        goes_on.set()
        page.wait_for_load_state()
        page.evaluate(FRAMES)
