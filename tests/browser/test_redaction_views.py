"""Redacted words disappear from every part of an open page: title, head, rows, playhead, panel and outline."""

import json

import pytest
from playwright.sync_api import Page, expect

from tests.browser import work
from tests.browser.test_redaction import expect_without
from tests.support.live import Server
from tests.support.tiers import variants

WORD = "Hedgehog-4711"
TALK = """
import json
from conversations.conversation import control
from conversations.runs.approvals import decide
from tests.support import toolcalls
key, word = {key!r}, {word!r}
say = {{"type": "message", "sender": "Rosa", "recipient": "Ben", "content": f"my name is {{word}}"}}
t.log.append([toolcalls.event(key, say)])
approval = t.ask(o, key, client_id="first", approval_id=key)
decide.decide(o, approval.id, "approve")
t.go_on(approval, output={{"name": word}})
control.pause(o, key, f"{{word}} asked for it")
events = t.log.read_after(key, 0, 1000)
print(json.dumps([events[-1].seq, [event.seq for event in events if word in event.body]]))
"""


@pytest.mark.parametrize("moment", ["present", "past"])
@pytest.mark.parametrize("view", variants(["timeline", "transcript", "lanes", "graph"]))
def test_redacted_words_leave_all_parts_of_a_page(served: Server, window: Page, view: str, moment: str) -> None:
    key = f"redaction-{view}-{moment}"
    head, seqs = json.loads(work(served, TALK.format(key=key, word=WORD)))
    window.goto(f"/conversations/{key}/?view={view}" + (f"&at={head}" if moment == "past" else ""))
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")
    window.locator(".panel-switch button[value=outline]").click()
    expect(window.locator("transcript-outline")).to_contain_text(WORD)
    expect(window.locator("h1")).to_contain_text(WORD)
    expect(window.locator("[data-moment]" if moment == "past" else "[data-standing]")).to_contain_text(WORD)

    token = served.token(key)
    selection = {"conversation_id": key, "events": seqs, "reason": "asked for"}
    assert served.request("POST", "/api/v1/redactions", json.dumps(selection).encode(), token)[0] == 201

    expect_without(window, WORD)
    expect(window.locator("transcript-outline [data-outline]").first).to_be_visible()


@pytest.mark.parametrize("view", variants(["timeline", "graph"]))
def test_a_view_of_the_past_goes_to_the_new_address_of_an_erased_id(served: Server, window: Page, view: str) -> None:
    key = f"{view}@example.com"
    work(served, TALK.format(key=key, word=WORD))
    window.goto(f"/conversations/{key}/?view={view}&at=3")
    expect(window.locator("live-state")).to_have_attribute("data-state", "live")

    served.command("redact", key, "--id", "--reason", "asked for")

    window.wait_for_url("**/conversations/erased-*/*", timeout=30_000)
    expect_without(window, key)
