"""Words that are redacted by another process leave an open transcript, and a page opened after that."""

from playwright.sync_api import Page, expect

from tests.browser import work
from tests.support.live import Server

KEY, WORD = "redaction-live", "Hedgehog-4711"
TALK = f"""
from tests.dashboard.pages.test_conversation_page import store
say = {{"type": "message", "sender": "Rosa", "recipient": "Ben"}}
store(*(say | {{"content": words}} for words in ("hello", "my name is {WORD}", "goodbye")), key={KEY!r})
"""


def test_redacted_words_leave_an_open_transcript(served: Server, window: Page) -> None:
    work(served, TALK)
    window.goto(f"/conversations/{KEY}/")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    expect(window.locator(".transcript")).to_contain_text(WORD)

    served.command("redact", KEY, "2", "--reason", "asked for")

    expect(window.locator(".transcript")).not_to_contain_text(WORD, timeout=30_000)
    expect(window.locator(".transcript")).to_contain_text("redacted earlier events")
    expect(window.locator(".transcript")).to_contain_text("goodbye")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    window.reload()
    expect(window.locator(".transcript")).to_contain_text("goodbye")
    assert WORD not in window.content()
    window.goto("/")
    expect(window.locator("main")).to_contain_text("goodbye")
    assert WORD not in window.content()
