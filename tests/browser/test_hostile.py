"""Hostile content in a real browser: nothing runs, nothing is reported, nothing is asked of others, nothing spills.

A sample drawn anew on each run (a failure tells its seed; `HOSTILE_SEED` draws it again), everything in `make faults`.
Which elements may be drawn at all is `tests/rendering/test_fragments_hostile.py`'s.
"""

import http.client
import itertools
import json
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from conversations.core.url_converters import to_url
from conversations.events.payload import clean_text
from tests.browser import sign_in
from tests.browser.hostile import Guard, Trap, lines_of_import, look, trapped
from tests.support.hostile import payloads, places
from tests.support.live import Server, until
from tests.support.shares import share_of

SEED = int(os.environ.get("HOSTILE_SEED", random.randrange(1 << 30)))
BATCH = 30  # payloads of one conversation: about 450 rows, fewer than a page unloads
PAGE = 60  # conversations of one page of the list
HITS = 25  # of one page of a search
TITLE = 190  # characters that a title and an id hold of a text
LANES = 4  # connections that publish at once: one transaction takes them all
SOME, FEW, SHORT = 12, 4, 4000  # of a sample: payloads, addresses, characters
STACKED = re.compile("[\u0300-\u036f]{8}")
NARROW, WIDE = {"width": 390, "height": 844}, {"width": 1440, "height": 900}
ROW, CARD, HIT, CALL = ".rows > .event", ".fleet > .conversation", ".hits > .hit", ".call-table tr[data-item]"
ENTRY = ".audit-table tr[data-item]"
SPILL = """() => {
  const card = Object.assign(document.createElement("article"), { id: "spill", className: "event" });
  const wide = Object.assign(document.createElement("p"), { textContent: "wide" });
  wide.style.inlineSize = "9000px";
  card.append(wide);
  return card;
}"""
Done = Callable[[int], None]
_number = itertools.count(1)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own: other tests' lists stay clean."""
    started = Server().start()
    yield started
    started.terminate()


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    """Make what publishes to it."""
    return server.token()


@pytest.fixture(scope="module")
def trapping(chromium: Browser) -> Iterator[tuple[Browser, Trap]]:
    """A browser in which every name leads to the trap."""
    with trapped(chromium) as both:
        yield both


@pytest.fixture(scope="module")
def context(trapping: tuple[Browser, Trap], server: Server) -> Iterator[BrowserContext]:
    """The owner's windows in it."""
    made = trapping[0].new_context(base_url=server.url, viewport=WIDE)
    sign_in(server, made)
    yield made
    made.close()


@pytest.fixture(scope="module")
def guard(context: BrowserContext, trapping: tuple[Browser, Trap], server: Server) -> Guard:
    """Note what must not happen in them."""
    return Guard(context, trapping[1], server)


@pytest.fixture
def page(context: BrowserContext, guard: Guard) -> Iterator[Page]:
    """Open a fresh window; nothing may have been noted in it at the end."""
    guard.forget()
    window = context.new_page()
    yield window
    window.close()
    assert not guard.problems, f"{chr(10).join(guard.problems)}\nHOSTILE_SEED={SEED}"


@pytest.fixture
def done(record_property: Callable[[str, object], None]) -> Iterator[Done]:
    """Count what was proved, and tell it, also of a test that did not get to its end."""
    counts: list[int] = []
    yield counts.append
    record_property("amount", f"{sum(counts):,} texts proved")


@pytest.mark.thorough
def test_the_guard_sees_scripts_reports_requests_and_spills(context: BrowserContext, guard: Guard) -> None:
    page = context.new_page()
    page.goto("/")
    page.evaluate("() => { const spy = new Image(); spy.src = 'http://spy.example/'; document.body.append(spy); }")
    page.evaluate("() => { try { document.body.innerHTML = '<b>'; } catch {} }")
    page.evaluate(f"() => document.querySelector('main').insertAdjacentElement('beforeend', ({SPILL})())")
    spilled, _ = look(page, "#spill")
    page.goto("http://trap.example/")
    page.close()

    noted = "\n".join(guard.problems)
    assert spilled[0].startswith("<p> at")
    assert "policy: img-src http://spy.example" in noted
    assert "policy: require-trusted-types-for" in noted
    assert "request: http://trap.example" in noted
    assert "alert(the trap was run) ran" in noted
    assert "trap: " in noted


@pytest.mark.thorough
def test_sampled_payloads_stay_text_in_a_transcript(page: Page, server: Server, token: str) -> None:
    prove_in_transcript(page, server, token, sample(SOME))


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_every_payload_stays_text_in_a_transcript(page: Page, server: Server, token: str, done: Done) -> None:
    for texts in in_parts(share_of(payloads()), BATCH):
        prove_in_transcript(page, server, token, texts)
        done(len(texts))


@pytest.mark.slow
def test_sampled_payloads_stay_text_in_the_list(page: Page, server: Server, token: str) -> None:
    prove_in_list(page, server, token, sample(PAGE))


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_every_payload_stays_text_in_the_list(page: Page, server: Server, token: str, done: Done) -> None:
    for texts in in_parts(share_of(payloads()), PAGE):
        prove_in_list(page, server, token, texts)
        done(len(texts))


@pytest.mark.thorough
def test_sampled_payloads_stay_text_in_titles_and_addresses(page: Page, server: Server, token: str) -> None:
    prove_in_titles(page, server, token, sample(FEW))
    for text in sample(FEW):
        prove_in_address(page, text)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_every_payload_stays_text_in_titles_and_addresses(page: Page, server: Server, token: str, done: Done) -> None:
    titles = share_of(list(packed(payloads(), TITLE)))
    for texts in in_parts(titles, PAGE):
        prove_in_titles(page, server, token, texts)
        done(len(texts))
    for text in titles[::10]:
        prove_in_address(page, text)


def prove_in_transcript(page: Page, server: Server, token: str, texts: list[str]) -> None:
    """Say it all into an open transcript; then load the page anew, to its beginning."""
    key = f"hostile-{next(_number)}"
    publish(server, token, key, [{"type": "message", "sender": "Rosa", "content": "It is quiet."}])
    page.set_viewport_size(WIDE)
    page.goto(f"/conversations/{key}/")
    expect(page.locator("#e1")).to_be_visible()

    publish_at_once(server, token, key, [event for text in texts for event in places(text)])
    head = publish(server, token, key, [{"event": "token", "text": text} for text in texts])
    until(lambda: drawn_to(page) >= head, within=60, what="the live rows")
    prove_looks(page, ROW, at_least=12 * len(texts))

    page.reload()
    until(lambda: is_at_its_beginning(page), within=60, what="the first row")
    prove_looks(page, ROW, at_least=12 * len(texts))
    page.goto(f"/conversations/{key}/?view=lanes")
    prove_looks(page, ROW, at_least=50)
    page.goto(f"/conversations/{key}/?view=graph")
    prove_looks(page, ".graph > [data-part]", at_least=1)
    prove_in_calls(page, key, len(texts))


def prove_in_calls(page: Page, key: str, amount: int) -> None:
    """Look at the calls of a conversation, at one of them, and at the numbers that they are in."""
    page.goto(f"/calls/?conversation={key}")
    prove_looks(page, CALL, at_least=min(amount, 50))
    href = page.locator(f"{CALL} a").first.get_attribute("href")
    for address in (href, f"/calls/compare/?a={href.split('/')[2]}&b={href.split('/')[2]}", "/numbers/"):
        page.goto(address)
        prove_looks(page, "main", at_least=1)


def prove_in_list(page: Page, server: Server, token: str, texts: list[str]) -> None:
    """Let conversations appear that are called so, by voices called so; then let them go on while the list is open."""
    named = {key_of(text): text for text in texts}
    lines = lines_of_import([(key, list(said_in(text))) for key, text in named.items()])
    status, answer = server.request("POST", "/api/v1/import", lines, token)
    assert status == 200, answer
    page.set_viewport_size(WIDE)
    page.goto("/")
    prove_looks(page, CARD, at_least=len(named))

    for key, text in named.items():
        publish(
            server, token, key, [{"type": "message", "sender": f"agent:{text}", "recipient": text, "content": text}]
        )
    live = page.locator('.fleet > [data-messages="2"]')
    until(lambda: live.count() >= len(named), within=60, what="the live rows")
    prove_looks(page, CARD, at_least=len(named))

    until(lambda: not server.request("GET", "/api/v1/search", token=token)[1]["lag"], within=60, what="the index")
    page.goto("/search/?sender=publisher&kind=message")
    prove_looks(page, HIT, at_least=min(len(named), HITS))


def prove_in_titles(page: Page, server: Server, token: str, texts: list[str]) -> None:
    """Open conversations called so at one of their events, and hear from them."""
    named = {key_of(text): text for text in texts}
    lines = lines_of_import([(key, list(said_in(text))) for key, text in named.items()])
    status, answer = server.request("POST", "/api/v1/import", lines, token)
    assert status == 200, answer
    for key, text in named.items():
        page.goto(f"/conversations/{to_url(key)}/?event=2#e2")
        expect(page.locator("#e2")).to_have_attribute("aria-current", "true")
        head = publish(server, token, key, [{"type": "message", "sender": text, "content": text}])
        expect(page.locator(f"#e{head}")).to_be_attached()
        prove_looks(page, ROW, at_least=3)


def prove_in_address(page: Page, text: str) -> None:
    """Go to addresses that are made up of it."""
    words = quote(text[:SHORT], safe="")
    for address in (
        f"/conversations/{words}/",
        f"/conversations/hostile-1/?event={words}#{words}",
        f"/?before={words}",
    ):
        page.goto(address)
    page.goto(f"/?q={words}&participant={words}")
    prove_looks(page, CARD, at_least=0)
    page.goto(f"/calls/?q={words}&tool={words}&agent={words}&call_id={words}&from={words}")
    prove_looks(page, CALL, at_least=0)
    page.goto(f"/audit/?who={words}&target={words}&verb={words}&conversation={words}&q={words}&from={words}")
    prove_looks(page, ENTRY, at_least=0)
    page.goto(f"/search/?q={words}&kind={words}&sender={words}&conversation={words}&since={words}")
    prove_looks(page, HIT, at_least=0)


def prove_looks(page: Page, cards: str, *, at_least: int) -> None:
    """Look at the cards, wide and narrow, once so many have come."""
    until(lambda: page.locator(cards).count() >= at_least, within=60, what=f"{at_least} of {cards}")
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        seen_faults, count = look(page, cards)
        assert not seen_faults, f"{chr(10).join(seen_faults)}\nHOSTILE_SEED={SEED}, {size['width']} px"
        assert count >= at_least
    assert len(page.frames) == 1


def drawn_to(page: Page) -> int:
    """Return the seq up to which the transcript is drawn."""
    return int(page.locator("live-transcript").get_attribute("data-head") or 0)


def is_at_its_beginning(page: Page) -> bool:
    """Scroll up and tell whether the first row has come."""
    page.locator(".transcript").evaluate("(one) => { one.scrollTop = 0; }")
    return bool(page.locator("#e1").count())


def said_in(text: str) -> Iterator[dict[str, Any]]:
    """Return what makes a row of the list: title, handler, participants, last line."""
    yield {"event": "conversation.opened", "title": text, "handler": text}
    yield {"type": "message", "sender": text, "recipient": f"agent:{text}", "content": text}


def key_of(text: str) -> str:
    """Make a conversation's id of a text, another one each time: some texts begin alike."""
    return f"{clean_text(text)[:190]} {next(_number)}"


def publish(server: Server, token: str, key: str, events: Sequence[dict[str, Any]]) -> int:
    """Publish over one connection, one by one; return the last seq."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    answer: dict[str, Any] = {}
    for event in events:
        body = json.dumps({"topic": "stream:x", "payload": {**event, "conversation_id": key}})
        connection.request("POST", "/api/v1/publish", body.encode(), headers)
        answer = json.loads(connection.getresponse().read())
        assert "seq" in answer, (answer, event)
    connection.close()
    return int(answer["seq"])


def publish_at_once(server: Server, token: str, key: str, events: Sequence[dict[str, Any]]) -> None:
    """Publish over several connections, each its own share in order."""
    with ThreadPoolExecutor(LANES) as pool:
        list(pool.map(lambda lane: publish(server, token, key, events[lane::LANES]), range(LANES)))


def sample(number: int) -> list[str]:
    """Draw some payloads that are not very long, by this run's seed; one of them has stacked marks, which reach out of
    any line."""
    texts = [text for text in payloads() if len(text) <= SHORT]
    stacked = [text for text in texts if STACKED.search(text)]
    some = random.Random(SEED)
    return [*some.sample(texts, min(number, len(texts)) - 1), some.choice(stacked)]


def packed(texts: list[str], room: int) -> Iterator[str]:
    """Join short texts by a blank while they fit into `room` characters; a longer one stands alone."""
    together = ""
    for text in sorted(texts, key=len):
        if together and len(together) + 1 + len(text) > room:
            yield together
            together = text
        else:
            together = f"{together} {text}" if together else text
    yield together


def in_parts(texts: list[str], size: int) -> Iterator[list[str]]:
    """Cut a list into parts."""
    return (texts[at : at + size] for at in range(0, len(texts), size))
