"""Names of 190 characters without a space, right to left, and of emoji, on pages that show them: nothing is wider than
the window, and what is cut says the rest."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from conversations.core.url_converters import to_url
from dashboard.urls import urlpatterns
from tests.browser import sign_in, work
from tests.support.live import ROOT, Server
from tests.support.tiers import IS_SHORT, sampled

CHATS = ROOT / "tests" / "samples" / "chats.jsonl"
WORDS = {"latin": "Straßenbeleuchtung", "arabic": "مصباحالشارع", "emoji": "🌊🚧"}
NAMES = {kind: (word * 95)[:190] for kind, word in WORDS.items()}
SEEDED = """
import json
from datetime import timedelta
from django.utils import timezone
from conversations.access.accounts.edit_grants import give_grant
from conversations.access.accounts.people import create_person
from conversations.alerts import edit_rules, evaluation
from conversations.alerts.rule_fields import RuleFields
from conversations.runs import edit_remote_agents
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.conversation.fork import fork
from conversations.core.principals import SYSTEM
from conversations.redaction import legal_holds, requests
from conversations.redaction.scope import RedactionScope
from conversations.runs.budgets.edit_budgets import set_budget
from tests.support import alerting, toolcalls
from tests.support.quarantined import quarantine

NAMES = {names!r}
t.team()
url = "https://" + "a" * 60 + ".example/" + "p" * 190
edit_remote_agents.register(SYSTEM, RemoteAgent("A" * 100, url, "", "d" * 190))
create_person(SYSTEM, "u" * 150, ["operator"])
for n, (kind, name) in enumerate(NAMES.items()):
    tool = {{"name": name, "schema": t.SCHEMA, "origin": "function"}}
    words = {{"description": name, "model": name, "handoffs": json.dumps([name]), "tools": json.dumps([tool])}}
    Agent.objects.create(team=name, name=name, is_entry=True, hue=n + 4, served_until=1 << 62, **words)
    t.say(o, name, client_id="1")
    t.log.append(toolcalls.call(name, n, agent=name, name=name, args={{name: name}}, status="error", error=name))
    Conversation.objects.filter(key=name).update(title=name)
    set_budget(o, scope="agent" if kind == "latin" else "run", measure="tokens", amount="10", agent=name, note=name)
    quarantine({{"type": "message", "content": name}}, source=f"stream:{{name}}", reason=name)
    url = "https://" + "a" * 60 + ".example/x"
    edit_rules.make_rule(o, RuleFields(name[:100], "run_failed", "post", url, agent=name))
    give_grant(o, "u" * 150, "speak_as", name, reason=name)
    requests.submit(o, RedactionScope(words=[name, name[::-1]], person=name), name)
    legal_holds.place(o, name, name)
"""
PLACED = """const placed = (one) => {
  const names = [];
  for (let at = one; at && names.length < 4; at = at.parentElement)
    names.push([at.localName, ...at.classList].join(".") + (at.dataset.cell ? `[${at.dataset.cell}]` : ""));
  return names.reverse().join(" > ");
};"""
# What is cut off at the side, where a pointer that rests on it gets no more and it does not lead to the whole.
CUT = f"""async () => {{
  {PLACED}
  const isCut = (one) => getComputedStyle(one).textOverflow === "ellipsis" && one.scrollWidth > one.clientWidth + 1;
  const cut = [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && isCut(one));
  for (const one of cut) one.dispatchEvent(new PointerEvent("pointerover", {{ bubbles: true }}));
  await new Promise((done) => setTimeout(done, 300));
  return cut.filter((one) => !one.closest("[title], a[href], summary, option, input, select")).map(placed);
}}"""
WIDE = f"""() => {{
  {PLACED}
  const within = ".table-frame, .clip, .what, pre, .trace, [popover]";
  const isWide = (one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(within);
  return [...document.querySelectorAll("main *")].filter((one) => one.checkVisibility() && isWide(one)).map(placed);
}}"""
LOOKS = [("dark", 390)] if IS_SHORT else [(scheme, width) for scheme in ("light", "dark") for width in (390, 1440)]


@pytest.fixture(scope="module")
def named(chromium: Browser) -> Iterator[tuple[Server, Page]]:
    """A server where everything has such names, and its owner's window."""
    server = Server(SWITCHBOARD_TEAMS="", SWITCHBOARD_REDACTION_FOUR_EYES="1").start()
    context = chromium.new_context(base_url=server.url)
    sign_in(server, context)  # first: then there is an owner
    work(server, SEEDED.format(names=NAMES))
    yield server, context.new_page()
    context.close()
    server.terminate()


def addresses(server: Server) -> dict[str, str]:
    """Return each page by its name."""
    printed = work(server, "print(*ToolCall.objects.order_by('called_seq').values_list('id', flat=True))")
    calls = printed.strip().splitlines()[-1].split()
    names = [to_url(name) for name in NAMES.values()]
    pages = {"budgets": "/policies/budgets/", "quarantine": "/ops/quarantine/", "agents elsewhere": "/connect/agents/"}
    pages |= {
        "compare": f"/compare/?{urlencode({'a': NAMES['latin'], 'b': NAMES['arabic']})}",
        "alerts": "/alerts/",
        "redaction": "/redaction/",
    }
    pages |= {
        "holds": "/retention/",
        "grants": "/people/",
        "agents": "/agents/",
        "audit": "/audit/",
        "calls": "/calls/",
    }
    pages |= {f"quarantined {n}": f"/ops/quarantine/{n}/" for n in sampled((1, 2, 3), one_of=3)}
    pages |= {f"agent {n}": f"/agents/{name}/{name}/" for n, name in enumerate(sampled(names, one_of=3))}
    return pages | {f"call {n}": f"/calls/{call}/" for n, call in enumerate(sampled(calls, one_of=3))}


def misplaced(page: Page) -> list[str]:
    """Return what is cut for good or too wide, by its place."""
    places = [f"cut: {place}" for place in page.evaluate(CUT)] + [f"wide: {place}" for place in page.evaluate(WIDE)]
    too_wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return sorted({*places, *[f"{too_wide} px too wide"] * (too_wide > 0)})


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_long_names_spill_nowhere_and_are_cut_nowhere_for_good(
    named: tuple[Server, Page], scheme: Any, width: int
) -> None:
    server, page = named
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    faults: dict[str, list[str]] = {}
    for name, address in addresses(server).items():
        answer = page.goto(address)
        assert getattr(answer, "status", None) == 200, name
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        faults |= {name: places} if (places := misplaced(page)) else {}

    page.goto("/import/")
    file = {"name": f"{NAMES['arabic'][:90]}.jsonl", "mimeType": "application/json", "buffer": CHATS.read_bytes()}
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Read file").click()
    expect(page.locator("[data-state=checked]").first).to_be_visible()
    faults |= {"import": places} if (places := misplaced(page)) else {}
    assert faults == {}


SIDEWAYS = f"""() => {{
  {PLACED}
  const isWide = (one) => one.scrollWidth > one.clientWidth + 1;
  const all = [...document.querySelectorAll(".table-frame, .scroll:has(> table)")];
  const frames = all.filter((one) => one.checkVisibility());
  const wide = frames.filter(isWide).map((one) => `${{placed(one)}} ${{one.ariaLabel}}`);
  return document.documentElement.scrollWidth > innerWidth ? [...wide, "the page"] : wide;
}}"""


def visited(page: Page) -> Iterator[str]:
    """Visit every page that has no id in its address, then pages of a conversation; yield each address once it is
    shown."""
    routes = [str(pattern.pattern) for pattern in urlpatterns]
    plain = ["/", *(f"/{route}" for route in routes if route.endswith("/") and "<" not in route)]
    talk = f"/conversations/{to_url(NAMES['latin'])}/"
    views = [f"{talk}{view}" for view in ("", "?view=lanes", "?view=timeline", "?view=graph", "fork/?at=1", "print/")]
    for address in [*plain, "/search/?q=dd", "/approvals/?view=all", *views]:
        answer = page.request.get(address)
        if answer.status == 405:  # a form's address
            continue
        assert answer.status == 200, address
        if "text/html" in answer.headers["content-type"] and "<h1" in answer.text():
            page.goto(address)
            yield address


@pytest.mark.slow
def test_no_table_and_no_page_scrolls_sideways(named: tuple[Server, Page]) -> None:
    """On a phone, where rows become cards, and from 1,024 px on."""
    _, page = named
    faults: dict[str, list[str]] = {}
    for address in visited(page):
        for width in (390, 1024, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            faults |= {f"{address} at {width}": wide} if (wide := page.evaluate(SIDEWAYS)) else {}

    assert faults == {}


def test_a_tap_on_text_that_is_cut_opens_it_and_another_closes_it(
    chromium: Browser, named: tuple[Server, Page]
) -> None:
    server, page = named
    phone = chromium.new_context(
        base_url=server.url,
        storage_state=page.context.storage_state(),
        has_touch=True,
        viewport={"width": 390, "height": 844},
    )
    window = phone.new_page()
    window.goto("/policies/budgets/")
    cell = window.locator("td.clip", has_text=NAMES["latin"]).first
    height = cell.evaluate("(cell) => cell.offsetHeight")

    cell.tap()
    assert cell.evaluate("(cell) => cell.offsetHeight") > 2 * height
    assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cell.tap()
    assert cell.evaluate("(cell) => cell.offsetHeight") == height
    phone.close()
