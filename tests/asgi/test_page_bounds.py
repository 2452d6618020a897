"""A page of a conversation is bounded in bytes, whatever strangers wrote: it gets shorter, and says what is missing."""

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from conversations.core import principals
from conversations.events import log
from conversations.events.log import bounded_reads
from conversations.realtime.live_renderer import LiveRenderer
from tests.asgi.test_read_bounds import LARGE
from tests.dashboard.pages.test_conversation_page import KEY, seqs, store
from tests.support.peaks import peak

COUNT = 24
FEW_MIB = 64  # what a page of some MiB may need to be drawn
PAGE_BYTES = 10 << 20
ROBOT = principals.token_principal("robot")

pytestmark = pytest.mark.django_db


def open_page(browser: Client) -> str:
    """Open the page, which must not be large nor need much."""
    browser.get(reverse("conversation", args=[KEY]), {"event": 1})  # what is imported and compiled once
    with peak() as needed:
        response = browser.get(reverse("conversation", args=[KEY]))
    assert response.status_code == 200
    assert len(response.content) < PAGE_BYTES
    assert needed.mib < FEW_MIB
    return response.content.decode()


def message(n: int) -> dict[str, str]:
    return {"type": "message", "sender": "a", "recipient": "b", "content": f"{n} " + "word " * (LARGE // 5)}


def token(text: str, **more: object) -> dict[str, object]:
    return {"event": "token", "agent": "A", "text": text, **more}


def step(n: int, status: str, **more: object) -> dict[str, object]:
    return {"event": "tool_step", "agent": "A", "name": "find", "tool_call_id": f"c{n}", "status": status, **more}


@pytest.mark.slow
@pytest.mark.any_database
def test_large_messages_make_a_page_shorter_and_all_of_them_are_reached(browser):
    for n in range(COUNT):
        store(message(n))

    html = open_page(browser)

    drawn, first, has_older = seqs(html), int(re.search(r'data-first="(\d+)"', html)[1]), True
    assert drawn[-1] == COUNT
    assert len(drawn) < 6
    assert 'data-words="Older events">' in html  # shown, not hidden
    while has_older:
        page = browser.get(reverse("conversation-entries", args=[KEY]), {"before": first}).json()
        drawn, first, has_older = seqs(page["html"]) + drawn, page["first"], page["has_older"]
    assert drawn == list(range(1, COUNT + 1))


@pytest.mark.slow
def test_a_turn_of_many_mib_shows_its_newest_part_and_says_what_it_leaves_out(browser):
    for n in range(COUNT):
        store(token(f"part {n} " + "x" * LARGE), by=ROBOT)

    html = open_page(browser)

    assert f"part {COUNT - 1} " in html
    left_out = int(re.search(r"([\d,]+) earlier events of this turn are too long to show here", html)[1])
    assert left_out + html.count("part ") >= COUNT
    assert f"part {left_out - 1} " not in html
    address = re.search(r'href="(/api/v1/conversations/[^"]+)"[^>]*>View as JSON', html)[1].replace("&amp;", "&")
    items = json.loads(browser.get(address).content)["items"]
    assert items[0]["seq"] == 1


@pytest.mark.slow
def test_the_lanes_of_such_a_turn_are_bounded_too(browser):
    for n in range(COUNT):
        store(token(f"part {n} " + "x" * LARGE), by=ROBOT)
    address = reverse("conversation", args=[KEY])
    browser.get(address, {"view": "lanes", "event": 1})

    with peak() as needed:
        response = browser.get(address, {"view": "lanes"})

    assert len(response.content) < PAGE_BYTES
    assert needed.mib < FEW_MIB


def test_a_short_open_turn_leaves_nothing_out(browser):
    store(*[token(f"part {n} ") for n in range(COUNT)], by=ROBOT)

    html = open_page(browser)

    assert "".join(f"part {n} " for n in range(COUNT)) in html
    assert "not shown" not in html


@pytest.mark.slow
def test_calls_with_large_results_make_a_page_shorter(browser):
    store(*[step(n, "start", args={"n": n}) for n in range(COUNT)], by=ROBOT)
    for n in range(COUNT):
        store(step(n, "success", output=f"{n} " + "x" * LARGE), by=ROBOT)

    html = open_page(browser)

    assert seqs(html)[-1] == COUNT
    assert len(seqs(html)) < 10
    assert 'data-words="Older events">' in html


@pytest.mark.slow
def test_what_is_drawn_live_is_drawn_in_parts_that_are_bounded():
    for n in range(COUNT):
        store(step(n, "start", args={"text": "x" * LARGE}), by=ROBOT)
    store(*[step(n, "success", output="found") for n in range(COUNT)], by=ROBOT)
    events, artist, drawn = log.read_after(KEY, COUNT), LiveRenderer(KEY), []
    assert len(events) == COUNT

    with peak() as needed:
        while events:
            items = artist.draw(events)
            assert sum(len(text) for _, text in items) < 4 * bounded_reads.READ_BYTES
            drawn += [seq for seq, _ in items]
            events = events[len(items) :]

    assert drawn == list(range(COUNT + 1, 2 * COUNT + 1))
    assert needed.mib < FEW_MIB
