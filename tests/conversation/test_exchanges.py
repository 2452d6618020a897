"""The graph of a conversation: who spoke to whom how often, counted and drawn by the server."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from conversations.events.log import bounded_reads
from conversations.events.log import interaction_counts as counting
from conversations.models import Conversation
from conversations.rendering import interaction_graph
from dashboard.pages import graph
from tests.dashboard.pages.test_conversation_page import KEY, store
from tests.rendering.test_lanes import said
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db
ROW = re.compile(
    r"<tr><td>.*?title=\"([^\"]*)\".*?class=\"quiet\">([^<]*)<.*?title=\"([^\"]*)\".*?number\">([^<]*)<", re.S
)
STEP = {"event": "tool_step", "agent": "Triage", "name": "locate", "status": "start"}


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """Conversations of other tests had the same keys."""
    graph._graph.cache_clear()


@pytest.fixture
def browser() -> Client:
    """The browser of somebody who may look."""
    return client_of(person("vera", "viewer"))


def page(browser: Client, query: str = "?view=graph") -> str:
    """Open it."""
    answer = browser.get(reverse("conversation", args=[KEY]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_messages_handoffs_and_calls_are_counted_between_each_two(browser: Client) -> None:
    store(*[said("Rosa", "agent:Dialogue")] * 3, said("agent:Dialogue", "Rosa"), said("Rosa", f"chat:{KEY}"))
    store({"event": "agent.handoff", "from_agent": "Dialogue", "to_agent": "Triage"})
    store({**STEP, "tool_call_id": "c1"}, {**STEP, "tool_call_id": "c2"})

    html = page(browser)

    assert sorted(ROW.findall(html)) == [
        ("Dialogue", "hands off", "Triage", "1"),
        ("Dialogue", "messages", "Rosa", "1"),
        ("Rosa", "messages", "Dialogue", "3"),
        ("Rosa", "messages", "everyone", "1"),
        ("Triage", "calls", "locate", "2"),
    ]
    assert html.count('<g class="arc"') == 5
    assert html.count('<g class="voice"') == 5
    assert "<title>Rosa to Dialogue, 3 times</title>" in html
    assert "all 8 events" in html


def test_a_part_is_the_picture_alone_and_tells_up_to_where_it_counted(browser: Client) -> None:
    store(said("Rosa", "agent:Dialogue"), said("Rosa", "agent:Dialogue"))

    part = page(browser, "?view=graph&part=graph").strip()

    assert part.startswith('<div data-part data-head="2">')
    assert "<html" not in part


def test_only_the_newest_events_are_counted_and_the_page_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "NEWEST", 3)
    store(*[said("Rosa", "agent:Dialogue")] * 5, {**STEP, "tool_call_id": "c1"})

    html = page(browser)

    assert ROW.findall(html) == [("Rosa", "messages", "Dialogue", "2"), ("Triage", "calls", "locate", "1")]
    assert "events 4 to 6" in html


def test_reading_stops_when_it_has_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_reads, "READ_BYTES", 1000)
    store(*[said("Rosa", "agent:Dialogue", "word " * 40)] * 9)
    found = Conversation.objects.get(key=KEY)

    told = counting.interactions(found.pk, KEY, 9)

    assert told.first == told.events[0].seq == 6
    assert [event.seq for event in told.events] == [6, 7, 8, 9]


def test_who_does_not_fit_into_the_picture_is_in_the_table(browser: Client) -> None:
    store(*[said(f"agent:Worker {n} with a very long name", "Rosa") for n in range(30)])

    html = page(browser)

    assert html.count('<g class="voice"') == interaction_graph.DRAWN
    assert f"{31 - interaction_graph.DRAWN} more in the table" in html
    assert len(ROW.findall(html)) == 30


def test_an_empty_conversation_says_that_nobody_has_spoken(browser: Client) -> None:
    Conversation.objects.create(key=KEY)

    assert "No messages or tool calls yet." in page(browser)


def test_hostile_names_stay_text(browser: Client) -> None:
    store(said('<script>alert("x")</script>', 'agent:"><svg onload=alert(1)>\u202e'))

    html = page(browser)

    assert "<script>alert" not in html
    assert "<svg onload" not in html
    assert "\u202e" not in html
