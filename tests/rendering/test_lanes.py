"""A conversation in lanes: a column for each voice, a card for each event, as the server draws it."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from conversations.core.principals import SYSTEM, user_principal
from conversations.events import log
from conversations.models import Conversation
from conversations.redaction.redact import redact
from conversations.rendering import outline_rows
from conversations.rendering.event_renderer import EventRenderer
from conversations.rendering.lane_cards import LaneRenderer
from conversations.runs.approvals import decide
from dashboard.pages import lanes
from tests.dashboard.pages.test_conversation_page import KEY, output, store, token
from tests.support import teamwork, toolcalls
from tests.support.cast import cast, client_of
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
HEAD = re.compile(r'class="lane-head" data-key="([^"]*)"')
LABEL = re.compile(r'<article [^>]*aria-label="([^"]*)"')
PLACE = re.compile(r'<article [^>]*?data-at="(\d+)" data-far="(\d*)" data-way="(\w*)" id="e(\d+)"')


def message_payload(sender: str, recipient: str, text: str = "hello") -> dict[str, Any]:
    """Make a message."""
    return {"type": "message", "sender": sender, "recipient": recipient, "content": text}


def page(browser: Client, query: str = "?view=lanes") -> str:
    """Open the page."""
    answer = browser.get(reverse("conversation", args=[KEY]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def places(html: str) -> list[tuple[str, ...]]:
    """Return each card as (seq, its lane, the lane it points at, which way)."""
    return [(seq, at, far, way) for at, far, way, seq in PLACE.findall(html)]


def test_each_voice_has_a_lane_and_each_card_points_at_whom_it_was_said_to(browser: Client) -> None:
    store(
        message_payload("Rosa", "agent:Dialogue"),
        message_payload("agent:Dialogue", "Rosa"),
        message_payload("agent:Dialogue", f"chat:{KEY}"),
    )
    store({"event": "agent.handoff", "from_agent": "Dialogue", "to_agent": "Triage"})

    html = page(browser)

    assert HEAD.findall(html) == ["Rosa", "agent:Dialogue", "agent:Triage"]
    assert LABEL.findall(html) == ["Rosa to Dialogue", "Dialogue to Rosa", "Dialogue to everyone", "Dialogue to Triage"]
    assert places(html) == [("1", "1", "2", "on"), ("2", "2", "1", "back"), ("3", "2", "", ""), ("4", "2", "3", "on")]
    assert "everyone" in html


def test_a_call_and_its_end_are_one_card_that_points_at_the_server_of_the_tool(browser: Client) -> None:
    step = {"event": "tool_step", "agent": "Triage", "name": "locate", "tool_call_id": "c1"}
    store({**step, "status": "start", "args": {"street": "Mill"}, "mcp_server": "gis"})
    store({**step, "status": "error", "error": "503 after 2 tries", "duration_ms": 412})

    html = page(browser)

    assert HEAD.findall(html) == ["agent:Triage", "server:gis"]
    assert places(html) == [("1", "1", "2", "on")]
    assert [word in unescape(html) for word in ("locate", "Mill", "412 ms", "503 after 2 tries")] == [True] * 4


def test_tools_of_no_server_share_a_lane_and_tools_come_after_all_participants(browser: Client) -> None:
    step = {"event": "tool_step", "agent": "Triage", "status": "start"}
    store({**step, "name": "classify", "tool_call_id": "c1"}, {**step, "name": "look_up", "tool_call_id": "c2"})
    store({**step, "name": "locate", "tool_call_id": "c3", "mcp_server": "gis"})
    store(message_payload("agent:Triage", "Rosa"))

    html = page(browser)

    assert HEAD.findall(html) == ["agent:Triage", "Rosa", "server:", "server:gis"]
    assert places(html) == [("1", "1", "3", "on"), ("2", "1", "3", "on"), ("3", "1", "4", "on"), ("4", "1", "2", "on")]
    assert 'data-tools="3"' in html  # from there on, lanes are dashed


def test_a_turn_that_is_being_written_is_an_open_card_and_its_output_takes_its_place(browser: Client) -> None:
    store(message_payload("Rosa", "agent:Dialogue"), token("A crew "), token("is coming"))
    written = page(browser)
    store(output("A crew is coming."))

    assert "data-live-text" in written
    assert "A crew is coming" in written
    assert "answering" in written
    assert "answering" not in page(browser)


def test_a_long_text_is_cut_short_and_leads_to_the_whole_event(browser: Client) -> None:
    store(message_payload("Rosa", "agent:Dialogue", "word " * 1000))

    html = page(browser)

    assert "word " * 30 in html
    assert "word " * 60 not in html
    assert '<a href="?event=1#e1"' in html


def test_a_link_to_an_event_opens_lanes_around_it(browser: Client) -> None:
    store(*[message_payload("Rosa", "agent:Dialogue", f"line {n}") for n in range(200)])

    html = page(browser, "?view=lanes&event=50")

    assert "50" in [seq for seq, *_ in places(html)]
    assert len(places(html)) == 60
    assert 'data-event="50"' in html
    assert 'href="?view=lanes&amp;event=50#e50"' in html


def test_further_pages_are_cards_that_the_page_places(browser: Client) -> None:
    store(*[message_payload("Rosa", "agent:Dialogue", f"line {n}") for n in range(70)])

    older = browser.get(reverse("conversation-entries", args=[KEY]) + "?view=lanes&before=11").json()

    assert re.findall(r'id="e(\d+)"', older["html"]) == [str(n) for n in range(1, 11)]
    assert older["html"].count('data-sender="Rosa" data-recipient="agent:Dialogue"') == 10


def test_of_many_those_in_view_have_lanes_and_the_others_share_the_last(browser: Client) -> None:
    store(*[message_payload(f"agent:{n}", "Rosa") for n in range(50)])

    html, early = page(browser), page(browser, "?view=lanes&event=5")

    assert HEAD.findall(html) == ["Rosa", *[f"agent:{n}" for n in range(50 - lanes.WINDOW, 50)]]
    assert f"{50 - lanes.WINDOW} others" in html
    assert places(html)[0] == ("1", str(lanes.WINDOW + 2), "1", "back")
    assert places(html)[-1] == ("50", str(lanes.WINDOW + 1), "1", "back")
    assert HEAD.findall(early) == ["agent:0", "Rosa", *[f"agent:{n}" for n in range(1, lanes.WINDOW)]]


def test_few_all_have_lanes(browser: Client) -> None:
    store(*[message_payload(f"agent:{n % (lanes.MAX_OWN_LANES - 1)}", "Rosa") for n in range(50)])

    html = page(browser)

    assert len(HEAD.findall(html)) == lanes.MAX_OWN_LANES
    assert 'class="lane-head" data-others><b class="name"></b>' in html  # for scripts
    assert html.count("data-others") == 1


def test_the_overview_is_the_whole_conversation_however_long(browser: Client) -> None:
    store(*[message_payload("Rosa" if n % 2 else "agent:Desk", "agent:Dialogue") for n in range(1200)])
    store(
        {"event": "tool_step", "agent": "Desk", "name": "find", "tool_call_id": "c1", "status": "error", "error": "x"}
    )

    part = page(browser, "?view=lanes&part=overview")

    assert 'data-head="1201"' in part
    assert 400 < part.count("h7v") < 500
    assert part.count("<path") == 3  # people, the agent, what failed: laid out with every change of the lanes
    assert "data-hue" in part
    assert re.findall(r'data-state="failed" d="M0 ([\d.]+)h', part) == ["999.2"]


def test_a_decision_is_its_persons_in_the_overview_and_the_outline_and_a_call_its_agents(browser: Client) -> None:
    log.append(toolcalls.ours(KEY, "run", 1, decision="approve"))

    part, outline = page(browser, "?view=lanes&part=overview"), outline_rows.rows_of(log.read_after(KEY, 0))

    assert re.findall(r'<path d="M\d+ ([\d.]+)h', part) == ["400.0"]  # of people: the third of five events
    assert [row.mark.key for row in outline if row.sort == "approval"] == ["agent:Permit Desk", "user:maria"]
    assert HEAD.findall(page(browser)) == ["agent:Permit Desk", "server:"]


def test_what_is_reported_from_outside_says_so(browser: Client) -> None:
    log.append([toolcalls.event(KEY, {"event": "run.started", "run_id": "r", "agent": "Robot"}, toolcalls.ROBOT)])

    assert '<span class="clip" dir="auto">from outside</span>' in page(browser)


def test_call_that_was_decided_keeps_its_gate_with_who_decided(browser: Client) -> None:
    log.append(toolcalls.ours(KEY, "run", 1, decision="approve"))

    html = page(browser)

    assert 'data-gate="approved"' in html
    assert "approved by maria" in " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_what_a_person_had_happen_is_not_marked_as_sent_by_them() -> None:
    people = cast()
    teamwork.team()
    approval = teamwork.ask(people["operator"], key=KEY)
    decide.decide(people["approver"], approval.id, "approve")

    html = page(client_of(people["viewer"]))

    (resumed,) = re.findall(r'<article [^>]*data-kind="run.resumed".*?</article>', html, re.DOTALL)
    shown = " ".join(re.sub(r"<[^>]*>", " ", resumed).split())
    assert "Dialogue resumed" in shown
    assert "approved by april" in shown
    assert "sent by" not in shown
    assert "data-by" not in resumed


def test_replay_is_not_marked_as_sent_by_who_requested_it() -> None:
    people = cast()
    run = {"run_id": "r2", "agent": "Permit Desk", "tool_call": "t2", "tool_call_id": "c2", "name": "look_up"}
    request = {"event": "replay.requested", **run, "replay_of": "t1", "team": "t", "effect": "read", "args_raw": "{}"}
    log.append([unchecked(KEY, request, user_principal("otto"))])

    html = page(client_of(people["viewer"]))

    assert "replay by otto" in html
    assert "sent by" not in html


def test_an_empty_conversation_and_an_unknown_view_are_pages_too(browser: Client) -> None:
    Conversation.objects.create(key=KEY)

    assert places(page(browser)) == []
    assert "live-transcript" in page(browser, "?view=nonsense")
    assert "lane-heads" not in page(browser, "?view=nonsense")


def test_lanes_ask_the_database_no_more_than_the_transcript(
    browser: Client, django_assert_max_num_queries: Any
) -> None:
    store(*[message_payload(f"agent:{n}", "Rosa") for n in range(60)])
    page(browser, "")
    with django_assert_max_num_queries(60) as seen:
        page(browser, "")

    with django_assert_max_num_queries(len(seen.captured_queries)):
        page(browser)


def test_the_two_views_keep_their_drawings_apart() -> None:
    store(message_payload("Rosa", "agent:Dialogue"))
    event = log.read_after(KEY, 0)[0]

    both = [str(pen(KEY).draw(event).html) for pen in (EventRenderer, LaneRenderer, EventRenderer)]

    assert [("lane-card" in html) for html in both] == [False, True, False]


@pytest.mark.parametrize("length", [190, 195, 200, 300])
def test_an_agent_with_a_long_name_has_one_lane(browser: Client, length: int) -> None:
    name = "N" * length
    store(message_payload(f"agent:{name}", "Rosa"), message_payload("Rosa", f"agent:{name}"))
    store(output("hello") | {"agent": name}, {"event": "agent.handoff", "from_agent": "Desk", "to_agent": name})

    heads = HEAD.findall(page(browser))

    assert [head for head in heads if "N" in head] == [f"agent:{name}"[:200]]
    assert len(heads) == 3


def test_a_redacted_message_says_so(browser: Client) -> None:
    store(message_payload("Rosa", "agent:Desk"), message_payload("agent:Desk", "Rosa", "quokka"))
    redact(SYSTEM, KEY, [2], "asked for")

    html = page(browser)

    cards = dict(re.findall(r'<article [^>]*id="e(\d+)".*?<p class="says"[^>]*>(.*?)</p>', html, re.S))
    assert ">redacted</span>" in cards["2"]
    assert "redacted</span>" not in cards["1"]
