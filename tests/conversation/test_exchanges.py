"""The graph of a conversation: who spoke to whom how often, counted and drawn by the server."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from conversations.events.log import bounded_reads
from conversations.events.log import interaction_counts as counting
from conversations.events.log.interaction_counts import CallCount
from conversations.events.log.records import Stored
from conversations.models import Conversation
from conversations.rendering import conversation_graph
from dashboard.pages import graph
from tests.dashboard.pages.test_conversation_page import KEY, store
from tests.import_export.test_recordings_counts import imported
from tests.rendering.test_lanes import message_payload
from tests.rendering.test_layered_layout import apart
from tests.support.recorded import own_files, their_files
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db
ROW = re.compile(
    r"<tr [^>]*><td>.*?title=\"([^\"]*)\".*?class=\"quiet\">([^<]*)<.*?title=\"([^\"]*)\".*?number\"[^>]*>([^<]*)<",
    re.S,
)
STEP = {"event": "tool_step", "agent": "Triage", "name": "locate", "status": "start"}


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """Conversations of other tests had the same keys."""
    graph._counted.cache_clear()
    graph._drawn.cache_clear()


def stored(body: dict[str, Any], seq: int = 1) -> Stored:
    """Return an event as it is read."""
    return Stored(KEY, seq, "message", 0, "system", None, None, None, json.dumps(body))


def page(browser: Client, query: str = "?view=graph") -> str:
    """Open it."""
    answer = browser.get(reverse("conversation", args=[KEY]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def test_messages_handoffs_and_calls_are_counted_between_each_two(browser: Client) -> None:
    store(
        *[message_payload("Rosa", "agent:Dialogue")] * 3,
        message_payload("agent:Dialogue", "Rosa"),
        message_payload("Rosa", f"chat:{KEY}"),
    )
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
    assert html.count('<g class="arc"') == 4
    assert html.count('<g class="voice"') == 4  # everyone is nobody in particular
    assert "<title>Rosa to Dialogue, 3 times</title>" in html
    assert "<title>Rosa: 3 sent, 1 to everyone</title>" in html
    assert "all 8 events" in html


def test_output_counts_as_a_message_to_whoever_spoke_before_it(browser: Client) -> None:
    answer = {"event": "output", "agent": "Dialogue"}
    store({**answer, "text": "Is anybody there?"})
    store(message_payload("Rosa", "agent:Dialogue"), {**answer, "text": "Yes."}, {**answer, "text": "It is filed."})
    store(message_payload("agent:Dialogue", "Rosa", "It is filed."))
    store({**answer, "text": "Inside a call.", "parent_call": "t1"})

    html = page(browser)

    assert sorted(ROW.findall(html)) == [
        ("Dialogue", "messages", "Rosa", "2"),
        ("Dialogue", "messages", "everyone", "1"),
        ("Rosa", "messages", "Dialogue", "1"),
    ]
    assert 'data-seq="3" data-from="agent:Dialogue"' in page(browser, "?view=graph&event=3")


def test_what_a_person_types_on_the_stream_is_a_message_to_everyone_and_is_answered(browser: Client) -> None:
    store({"event": "user_message", "text": "The road is flooded."})  # as `switchboard.watch` records it
    store({"event": "output", "agent": "Dialogue", "text": "It is filed."})

    assert sorted(ROW.findall(page(browser))) == [
        ("Dialogue", "messages", "user", "1"),
        ("user", "messages", "everyone", "1"),
    ]


def test_a_message_that_the_stream_repeats_is_counted_once(browser: Client) -> None:
    store(message_payload("user:rosa", "agent:Dialogue", "Hello"))
    store({"event": "user_message", "sender": "user:rosa", "recipient": "agent:Dialogue", "text": "Hello"})

    assert ROW.findall(page(browser)) == [("rosa", "messages", "Dialogue", "1")]


def test_the_request_of_a_client_is_a_message_to_its_agent(browser: Client) -> None:
    client = {"sender": "token:desk", "recipient": "agent:Dialogue", "agent": "Dialogue", "model": "Dialogue"}
    store(
        {"event": "response.received", "response_id": "resp_1", **client, "input": [{"role": "user", "content": "?"}]}
    )
    store({"event": "output", "agent": "Dialogue", "text": "Yes."})

    assert sorted(ROW.findall(page(browser))) == [
        ("Dialogue", "messages", "desk", "1"),
        ("desk", "messages", "Dialogue", "1"),
    ]


def test_a_part_is_the_picture_alone_and_tells_up_to_where_it_counted(browser: Client) -> None:
    store(message_payload("Rosa", "agent:Dialogue"), message_payload("Rosa", "agent:Dialogue"))

    part = page(browser, "?view=graph&part=graph").strip()

    assert part.startswith('<div data-part data-head="2">')
    assert "<html" not in part


def test_only_the_newest_events_are_counted_and_the_page_says_so(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "NEWEST", 3)
    store(*[message_payload("Rosa", "agent:Dialogue")] * 5, {**STEP, "tool_call_id": "c1"})

    html = page(browser)

    assert ROW.findall(html) == [("Rosa", "messages", "Dialogue", "2"), ("Triage", "calls", "locate", "1")]
    assert "events 4 to 6" in html


def test_reading_stops_when_it_has_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_reads, "READ_BYTES", 1000)
    store(*[message_payload("Rosa", "agent:Dialogue", "word " * 40)] * 9)
    conversation = Conversation.objects.get(key=KEY)

    counts = counting.interactions(conversation.pk, KEY, 9)

    assert counts.first == counts.events[0].seq == 6
    assert [event.seq for event in counts.events] == [6, 7, 8, 9]


def test_the_most_active_are_drawn_and_the_others_on_wish(browser: Client) -> None:
    store(*[message_payload(f"agent:Worker {n} with a very long name", "Rosa") for n in range(30)])

    html, whole = page(browser), page(browser, "?view=graph&whole=1")

    assert html.count('<g class="voice"') == conversation_graph.DRAWN
    assert f"and {31 - conversation_graph.DRAWN} more</a>" in html
    assert len(ROW.findall(html)) == 30
    assert whole.count('<g class="voice"') == 31
    assert whole.count('<g class="arc"') == 30
    assert 'href="?view=graph&amp;at=29&amp;event=5&amp;whole=1"' in page(browser, "?view=graph&at=29&event=5")
    assert 'href="?view=graph&amp;at=29&amp;event=5"' in page(browser, "?view=graph&at=29&event=5&whole=1")


def test_an_edge_stands_for_the_selected_event_and_leads_to_its_newest_else(browser: Client) -> None:
    store(*[message_payload("Rosa", "agent:Dialogue")] * 3, {**STEP, "tool_call_id": "c1"})
    store({**STEP, "tool_call_id": "c1", "status": "success"})
    selected = re.compile(r'<tr [^>]*data-seq="(\d+)" aria-current="true">')

    assert selected.findall(page(browser)) == []
    assert selected.findall(page(browser, "?view=graph&event=2")) == ["2"]
    assert 'data-seq="2" data-from="Rosa"' in page(browser, "?view=graph&event=2")
    assert 'data-seq="3" data-from="Rosa"' in page(browser, "?view=graph&event=4")
    assert selected.findall(page(browser, "?view=graph&event=5")) == ["5"]  # the end of the call


def test_a_drawing_moves_nothing_when_a_number_grows_and_overlaps_nowhere() -> None:
    tool = CallCount("Agent 1", "look_up", 3, 9)
    events = [stored(message_payload(f"citizen {n % 40}", f"agent:Agent {n % 30}"), n + 1) for n in range(200)]
    again = [*events, *(event._replace(seq=201 + n) for n, event in enumerate(events[:7]))]
    few, more = (conversation_graph.edges_of(conversation_graph.betweens(batch), [tool]) for batch in (events, again))

    first, second = conversation_graph.drawing_of(few, 400), conversation_graph.drawing_of(more, 400)

    assert [node.place for node in first.nodes] == [node.place for node in second.nodes]
    places = [*(node.place for node in first.nodes), *(arc.label for arc in first.arcs)]
    assert all(apart(place, other) for place, other in combinations(places, 2))


@pytest.mark.parametrize("path", [*own_files(), *their_files()[:: rounds(9, 3)]], ids=lambda path: path.name)
def test_nothing_overlaps_in_a_recorded_conversation(path: Path) -> None:
    for key in imported(path)[:5]:
        drawing = graph.graph_of(Conversation.objects.get(key=key), whole=True).drawing

        places = [*(node.place for node in drawing.nodes), *(arc.label for arc in drawing.arcs)]
        assert len(drawing.nodes) > 1
        assert all(apart(place, other) for place, other in combinations(places, 2))


def test_an_empty_conversation_says_that_nobody_has_spoken(browser: Client) -> None:
    Conversation.objects.create(key=KEY)

    assert "No messages or tool calls yet." in page(browser)


def test_hostile_names_stay_text(browser: Client) -> None:
    store(message_payload('<script>alert("x")</script>', 'agent:"><svg onload=alert(1)>\u202e'))

    html = page(browser)

    assert "<script>alert" not in html
    assert "<svg onload" not in html
    assert "\u202e" not in html
