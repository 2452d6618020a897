"""The list of tool calls: its filters find what a look at every call finds, page by page; export is that list."""

import itertools
import json
from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.core.errors import Invalid
from conversations.core.principals import token_principal
from conversations.events import log
from conversations.listing.url_filters import parse_time
from conversations.models import Conversation, ToolCall
from conversations.tool_calls.listing import facets, sql_filters
from conversations.tool_calls.listing import query as listing
from conversations.tool_calls.listing.export import EXPORT
from conversations.tool_calls.listing.filters import CallFilters
from conversations.tool_calls.listing.sql_filters import CallPosition
from tests.support import listed, old_times, searching, toolcalls
from tests.support.cast import client_of
from tests.support.growth import sqlite_steps
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db


def listed_ids(filters: CallFilters, **bounds: int) -> list[str]:
    """Read all pages; return the ids."""
    return [call.id for call in listed.every_row(listing.newest, filters, **bounds)]


@pytest.mark.slow
def test_filters_find_what_a_look_finds_whatever_the_order_of_times(team, monkeypatch):
    old_times.record(monkeypatch, team["operator"])
    searching.catch_up()
    seen = set(ToolCall.objects.filter(conversation__is_staged=False).values_list("id", flat=True))
    assert len(seen) < ToolCall.objects.count()
    days = [None, *(old_times.NOW - days * old_times.DAY_US for days in (60, 44, 20, 2, 0))]
    payloads = [
        {},
        {"agent": ("Desk",)},
        {"status": ("failed",)},
        {"q": "refund"},
        {"conversation": "old"},
        {"tool": ("x",)},
    ]

    for since, until, more in itertools.product(days, days, payloads):
        filters = CallFilters(since=since, until=until, **more)
        wanted = [id_ for id_ in toolcalls.brute(filters) if id_ in seen]

        assert listed_ids(filters) == wanted, filters
        assert listed_ids(filters, limit=3, walk=5) == wanted, filters


def test_both_ends_of_a_time_range_are_within_it():
    log.append(toolcalls.call("c", 1, agent="Desk"))
    call = ToolCall.objects.get()
    at = call.started_at

    assert listed_ids(CallFilters(since=at, until=at)) == [call.id]
    assert listed_ids(CallFilters(since=at + 1)) == []
    assert listed_ids(CallFilters(until=at - 1)) == []


def test_a_count_ends_at_its_bound(monkeypatch):
    monkeypatch.setattr(facets, "MAX_COUNT", 9)
    for number in range(12):
        log.append(toolcalls.call("c", number, agent="Desk" if number else "Rare"))

    by_agent = {value.value: value.words for value in facets.facets(CallFilters())[1].values}

    assert by_agent == {"Desk": "9+", "Rare": "1"}


def test_a_count_that_looked_at_some_only_says_that_there_may_be_more(monkeypatch):
    monkeypatch.setattr(facets, "WALK", 5)
    for number in range(8):
        log.append(toolcalls.call("c", number, agent="Desk"))

    by_agent = {value.value: value.words for value in facets.facets(CallFilters(replayed="no"))[1].values}

    assert by_agent == {"Desk": "5+"}


def test_of_many_values_the_most_frequent_are_counted_further(monkeypatch):
    monkeypatch.setattr(facets, "RANKING", 40)  # 2 calls of each value
    for number in range(60):
        log.append(toolcalls.call("c", number, agent="Desk" if number < 40 else f"Rare {number:02}"))

    agents = facets.facets(CallFilters())[1]
    under_filter = facets.facets(CallFilters(replayed="no"))[1]

    assert len(agents.all_values) == 21
    assert [(value.value, value.words) for value in agents.values][:2] == [("Desk", "40"), ("Rare 40", "1")]
    assert [(value.value, value.words) for value in under_filter.values][:2] == [("Desk", "40"), ("Rare 40", "1")]


@pytest.mark.parametrize("filters", [CallFilters(), CallFilters(agent=("Desk",), tool=("x",), conversation="c", q="a")])
def test_the_facets_of_a_page_ask_nothing_twice(filters):
    for number in range(20):
        log.append(toolcalls.call("c", number, agent=f"Desk {number % 3}"))

    with CaptureQueriesContext(connection) as captured:
        facets.facets(filters)
    asked_for = Counter(query["sql"] for query in captured.captured_queries)

    assert asked_for
    assert [sql for sql, times in asked_for.items() if times > 1] == []


@pytest.mark.parametrize("name", ['a"b\\c', "é\u2028", "\x7f"])
def test_a_value_of_any_characters_may_be_chosen(name):
    log.append(toolcalls.call("c", 1, agent="Desk"))

    by_agent = {value.value: value.count for value in facets.facets(CallFilters(agent=(name,)))[1].values}

    assert by_agent == {name: 0, "Desk": 1}


@pytest.mark.sqlite("its steps are counted")
@pytest.mark.parametrize(
    "filters",
    [
        CallFilters(min_ms=1.0),
        CallFilters(agent=("Rare",)),
        CallFilters(agent=("Rare",), min_ms=1.0),
        CallFilters(replayed="no"),
    ],
)
def test_counting_takes_no_longer_the_more_calls_there_are(monkeypatch, filters):
    monkeypatch.setattr(facets, "WALK", 20)
    monkeypatch.setattr(facets, "MAX_COUNT", 20)

    def recorded_so_far(numbers: range) -> int:
        log.append([
            event_ for number in numbers
            for event_ in toolcalls.call("c", number, agent="Desk" if number % 400 else "Rare", duration_ms=5.0)
        ])  # fmt: skip
        return sqlite_steps(lambda: facets.facets(filters))

    few, many = recorded_so_far(range(200)), recorded_so_far(range(200, 1600))

    assert few > 0
    assert many < 2 * few


def test_a_walk_that_ends_says_so_and_its_cursor_goes_on():
    for number in range(40):
        log.append(toolcalls.call("c", number, agent=f"A{number % 2}", name=f"tool{number % 2}"))
    never, rare = CallFilters(agent=("A1",), tool=("tool0",)), CallFilters(agent=("A1",), call_id="call-3")

    first = listing.newest(never, walk=10)
    last = listing.newest(never, before=first.after, walk=10)
    whole = listing.newest(rare, walk=10)

    assert (first.items, first.looked_at) == ([], 10)
    assert first.after is not None
    assert (last.items, last.looked_at, last.after) == ([], 0, None)
    assert ([call.call_id for call in whole.items], whole.looked_at, whole.after) == (["call-3"], 0, None)


def test_calls_that_an_import_still_writes_are_not_shown():
    log.append(toolcalls.call("seen", 1))
    log.append(toolcalls.call("staged", 2))
    Conversation.objects.filter(key="staged").update(is_staged=True)

    assert listed_ids(CallFilters()) == toolcalls.brute(CallFilters(conversation="seen"))
    assert listed_ids(CallFilters(conversation="staged")) == []
    assert listed_ids(CallFilters(agent=("Desk",))) == toolcalls.brute(CallFilters(conversation="seen"))


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("status=done&status=nope", "status", "got 'nope'"),
        ("min_ms=-1", "min_ms", "0 or more"), ("max_ms=nan", "max_ms", "0 or more"),
        ("max_bytes=9e99", "max_bytes", "0 or more"),
        ("min_ms=5&max_ms=4", "max_ms", "less than the minimum"), ("from=yesterday", "from", "a date and time"),
        ("to=9999999-01-01", "to", "a date and time"), ("from=2026-02-02&to=2026-01-01", "to", "not be before From"),
        ("last=2y", "last", "15m or 1h"), ("replayed=maybe", "replayed", "yes or no"), ("where=x", "where", "around"),
        (f"run={'x' * 65}", "run", "64 characters"), (f"agent={'x' * 402}", "agent", "401 characters"),
        ("&".join(f"tool={n}" for n in range(21)), "tool", "20 values"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_by_its_name(query, field, words):
    with pytest.raises(Invalid) as raised:
        listed.read_filters(CallFilters, query)

    assert raised.value.field == field
    assert words in raised.value.message


@pytest.mark.parametrize("time", ["2026-11-22T08:30", "2026-11-22T08:30Z", "2026-11-22T14:15%2B05:45"])
def test_a_time_without_a_zone_is_utc_and_another_is_that_moment(time):
    filters = listed.read_filters(CallFilters, f"from={time}")

    assert filters.query == "from=2026-11-22T08%3A30Z"


@pytest.mark.parametrize(
    ("end", "written"),
    [
        ("2026-11-22T08:30Z", "08%3A30Z"), ("2026-11-22T08:30", "08%3A30Z"), ("2026-11-22T14:15%2B05:45", "08%3A30Z"),
        ("2026-11-22T08:30:59.999999Z", "08%3A30Z"),
    ],
)  # fmt: skip
def test_the_end_of_a_range_includes_its_minute(end, written):
    filters = listed.read_filters(CallFilters, f"from=2026-11-22T08:30Z&to={end}")

    assert filters.until - filters.since == 59_999_999
    assert filters.query == f"from=2026-11-22T08%3A30Z&to=2026-11-22T{written}"


@pytest.mark.parametrize(
    "end", ["2026-11-22T08:30:00Z", "2026-11-22T08:30:07Z", "2026-11-22T08:30:00.5Z", "2026-11-22"]
)
def test_the_end_of_a_range_in_seconds_is_that_moment_and_is_read_back(end):
    filters = listed.read_filters(CallFilters, f"to={end}")

    assert filters.until == parse_time(end)
    assert listed.read_filters(CallFilters, filters.query) == filters


@pytest.mark.parametrize("cursor", ["x", "1.2", "1.2.3.4", "-1.2.3", "1.2.9999999999999999999", "١.2.3"])
def test_a_cursor_of_nobodys_is_refused(cursor):
    with pytest.raises(Invalid, match="cursor"):
        listing.position_of(cursor)


def test_the_last_hour_is_what_reached_the_record_since_an_hour_and_not_before_from():
    for number in (1, 2):
        log.append(toolcalls.call("c", number))
    old = ToolCall.objects.get(call_id="call-1")
    ToolCall.objects.filter(pk=old.pk).update(started_at=old.started_at - 2 * 3600 * 10**6)

    assert [len(listed_ids(CallFilters(last=last))) for last in ("1h", "24h")] == [1, 2]
    assert listed_ids(CallFilters(last="24h", since=old.started_at)) == listed_ids(CallFilters(last="1h"))


def test_half_a_character_in_a_call_is_the_same_in_the_list_and_of_the_call_alone(team):
    for fields in ({"status": "start", "args": {"q": "half \ud83d"}}, {"status": "success", "output": ["half \ud83d"]}):
        step = {"event": "tool_step", "agent": "A", "name": "f", "tool_call_id": "c", **fields}
        log.append([unchecked("k", step, token_principal("robot"))])
    browser = client_of(team["viewer"])

    (listed_call,) = browser.get("/api/v1/tool-calls").json()["items"]

    assert (listed_call["arguments"], listed_call["output"]) == ({"q": "half ?"}, ["half ?"])
    call = browser.get(f"/api/v1/tool-calls/{listed_call['id']}").json()
    assert (call["arguments"], call["output"]) == (listed_call["arguments"], listed_call["output"])


def test_arguments_sent_with_escapes_are_found_and_shown_by_their_words(team):
    sent = json.dumps({"memo": "Rechnung 4711 – חשבון"})
    assert "\\u05d7" in sent
    step = {
        "event": "tool_step",
        "agent": "A",
        "name": "wire",
        "tool_call_id": "c",
        "status": "start",
        "args_raw": sent,
    }
    searching.say("k", step)
    searching.catch_up()
    browser = client_of(team["viewer"])

    assert [len(listed_ids(CallFilters(q=q))) for q in ("חשבון", "4711", "u05d7", "rechnung 4711")] == [1, 1, 0, 1]
    page = browser.get("/calls/").content.decode()
    assert "Rechnung 4711 – חשבון" in page
    assert "u05d7" not in page
    assert browser.get("/api/v1/tool-calls").json()["items"][0]["arguments"] == sent


def test_a_cursor_is_read_as_it_was_written():
    assert listing.position_of(str(CallPosition(1, 2, 3))) == CallPosition(1, 2, 3)
    assert listing.position_of("") is None


def test_a_call_id_is_looked_for_as_it_is():
    for number, call_id in enumerate([" call ", "call", "x" * 900]):
        log.append(
            [toolcalls.event("c", toolcalls.step(number, tool_call_id=call_id, status="start"), toolcalls.ROBOT)]
        )

    assert [call.call_id for call in listing.newest(listed.read_filters(CallFilters, "call_id=+call+")).items] == [
        " call "
    ]
    assert len(listing.newest(listed.read_filters(CallFilters, f"call_id={'x' * 900}")).items) == 1


@pytest.mark.parametrize(
    "begins", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "\u200b=1", "\0=1"]
)
def test_no_cell_is_a_formula_or_has_what_cannot_be_seen(begins):
    log.append(toolcalls.call("c", 1, args={begins: 1}, status="error", error=f"{begins}HYPERLINK()"))

    row = listed.table(EXPORT, CallFilters())[0]

    assert row["error"]
    listed.assert_plain(row.values())


def test_conditions_that_no_index_serves_have_another_way():
    conditions = sql_filters.conditions_for(CallFilters(replayed="no", q="x"))

    assert [scan.field for scan in conditions.scans] == ["q"]  # a rare word's calls are looked up
    assert set(conditions.tests) == {"replayed", "q"}
