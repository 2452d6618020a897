"""The conversations page: what is listed, in which order, what each row tells, what the filter finds."""

import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from conversations.conversation import conversation_list, conversation_row
from conversations.core.errors import Invalid
from conversations.core.principals import SYSTEM, import_principal
from conversations.events import log
from conversations.events.log import from_internal
from conversations.models import Conversation, Participant, ReadMarker, Role, User
from conversations.rendering import agent_colors
from tests.dashboard.pages.test_conversation_page import store
from tests.support import toolcalls
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db

MESSAGE = {"type": "message", "sender": "Rosa", "recipient": "agent:Dialogue", "content": "wet"}


def make(key: str, at: int = 1, **columns: Any) -> Conversation:
    """Store a conversation's row as the log would have folded it."""
    names = columns.pop("participants", [])
    made = Conversation.objects.create(key=key, last_at=at, **columns)
    Participant.objects.bulk_create(
        Participant(conversation=made, name=name, kind="agent" if name.startswith("agent:") else "person")
        for name in names
    )
    return made


def keys(**filters: Any) -> list[str]:
    """List, and answer the keys."""
    return [row.key for row in conversation_list.newest_conversations(**filters).rows]


@pytest.fixture
def maria() -> User:
    """Somebody who may look."""
    user = User.objects.create(username="maria")
    Role.objects.create(user=user, name="viewer")
    return user


@pytest.fixture
def browser(client: Client, maria: User) -> Client:
    """Maria's browser."""
    client.force_login(maria)
    return client


def test_selected_conversations_can_be_compared(browser: Client) -> None:
    part = browser.get("/?part=bulk").content.decode()

    assert 'data-compare="/compare/" hidden' in part


def test_the_newest_stands_first_and_staged_ones_are_not_shown() -> None:
    make("old", 1)
    make("new", 3)
    make("staged", 9, is_staged=True)

    assert keys() == ["new", "old"]


def test_pages_show_every_conversation_once_though_moments_repeat() -> None:
    for n in range(23):
        make(f"c{n}", at=n // 4)

    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = conversation_list.newest_conversations(before=cursor, limit=5)
        seen += [row.key for row in page.rows]
        cursor = page.cursor

    assert seen == [
        f"c{n}" for n in (*range(22, 19, -1), *[m for a in range(4, -1, -1) for m in range(a * 4 + 3, a * 4 - 1, -1)])
    ]


@pytest.mark.parametrize(
    "cursor", ["x", "1", "1.", ".1", "-1.2", "1.2.3", "9" * 40 + ".1", "9" * 20 + ".1", "1." + "9" * 19, "٣.٣"]
)
def test_a_cursor_that_is_none_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(Invalid):
        conversation_list.newest_conversations(before=cursor)


def test_every_word_of_the_filter_must_be_in_title_id_or_last_line() -> None:
    make("park-1", 2, title="Two benches", last_line="They are missing")
    make("park-2", 1, title="A swing")

    assert keys(q="PARK") == ["park-1", "park-2"]
    assert keys(q="park benches missing") == ["park-1"]
    assert keys(q="benches swing") == []


def test_signs_of_like_mean_themselves() -> None:
    make("a", 2, title="100% sure_thing \\o/")
    make("b", 1, title="100 sure thing")

    assert [keys(q=q) for q in ("100%", "sure_", "\\o")] == [["a"], ["a"], ["a"]]


@pytest.mark.parametrize(
    ("q", "title"),
    [
        ("ärger", "Ärger mit Rechnung"), ("ÄRGER", "Der ärger"), ("éCOLE", "École"), ("союз", "СОЮЗ"), ("Ǆ", "ǆ"),
        ("ΤΈΛΟΣ", "τέλος"), ("τέλοσ", "ΤΈΛΟΣ"), ("STRAẞE", "Straße"), ("100%ä", "100%Ä"), ("ä_b\\", "Ä_B\\"),
        ("İstanbul", "İSTANBUL"), ("абвгдежзийклмнопрстуфхцчшщъыьэюя", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    ],
)  # fmt: skip
def test_a_word_is_found_in_any_case_of_any_script(q: str, title: str) -> None:
    make("title", 3, title=title)
    make("line", 2, last_line=f"x{title}")
    make("other", 1, title="Arger mit Rechnung, 100ä, ab")

    assert keys(q=q) == ["title", "line"]


def test_a_participant_is_found_with_and_without_the_prefix() -> None:
    make("a", 2, participants=["agent:Triage", "Rosa"])
    make("b", 1, participants=["agent:Dialogue", "user:zoe"])

    assert keys(participant="Triage") == keys(participant="agent:Triage") == keys(participant="Rosa") == ["a"]
    assert keys(participant="zoe") == keys(participant="user:zoe") == ["b"]
    assert keys(participant="Tri") == []


def test_the_list_takes_four_queries_however_long_it_is(maria: User, django_assert_num_queries: Any) -> None:
    for n in range(40):
        make(f"c{n}", n, participants=["agent:A", f"agent:{n}"])

    agent_colors.refresh_colors()  # now and then one more

    with django_assert_num_queries(4):
        page = conversation_list.newest_conversations(reader=maria, limit=30)

    assert len(page.rows) == 30


def test_unread_is_what_came_since_my_last_look(browser: Client, maria: User) -> None:
    ReadMarker.objects.create(user=maria, conversation=make("half", 2, messages=5), messages_seen=3)
    make("never", 1, messages=4)

    rows = conversation_list.newest_conversations(reader=maria).rows

    assert [(row.key, row.unread) for row in rows] == [("half", 2), ("never", 4)]
    assert "data-unread-count>2<" in browser.get("/").content.decode()


def test_owned_goes_before_paused_goes_before_open() -> None:
    make("c", 3, state="paused", owner="user:tomas")
    make("b", 2, state="paused")
    make("a", 1)

    assert [row.shown_state for row in conversation_list.newest_conversations().rows] == ["person", "paused", "open"]


def test_four_marks_are_drawn_people_first_and_the_rest_is_a_number() -> None:
    make("a", participants=[*(f"agent:A{n}" for n in range(5)), "Rosa"])

    (row,) = conversation_list.newest_conversations().rows

    assert [mark.title for mark in row.marked] == ["Rosa", "A0", "A1", "A2"]
    assert row.unmarked_words == "2"


@pytest.mark.parametrize(("number", "words"), [(0, "–"), (9999, "9,999"), (12_999, "12k"), (3_450_000, "3.5M")])
def test_counts_are_short(number: int, words: str) -> None:
    assert conversation_row.compact_count(number) == words


def test_hostile_words_are_only_words(browser: Client) -> None:
    evil = "<img src=x onerror=alert(1)>\u202e\"'"
    make("../..?#", title=evil, last_sender=evil, last_line=evil, handler=evil, owner=evil, participants=[evil])

    page = browser.get("/").content.decode()

    assert "<img" not in page
    assert "\u202e" not in page


def test_a_row_without_a_message_says_so(browser: Client) -> None:
    log.append(toolcalls.call("calls-alone", 1))

    assert "No messages yet" in browser.get("/").content.decode()


def test_the_row_of_a_frame_is_the_row_of_the_page(browser: Client, maria: User) -> None:
    conversation = make("a", participants=["agent:A"], messages=3, head_seq=8)
    ReadMarker.objects.create(user=maria, conversation=conversation, messages_seen=3)

    (row,) = conversation_list.rows(["a", "unknown"])
    page = browser.get("/").content.decode()

    assert (row["key"], row["version"], row["messages"]) == ("a", 8, 3)
    assert row["html"] in page.replace(' data-seen="3"', "")


def test_a_row_for_everybody_tells_nothing_about_a_reader(maria: User) -> None:
    ReadMarker.objects.create(user=maria, conversation=make("a", messages=3), messages_seen=1)

    assert "data-seen" not in conversation_list.newest_rows()[0]["html"]
    assert not re.search(r"data-unread[ >]", conversation_list.newest_rows()[0]["html"])


def test_what_the_log_folds_is_what_the_list_shows() -> None:
    payload: dict[str, object] = {"type": "message", "sender": "agent:Triage", "content": "On  my\nway"}

    log.append([unchecked("c", payload, SYSTEM)])
    (row,) = conversation_list.newest_conversations().rows

    assert (row.said_by and row.said_by.title, str(row.last_line), row.messages) == ("Triage", "On my way", 1)
    assert conversation_list.versions() == {"c": 1}


def test_the_address_holds_the_filter_on_to_older_pages(browser: Client) -> None:
    for n in range(61):
        make(f"park {n}", n)

    page = browser.get("/", {"q": "park", "part": "list"}).content.decode()

    assert "<html" not in page
    assert 'href="/?q=park&amp;before=1.' in page


def test_an_empty_list_and_one_without_a_match_say_what_to_do(browser: Client) -> None:
    assert "No conversations yet" in browser.get("/").content.decode()
    assert "Clear filter" in browser.get("/", {"q": "x"}).content.decode()


def test_a_cursor_made_up_is_a_bad_request(browser: Client) -> None:
    assert browser.get("/", {"before": "x"}).status_code == 400


def test_the_api_lists_what_design_3_6_names(browser: Client) -> None:
    make("a b", 5_000_000, title="T", participants=["agent:A"], messages=2, tool_calls=3, errors=1, head_seq=9)
    make("z", 1)

    answer = browser.get("/api/v1/conversations", {"limit": "1"}).json()

    (item,) = answer["items"]
    assert item.pop("epoch")
    assert item == {
        "conversation_id": "a b",
        "title": "T",
        "forked_from": None,
        "head_seq": 9,
        "participants": ["agent:A"],
        "has_more_participants": False,
        "messages": 2,
        "tool_calls": 3,
        "errors": 1,
        "state": "open",
        "shown_state": {"state": "open", "words": "Open"},
        "owner": "",
        "last_activity_at": "1970-01-01T00:00:05+00:00",
        "url": "/conversations/a%20b/",
    }
    following = browser.get("/api/v1/conversations", {"before": answer["cursor"]}).json()
    assert [item["conversation_id"] for item in following["items"]] == ["z"]
    assert following["cursor"] is None


@pytest.mark.parametrize("limit", ["0", "201", "x", "-1", "9" * 30])
def test_the_api_refuses_a_limit_out_of_range(browser: Client, limit: str) -> None:
    answer = browser.get("/api/v1/conversations", {"limit": limit})

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "limit")


def move(browser: Client, last_seq: int, seen: int, key: str = "a") -> Any:
    """Move the marker."""
    body = {"conversation_id": key, "last_seq": last_seq, "messages_seen": seen}
    return browser.post("/api/v1/read-markers", body, content_type="application/json")


def test_an_imported_row_has_nothing_unread_until_something_comes(browser: Client, maria: User) -> None:
    recording = make("recording", 2, messages=40, opened_by="import:owner")
    make("talk", 1, messages=4, opened_by="agent:A")

    rows = {row.key: row.unread for row in conversation_list.newest_conversations(reader=maria).rows}
    assert rows == {"recording": 0, "talk": 4}
    page = browser.get("/").content.decode()
    assert page.count("data-imported") == 1
    assert 'data-seen="40"' in page

    ReadMarker.objects.create(user=maria, conversation=recording, messages_seen=38)
    assert conversation_list.newest_conversations(reader=maria).rows[0].unread == 2


def test_an_import_of_what_is_over_is_no_live_activity(browser: Client) -> None:
    old, now = "2025-06-14T10:00:00Z", datetime.now(UTC).isoformat()
    for key, *times in (("old", old, None), ("untimed", None), ("followed", old, now), ("continued", old)):
        for at in times:
            message = MESSAGE if at is None else {**MESSAGE, "created_at": at}
            store(message, key=key, by=import_principal("recording"))
    store(MESSAGE, key="continued")

    rows = conversation_list.newest_conversations().rows

    assert {row.key: row.group for row in rows} == {
        "old": "quiet",
        "untimed": "quiet",
        "followed": "live",
        "continued": "live",
    }
    assert {row.key for row in rows if row.spark} == {"followed", "continued"}
    page = browser.get("/").content.decode()
    assert (page.count(">imported</span>"), page.count("data-history")) == (4, 2)
    for query in ("", "?at=1"):
        assert ">imported</span>" in browser.get(f"/conversations/old/{query}").content.decode()


def test_a_row_draws_its_last_hour_and_a_quiet_one_nothing() -> None:
    now = time.time_ns() // 1000
    make("busy", now, activity="4,0,40")
    make("quiet", now - 3 * 3600 * 1_000_000, activity="9,9")

    busy, quiet = conversation_list.newest_conversations().rows

    assert busy.spark is not None
    assert busy.spark.words == "44 events in the last hour"
    assert busy.spark.path.count("M") == 2
    assert quiet.spark is None
    assert "44 events in the last hour" in conversation_row.drawn(busy)
    assert "<svg" not in conversation_row.drawn(quiet).split('class="spark"')[1].split("</span>")[0]


def test_a_marker_moves_forward_only_and_not_past_the_end(browser: Client) -> None:
    make("a", head_seq=10, messages=5)

    answers = [move(browser, *to).json() for to in ((4, 2), (2, 1), (99, 99))]

    assert [(answer["last_seq"], answer["messages_seen"]) for answer in answers] == [(4, 2), (4, 2), (10, 5)]


def test_a_marker_without_a_count_takes_the_messages_up_to_it(browser: Client) -> None:
    payload: dict[str, object] = {"type": "message", "sender": "agent:A", "recipient": "chat:a"}
    log.append([from_internal("a", payload | {"content": f"{n}"}, SYSTEM) for n in range(5)])

    answer = browser.post(
        "/api/v1/read-markers", {"conversation_id": "a", "last_seq": 3}, content_type="application/json"
    )

    assert answer.json()["messages_seen"] == 3


def test_markers_are_mine_alone(browser: Client) -> None:
    tomas = User.objects.create(username="tomas")
    ReadMarker.objects.create(user=tomas, conversation=make("a", messages=5), messages_seen=5)

    assert browser.get("/api/v1/read-markers", {"ids": ["a", "b"]}).json()["items"] == []
    move(browser, 0, 3)
    assert browser.get("/api/v1/read-markers", {"ids": ["a"]}).json()["items"][0]["messages_seen"] == 3


def test_a_marker_for_nothing_or_of_nonsense_is_refused(browser: Client) -> None:
    make("a")

    assert move(browser, 1, 1, key="unknown").status_code == 404
    assert move(browser, -1, 1).status_code == 400
    assert move(browser, 2**60, 1).json()["error"]["field"] == "last_seq"


def test_a_row_that_cannot_be_drawn_is_its_key_and_spares_the_others(browser: Client, caplog: Any) -> None:
    make("far/future & <b>", at=2**62)  # no calendar has it
    make("near", 1)

    page = browser.get("/").content.decode()
    frame = conversation_list.newest_rows()

    for html in (page, "".join(row["html"] for row in frame)):
        assert html.count("<article") == 2
        assert html.count("could not be displayed") == 1
        assert 'href="/conversations/near/"' in html
        assert 'href="/conversations/far/future%20%26%20%3Cb%3E/"' in html
        assert "far/future &amp; &lt;b&gt;" in html
    assert "the row of conversation 'far/future & <b>' could not be drawn" in caplog.text
