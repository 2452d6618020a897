"""The page that a browser gets while the server starts; programs get JSON. Called by `dashboard.asgi`."""

import asyncio

from django.template.loader import render_to_string

from conversations.asgi.route import Scope, Send
from dashboard.middleware import CONTENT_SECURITY_POLICY, FIXED
from dashboard.pages.errors import RETRY_AFTER

PROGRAMS = ("/api/", "/v1/", "/metrics", "/checkpoint")  # prefixes of addresses without pages


def is_for_browser(scope: Scope) -> bool:
    """Return whether a request is a browser's for a page."""
    if scope["method"] not in ("GET", "HEAD") or scope["path"].startswith(PROGRAMS):
        return False
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


async def send_page(scope: Scope, send: Send, state: str) -> None:
    """Send the page as a 503. `state` is the runtime's: `starting`, or what it waits for."""
    html = await asyncio.to_thread(_drawn, "" if state == "starting" else state)
    fields = {
        "Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(html)), "Cache-Control": "no-store",
        "Retry-After": RETRY_AFTER, "Content-Security-Policy": CONTENT_SECURITY_POLICY.format(socket=""), **FIXED,
    }  # fmt: skip
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else html})


def _drawn(reason: str) -> bytes:
    return render_to_string("starting.html", {"reason": reason}).encode()
