"""The ops pages and tokens in a real browser: they renew themselves, say when they cannot, and are well built."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser import in_every_look, sign_in
from tests.support.live import Server

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Water on Mill Street."}
ROW = "table.quarantine tbody tr"


def run(server: Server, code: str) -> None:
    """Run lines beside the server, with `q` for what other processes would have left there."""
    server.command("shell", "-v0", "-c", f"from tests.support import quarantined as q\n{code}")


def quarantine(server: Server, source: str, payload: object = SAID, more: str = "") -> None:
    """Put a message into quarantine."""
    run(server, f"q.quarantine({payload!r}, source={source!r}{more})")


@pytest.fixture
def watched(page: Page) -> Page:
    """The ops page, open."""
    page.goto("/ops/")
    expect(page.get_by_text("Updates every 3 s")).to_be_visible()
    return page


@pytest.mark.thorough
def test_what_happens_is_seen_without_a_reload(server: Server, watched: Page) -> None:
    watched.evaluate("window.here = true")
    run(server, "q.post('signal:shift', {'words': 'Night shift begins'})")
    message = watched.locator(".post", has_text="Night shift begins")
    message.locator("summary").first.click()

    run(server, "q.post('signal:shift', {'words': 'Day shift begins'})")
    quarantine(server, "chat:seen-live")
    run(server, "q.node('web-9:1:1', 'web', sockets=77)")

    expect(watched.locator(ROW).filter(has_text="chat:seen-live")).to_be_visible()
    expect(watched.get_by_text("web-9:1")).to_be_visible()
    expect(message).to_have_attribute("open", "")
    expect(watched.locator(".post", has_text="Day shift begins")).not_to_have_attribute("open", "")
    assert watched.evaluate("window.here")


@pytest.mark.parametrize("path", ["/ops/", "/agents/"])
def test_a_page_that_renews_itself_says_that_it_is_live(page: Page, path: str) -> None:
    page.goto(path)

    expect(page.locator("live-state")).to_have_text("Live")


def test_memory_is_shown_in_units_and_exactly_on_a_pointer(watched: Page) -> None:
    cache = watched.locator(".tallies > span", has_text="page cache").first

    expect(cache).to_have_text(re.compile(r"^page cache [\d.]+( [KM]?i?B)? of 48 MiB$"))
    expect(cache).to_have_attribute("title", re.compile(r"^[\d,]+ of 50,331,648 B$"))


@pytest.mark.thorough
def test_a_reader_stays_in_a_row_that_new_ones_push_down(server: Server, watched: Page) -> None:
    run(server, "q.post('signal:tide', {'words': 'Low tide'})")
    line = watched.locator(".post > summary", has_text="Low tide")
    line.focus()
    line.evaluate("(line) => getSelection().selectAllChildren(line)")

    run(server, "q.post('signal:tide', {'words': 'High tide'})")
    run(server, "q.post('signal:wind', {'words': 'Calm'})")  # a topic above it

    expect(watched.locator(".post", has_text="Calm")).to_be_visible()
    expect(watched.locator(".post", has_text="High tide")).to_be_visible()
    expect(line).to_be_focused()
    assert "Low tide" in watched.evaluate("getSelection().toString()")


@pytest.mark.thorough
def test_it_says_since_when_it_could_not_renew_and_goes_on(watched: Page) -> None:
    watched.route("**/ops/?part=state", lambda route: route.abort())
    strip = watched.locator("[data-lost]")

    expect(strip).to_have_text(re.compile(r"Last updated at \d\d:\d\d:\d\d\. The server did not respond"))

    watched.unroute("**/ops/?part=state")
    expect(strip).to_be_hidden()


@pytest.mark.thorough
def test_it_asks_for_nothing_while_hidden(page: Page) -> None:
    requests: list[str] = []

    def note(route: Route) -> None:
        requests.append(route.request.url)
        route.continue_()

    page.clock.install()
    page.route("**/ops/?part=state", note)
    page.goto("/ops/")
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    tell = "document.dispatchEvent(new Event('visibilitychange'))"

    page.evaluate(hide % "true" + tell)
    page.clock.run_for(60_000)
    assert requests == []

    with page.expect_response("**/ops/?part=state"):
        page.evaluate(hide % "false" + tell)
        page.clock.run_for(10)


@pytest.mark.thorough
def test_without_scripts_the_page_reads_as_well(plain_page: Page) -> None:
    plain_page.goto("/ops/")

    expect(plain_page.get_by_text("Redis is not configured; agents connect over HTTP")).to_be_visible()
    expect(plain_page.get_by_text("Updates every 3 s")).to_be_hidden()


@pytest.mark.slow
def test_a_message_is_read_again_and_appears_where_it_belongs(
    server: Server, token: str, owner: BrowserContext, page: Page
) -> None:
    server.publish(token, "stream:flooded", {"event": "log", "message": "It rains."})
    quarantine(server, "chat:flooded")
    watcher = owner.new_page()
    watcher.goto("/conversations/flooded/")

    page.goto("/ops/")
    page.locator(ROW).filter(has_text="chat:flooded").get_by_role("link").click()
    page.get_by_label("Conversation", exact=True).fill("flooded")
    page.get_by_role("button", name="Retry").click()

    expect(page.get_by_text("Retried by user:owner")).to_be_visible()
    transcript = watcher.get_by_role("log", name="Transcript")  # the message may become the title, too
    expect(transcript.get_by_text("Water on Mill Street.", exact=True)).to_be_visible()
    expect(watcher.get_by_text("unverified sender")).to_be_visible()
    page.get_by_role("link", name=re.compile(r"event \d")).click()
    expect(page.get_by_role("log").get_by_text("Water on Mill Street.", exact=True)).to_be_visible()
    watcher.close()


@pytest.mark.thorough
def test_a_message_is_discarded_with_a_reason(server: Server, page: Page) -> None:
    quarantine(server, "chat:noise", {"type": "message"})
    page.goto("/ops/quarantine/?q=chat:noise")
    page.locator(ROW).first.get_by_role("link").click()
    page.get_by_role("button", name="Discard", exact=True).click()
    expect(page.get_by_label("Reason")).to_be_focused()  # the browser asks for the reason

    page.get_by_label("Reason").fill("a test agent gone wild")
    page.get_by_role("button", name="Discard", exact=True).click()

    expect(page.get_by_text("Discarded by user:owner")).to_be_visible()
    expect(page.get_by_text("a test agent gone wild")).to_be_visible()


@pytest.mark.slow
def test_a_tokens_secret_is_shown_once_and_it_is_revoked_after_a_question(server: Server, page: Page) -> None:
    page.goto("/tokens/")
    expect(page.get_by_role("button", name="Create token")).to_be_hidden()
    page.locator("summary", has_text="Create token").press("Enter")
    page.get_by_label("Name", exact=True).fill("robot-7")
    page.get_by_label("Agent", exact=True).fill("Dialogue")
    page.get_by_role("button", name="Create token").click()
    secret = page.get_by_label("Secret of the token robot-7").input_value()
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.locator("copy-field [role=status]")).to_have_text(re.compile("Copied|Selected"))
    payload = {"type": "message", "conversation_id": "robots", "sender": "agent:Dialogue", "content": "x"}
    assert server.publish(secret, "chat:robots", payload)[0] in (201, 403)  # 403 until agents' tokens publish

    page.goto("/tokens/")
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke robot-7").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("button", name="Revoke token")).to_be_hidden()
    page.get_by_role("button", name="Revoke robot-7").click()
    page.get_by_role("button", name="Revoke token").click()

    expect(page.get_by_text("The token robot-7 is revoked")).to_be_visible()
    expect(page.get_by_role("button", name="Revoke robot-7")).to_have_count(0)
    assert server.publish(secret, "chat:robots", payload)[0] == 401


@pytest.mark.slow
def test_a_rule_is_added_edited_and_removed_after_a_question(page: Page) -> None:
    page.goto("/policies/")
    page.locator("summary", has_text="Add rule").click()
    page.get_by_label("Tool", exact=True).fill("no_such_tool")
    page.get_by_label("deny", exact=False).check()
    page.get_by_role("button", name="Add rule").click()
    row = page.locator("tr", has_text="no_such_tool")
    expect(row).to_contain_text("Call is denied before it runs")
    expect(row).to_contain_text("No available agent has this tool.")

    page.get_by_role("link", name="Edit the rule for no_such_tool").click()
    page.get_by_role("radio", name="ask call needs approval").check()
    page.get_by_role("button", name="Save rule").click()
    expect(row).to_contain_text("Call needs approval")

    page.get_by_role("button", name="Remove the rule for no_such_tool").click()
    page.get_by_role("button", name="Remove rule", exact=True).click()
    expect(page.get_by_text("Rule removed.")).to_be_visible()
    expect(row).to_have_count(0)


@pytest.mark.thorough
def test_others_see_no_way_in(chromium: Browser, server: Server) -> None:
    context = chromium.new_context(base_url=server.url)
    sign_in(server, context, "wanda", "operator")
    page = context.new_page()

    page.goto("/ops/")

    expect(page.get_by_role("heading", name="Not allowed").first).to_be_attached()
    expect(page.get_by_role("link", name="Operations")).to_have_count(0)
    expect(page.get_by_role("link", name="Tokens")).to_have_count(0)
    context.close()


LONG = """
now = 1_750_000_000_000
q.node("switchboard-web-1.a-rather-long-host-name.town-hall.example:4121:1750000000", "web", warnings=["x" * 200])
q.node("rec-1:9:1750000000", "recorder", active=True, lag_s=7.4, events=1200345, hot=12, redis="ok", unsent_posts=14)
q.node("web-0:9:1750000000", "web", age_s=900)
for n in range(6): q.stream("stream:" + "incident-" * 20 + str(n), now + n)
for n in range(8): q.quarantine(bytes(range(256)) * 9, source="stream:" + "incident-" * 20, reason="no " * 200)
q.quarantine(b'"\\xd9\\x85\\xd8\\xb1\\xd8\\xad\\xd8\\xa8\\xd8\\xa7' + b"x" * 70000, conversation="x" * 200)
q.quarantine({"type": "message", "content": "\\u0645\\u0631\\u062d\\u0628\\u0627"}, source="chat:desk")
for n in range(3): q.post("control:" + "order-" * 30, {"order": "wait " * 200})
from conversations.access.accounts.tokens import make_token, revoke_token
from conversations.core.principals import SYSTEM
make_token(SYSTEM, "a-token-with-a-rather-long-name@town-hall.example" * 3, "agent", agent="an agent " * 20)
make_token(SYSTEM, "\\u0645\\u0631\\u0627\\u0642\\u0628", "viewer")
make_token(SYSTEM, "old", "viewer"); revoke_token(SYSTEM, "old")
from conversations.runs.policy.edit_policy import load_policies
from conversations.runs.policy.evaluate import PolicyRule
load_policies(SYSTEM, [PolicyRule("", "", "ask")]
  + [PolicyRule("agent " * 30, "tool_" * 80, "deny", "destructive", "n" * 500)]
  + [PolicyRule("\\u0645\\u0631\\u0627\\u0642\\u0628", f"tool_{n}", "allow", "", "\\u0645\\u0631 x") for n in range(5)])
"""


@pytest.fixture(scope="module")
def apart(chromium: Browser) -> Iterator[tuple[Server, Page]]:
    """A server of its own and its owner's window: nothing has happened there."""
    server = Server().start()
    context = chromium.new_context(base_url=server.url)
    sign_in(server, context)
    yield server, context.new_page()
    context.close()
    server.terminate()


@pytest.mark.thorough
def test_pages_are_well_built_empty(apart: tuple[Server, Page]) -> None:
    _, page = apart
    faults = {}
    for path in ("/ops/", "/tokens/", "/policies/"):
        page.goto(path)
        faults |= in_every_look(page, f"empty {path}")
    assert faults == {}


@pytest.mark.thorough
def test_pages_are_well_built_full(apart: tuple[Server, Page]) -> None:
    server, page = apart
    run(server, LONG)
    faults = {}
    for path in ("/ops/", "/ops/quarantine/", *(f"/ops/quarantine/{n}/" for n in (8, 9)), "/policies/", "/tokens/"):
        page.goto(path)
        faults |= in_every_look(page, f"full {path}")
    page.locator("summary", has_text="Revoked").click()
    page.get_by_role("button", name="Revoke a-token").click()
    faults |= in_every_look(page, "a question")
    page.goto("/ops/quarantine/10/")
    page.get_by_label("Conversation", exact=True).fill("x" * 300)
    page.get_by_role("button", name="Retry").click()
    faults |= in_every_look(page, "refused")
    assert faults == {}
