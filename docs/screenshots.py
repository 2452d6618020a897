"""Take the pictures of the README in a real browser: the Town Hall with the demo model. Run by `make screenshots`."""

import json
import sys
import urllib.request
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from tests.browser import ARGUMENTS, REMEDY, found_path, sign_in
from tests.support.live import Server

IMAGES = Path(__file__).resolve().parent / "images"
SIZE = ViewportSize(width=1280, height=800)
REPORTS = {
    "mill-road": "A pothole on Mill Road 5. My name is Rosa.",
    "elm-street": "A water pipe burst on Elm Street 12 and the road is flooded. My name is Ada.",
}


def report(server: Server, token: str, conversation: str, text: str) -> None:
    """Send a citizen's report to Dialogue in a new conversation."""
    body = json.dumps({"recipient": "agent:Dialogue", "content": text, "client_id": conversation})
    request = urllib.request.Request(
        f"{server.url}/api/v1/conversations/{conversation}/messages",
        body.encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=20).close()


def take(page: Page, address: str, name: str) -> None:
    """Save a picture of an address once a call can be approved there."""
    page.goto(address)
    expect(page.get_by_role("button", name="Approve", exact=True).first).to_be_visible()
    page.evaluate("() => document.fonts.ready")
    page.screenshot(path=IMAGES / name)


def main() -> None:
    """Start a server and a browser, and take each picture."""
    path = found_path()
    if path is None:
        sys.exit(REMEDY)
    IMAGES.mkdir(exist_ok=True)
    server = Server(SWITCHBOARD_DEMO_PACE_S="0").start()
    try:
        token = server.token()
        for conversation, text in REPORTS.items():
            report(server, token, conversation, text)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            context = browser.new_context(base_url=server.url, viewport=SIZE)
            sign_in(server, context)
            page = context.new_page()
            take(page, "/conversations/elm-street/", "conversation.png")
            take(page, "/approvals/", "approvals.png")
            browser.close()
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
