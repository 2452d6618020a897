"""Words that are redacted leave an open transcript within a second, and a page opened after that."""

import json
import time

import pytest
from playwright.sync_api import Page, expect

from conversations.core import url_converters
from tests.browser import Wires, work
from tests.support.live import Server
from tests.support.tiers import variants

KEY, WORD = "redaction-live", "Hedgehog-4711"
TALK = f"""
from tests.dashboard.pages.test_conversation_page import store
say = {{"type": "message", "sender": "Rosa", "recipient": "Ben"}}
store(*(say | {{"content": words}} for words in ("hello", "my name is {WORD}", "goodbye")), key={KEY!r})
"""


@pytest.mark.slow
def test_redacted_words_leave_an_open_transcript(served: Server, window: Page) -> None:
    work(served, TALK)
    window.goto(f"/conversations/{KEY}/")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    expect(window.locator(".transcript")).to_contain_text(WORD)

    served.command("redact", KEY, "2", "--reason", "asked for")

    expect(window.locator(".transcript")).not_to_contain_text(WORD, timeout=30_000)
    expect(window.locator(".transcript")).to_contain_text("redacted earlier events")
    expect(window.locator(".transcript")).to_contain_text("goodbye")
    expect(window.locator('[data-seq="2"] .tag')).to_have_text("redacted")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    window.reload()
    expect(window.locator(".transcript")).to_contain_text("goodbye")
    assert WORD not in window.content()
    window.goto("/")
    expect(window.locator("main")).to_contain_text("goodbye")
    assert WORD not in window.content()


def gone_after(window: Page, word: str, *, appears: bool = False) -> float:
    """Return in how many seconds a transcript has lost a word, or got it."""
    began = time.monotonic()
    script = "([word, appears]) => document.querySelector('.transcript').textContent.includes(word) === appears"
    window.wait_for_function(script, arg=[word, appears], polling="raf", timeout=60_000)
    return time.monotonic() - began


def test_redacted_words_leave_an_open_transcript_within_a_second(served: Server, window: Page) -> None:
    key, token = "redaction-soon", served.token("redaction-soon")
    say = {"type": "message", "conversation_id": key, "sender": "agent:Rosa", "recipient": "agent:Ben"}
    for n in range(3):
        served.publish(token, f"chat:{key}", say | {"content": f"{WORD} {n}"}, f"soon{n}")
    window.goto(f"/conversations/{key}/")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    expect(window.locator(".transcript")).to_contain_text(f"{WORD} 2")

    served.publish(token, f"chat:{key}", say | {"content": "wombat"}, "soon3")
    message_s = gone_after(window, "wombat", appears=True)
    what = {"conversation_id": key, "events": [1, 2, 3], "reason": "asked for"}
    assert served.request("POST", "/api/v1/redactions", json.dumps(what).encode(), token)[0] == 201
    redaction_s = gone_after(window, WORD)

    assert redaction_s < max(1.0, 10 * message_s)
    expect(window.locator(".transcript")).to_contain_text("wombat")


@pytest.mark.slow
@pytest.mark.parametrize("view", variants(["?event=1", "?at=3", "?view=lanes&at=3"], quick=2))
def test_redacted_words_leave_a_page_that_does_not_follow_the_newest_events(
    served: Server, window: Page, view: str
) -> None:
    key = f"redaction-old-{len(view)}"
    token = served.token(key)
    say = {"type": "message", "conversation_id": key, "sender": "agent:Rosa", "recipient": "agent:Ben"}
    for n in range(3):
        served.publish(token, f"chat:{key}", say | {"content": f"{WORD} {n}"}, f"{key}{n}")
    later = [say | {"content": f"later {n}"} for n in range(250)]
    work(served, f"from tests.dashboard.pages.test_conversation_page import store\nstore(*{later!r}, key={key!r})")
    window.goto(f"/conversations/{key}/{view}")
    expect(window.locator(".transcript")).to_contain_text(f"{WORD} 1")

    what = {"conversation_id": key, "events": [1, 2, 3], "reason": "asked for"}
    assert served.request("POST", "/api/v1/redactions", json.dumps(what).encode(), token)[0] == 201

    expect(window.locator(".transcript")).not_to_contain_text(WORD, timeout=20_000)
    expect(window.locator('.transcript [data-seq="2"]')).to_be_attached()


@pytest.mark.slow
@pytest.mark.parametrize("key", variants(["Åsa/7", "alice@example.com"]))
def test_pages_of_a_conversation_whose_id_is_erased_go_to_its_new_address(
    served: Server, window: Page, key: str
) -> None:
    work(served, TALK.replace(repr(KEY), repr(key)))
    address = f"/conversations/{url_converters.to_url(key)}/"
    listed = window.context.new_page()
    listed.goto("/")
    expect(listed.locator(f'a[href="{address}"]').first).to_be_attached()
    expect(listed.locator("live-state")).to_have_attribute("data-state", "live")
    window.goto(address)
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")

    served.command("redact", key, "--id", "--reason", "asked for")

    window.wait_for_url("**/conversations/erased-*/", timeout=30_000)
    expect(window.locator(".transcript")).to_contain_text("erased the conversation’s id")
    expect(window.locator(".transcript")).to_contain_text("goodbye")
    expect(listed.locator(f'a[href="{address}"]')).to_have_count(0, timeout=30_000)
    for page in (window, listed):
        expect_without(page, key, address)


@pytest.mark.slow
def test_pages_that_were_away_while_an_id_was_erased_go_on_at_once(served: Server, window: Page) -> None:
    key = "away@example.com"
    work(served, TALK.replace(repr(KEY), repr(key)))
    address = f"/conversations/{url_converters.to_url(key)}/"
    listed = window.context.new_page()
    wires = [Wires(window), Wires(listed, is_cut=True)]  # the list is drawn before it follows anything
    listed.goto("/")
    expect(listed.locator(f'a[href="{address}"]').first).to_be_attached()
    window.goto(address)
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")

    wires[0].cut()
    served.command("redact", key, "--id", "--reason", "asked for")
    for wire in wires:
        wire.mend()

    window.wait_for_url("**/conversations/erased-*/", timeout=30_000)
    expect(listed.locator(f'a[href="{address}"]')).to_have_count(0, timeout=30_000)
    for page in (window, listed):
        expect(page.locator("live-state")).to_have_attribute("data-state", "live")
        expect_without(page, key, address)


def expect_without(page: Page, *forms: str) -> None:
    """Wait until none of these forms of an id is anywhere in a page, which may be loading itself anew."""
    page.wait_for_function(
        "(forms) => !forms.some((form) => document.documentElement.outerHTML.includes(form))", arg=forms
    )


@pytest.mark.slow
def test_a_redaction_leaves_a_reader_who_scrolled_up_in_place(served: Server, window: Page) -> None:
    key, token = "redaction-above", served.token("redaction-above")
    say = {"type": "message", "conversation_id": key, "sender": "agent:Rosa", "recipient": "agent:Ben"}
    spoken = [say | {"content": f"{WORD} {n}"} for n in range(250)]
    work(served, f"from tests.dashboard.pages.test_conversation_page import store\nstore(*{spoken!r}, key={key!r})")
    window.goto(f"/conversations/{key}/")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    window.wait_for_function("""() => {
      const row = document.querySelector('.transcript [data-seq="100"]');
      if (!row) document.querySelector(".transcript").scrollTop = 0; // loads older rows
      else row.scrollIntoView({ block: "center" });
      return row !== null;
    }""")
    expect(window.locator('.transcript [data-seq="100"]')).to_be_in_viewport()

    what = {"conversation_id": key, "events": [100], "reason": "asked for"}
    assert served.request("POST", "/api/v1/redactions", json.dumps(what).encode(), token)[0] == 201

    gone_after(window, f"{WORD} 99")
    expect(window.locator('.transcript [data-seq="100"] .tag')).to_have_text("redacted")
    expect(window.locator('.transcript [data-seq="100"]')).to_be_in_viewport()
