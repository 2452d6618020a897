"""The list of tool calls: its filters find what a look at every call finds, page by page; export is that list."""

import csv
import dataclasses
import io
import json
import random
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection
from django.http import QueryDict

from conversations import exports, log
from conversations.errors import Invalid
from conversations.models import Conversation, ToolCall
from conversations.toolcalls import conditions, export, facets, filters, listing
from conversations.toolcalls.conditions import Place
from conversations.toolcalls.filters import Filters
from conversations.toolcalls.rows import item, rows
from tests import toolcalls

pytestmark = pytest.mark.django_db
DRAWN = 80  # combinations of filters


@pytest.fixture
def recorded() -> None:
    """The samples and calls of ours."""
    toolcalls.record()


def found(asked: Filters, *, limit: int = 50, walk: int = listing.WALK) -> list[str]:
    """Read all pages; answer the ids."""
    ids, place = [], None
    for _ in range(5_000):
        page = listing.newest(asked, before=place, limit=limit, walk=walk)
        ids += [call.id for call in page.calls]
        if page.after is None:
            return ids
        place = page.after
    raise AssertionError("the pages never end")


def read(query: str) -> Filters:
    """Read an address's query."""
    return filters.strictly(dict(QueryDict(query).lists()))


def test_filters_find_what_a_look_at_every_call_finds(recorded):
    dice = random.Random(11)
    assert ToolCall.objects.count() > 70
    kinds = dict.fromkeys(("empty", "some"), 0)

    for _ in range(DRAWN):
        asked = toolcalls.drawn_filters(dice)
        wanted = toolcalls.brute(asked)
        kinds["some" if wanted else "empty"] += 1

        assert found(asked) == wanted, asked
        assert found(asked, limit=9, walk=dice.choice([25, 60, 200])) == wanted, asked  # cut short, and gone on

    assert min(kinds.values()) > 10, kinds


def test_an_address_says_the_same_filters_again(recorded):
    dice = random.Random(12)
    for _ in range(100):
        asked = toolcalls.drawn_filters(dice)

        assert read(asked.query) == asked


def test_facets_count_what_a_look_at_every_call_counts(recorded):
    dice = random.Random(13)
    for asked in [Filters(), *(toolcalls.drawn_filters(dice) for _ in range(10))]:
        found = facets.facets(asked)
        assert [facet.name for facet in found] == list(facets.COLUMNS)
        for facet in found:
            for value in facet.values:
                only = asked.without(facet.name)
                wanted = len(toolcalls.brute(type(only)(**_fields(only) | {facet.name: (value.value,)})))

                assert value.count == wanted or (value.is_more and value.count <= wanted), (asked, facet.name, value)


def test_facets_name_the_most_frequent_values(recorded):
    for facet in facets.facets(Filters()):
        there = ToolCall.objects.values_list(facets.COLUMNS[facet.name], flat=True)
        counted = Counter(one for one in there if one)
        shown = counted.most_common(None if facet.name == "status" else facets.SHOWN)

        assert {one.value for one in facet.values} <= set(facet.known) == set(counted) or facet.name == "status"
        assert sorted(one.count for one in facet.values) == sorted(count for _, count in shown), facet.name


def _fields(asked: Filters) -> dict[str, object]:
    return {name: getattr(asked, name) for name in (one.name for one in dataclasses.fields(Filters))}


def test_a_count_ends_at_its_bound(monkeypatch):
    monkeypatch.setattr(facets, "MOST", 9)
    for number in range(12):
        log.append(toolcalls.call("c", number, agent="Desk" if number else "Rare"))

    by_agent = {one.value: one.words for one in facets.facets(Filters())[1].values}

    assert by_agent == {"Desk": "9+", "Rare": "1"}


def test_a_count_that_looked_at_some_only_says_that_there_may_be_more(monkeypatch):
    monkeypatch.setattr(facets, "WALK", 5)
    for number in range(8):
        log.append(toolcalls.call("c", number, agent="Desk"))

    by_agent = {one.value: one.words for one in facets.facets(Filters(replayed="no"))[1].values}

    assert by_agent == {"Desk": "5+"}


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="steps are SQLite's to count")
@pytest.mark.parametrize(
    "asked",
    [Filters(min_ms=1.0), Filters(agent=("Rare",)), Filters(agent=("Rare",), min_ms=1.0), Filters(replayed="no")],
)
def test_counting_takes_no_longer_the_more_calls_there_are(monkeypatch, asked):
    monkeypatch.setattr(facets, "WALK", 20)
    monkeypatch.setattr(facets, "MOST", 20)

    def recorded_so_far(numbers: range) -> int:
        log.append([
            one for number in numbers
            for one in toolcalls.call("c", number, agent="Desk" if number % 400 else "Rare", duration_ms=5.0)
        ])  # fmt: skip
        return _steps(lambda: facets.facets(asked))

    few, many = recorded_so_far(range(200)), recorded_so_far(range(200, 1600))

    assert few > 0
    assert many < 2 * few


def _steps(do: Callable[[], object]) -> int:
    """Count how often SQLite told of ten more steps of its machine."""
    told = []
    connection.connection.set_progress_handler(lambda: told.append(1), 10)
    try:
        do()
    finally:
        connection.connection.set_progress_handler(None, 0)
    return len(told)


def test_a_walk_that_ends_says_so_and_its_cursor_goes_on():
    for number in range(40):
        log.append(toolcalls.call("c", number, agent=f"A{number % 2}", name=f"tool{number % 2}"))
    never, rare = Filters(agent=("A1",), tool=("tool0",)), Filters(agent=("A1",), call_id="call-3")

    first = listing.newest(never, walk=10)
    last = listing.newest(never, before=first.after, walk=10)
    whole = listing.newest(rare, walk=10)

    assert (first.calls, first.looked_at) == ([], 10)
    assert first.after is not None
    assert (last.calls, last.looked_at, last.after) == ([], 0, None)
    assert ([call.call_id for call in whole.calls], whole.looked_at, whole.after) == (["call-3"], 0, None)


def test_no_page_looks_at_more_than_the_bound(recorded):
    plans = _plans(Filters(agent=("Desk",), status=("done",), replayed="no"))

    assert plans
    assert not any("SCAN t" in plan and "USING" not in plan for plan in plans), plans
    assert not any("TEMP B-TREE" in plan for plan in plans), plans


def _plans(asked: Filters) -> list[str]:
    """Ask the database how it goes about it; on PostgreSQL a small table is read whole, so only SQLite is asked."""
    if connection.vendor != "sqlite":
        return ["a small table"]
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(
        connection,
    ) as captured:
        listing.newest(asked, walk=3)
    plans = []
    for query in captured.captured_queries:
        if "toolcall t" in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}".replace("%", "%%"))
                plans += [row[3] for row in cursor.fetchall()]
    return plans


def test_calls_that_an_import_still_writes_are_not_shown():
    log.append(toolcalls.call("seen", 1))
    log.append(toolcalls.call("staged", 2))
    Conversation.objects.filter(key="staged").update(is_staged=True)

    assert found(Filters()) == toolcalls.brute(Filters(conversation="seen"))
    assert found(Filters(conversation="staged")) == []
    assert found(Filters(agent=("Desk",))) == toolcalls.brute(Filters(conversation="seen"))


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("status=done&status=nope", "status", "no status 'nope'"),
        ("min_ms=-1", "min_ms", "from 0 on"), ("max_ms=nan", "max_ms", "from 0 on"),
        ("max_bytes=9e99", "max_bytes", "0 on"),
        ("min_ms=5&max_ms=4", "max_ms", "less than the least"), ("from=yesterday", "from", "a day and time"),
        ("to=9999999-01-01", "to", "a day and time"), ("from=2026-02-02&to=2026-01-01", "to", "before it begins"),
        ("last=2y", "last", "15m or 1h"), ("replayed=maybe", "replayed", "yes or no"), ("where=x", "where", "around"),
        (f"run={'x' * 65}", "run", "64 characters"), (f"agent={'x' * 402}", "agent", "401 characters"),
        ("&".join(f"tool={n}" for n in range(21)), "tool", "20 values"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_by_its_name(query, field, words):
    with pytest.raises(Invalid) as raised:
        read(query)

    assert raised.value.field == field
    assert words in raised.value.message


@pytest.mark.parametrize("cursor", ["x", "1.2", "1.2.3.4", "-1.2.3", "1.2.9999999999999999999", "١.2.3"])
def test_a_cursor_of_nobodys_is_refused(cursor):
    with pytest.raises(Invalid, match="cursor"):
        listing.place_of(cursor)


def test_the_last_hour_is_what_reached_the_record_since_an_hour_and_not_before_from():
    for number in (1, 2):
        log.append(toolcalls.call("c", number))
    old = ToolCall.objects.get(call_id="call-1")
    ToolCall.objects.filter(pk=old.pk).update(started_at=old.started_at - 2 * 3600 * 10**6)

    assert [len(found(Filters(last=last))) for last in ("1h", "24h")] == [1, 2]
    assert found(Filters(last="24h", since=old.started_at)) == found(Filters(last="1h"))


def test_a_cursor_is_read_as_it_was_written():
    assert listing.place_of(str(Place(1, 2, 3))) == Place(1, 2, 3)
    assert listing.place_of("") is None


def test_a_call_id_is_looked_for_as_it_is():
    for number, call_id in enumerate([" call ", "call", "x" * 900]):
        log.append(
            [toolcalls.event("c", toolcalls.step(number, tool_call_id=call_id, status="start"), toolcalls.ROBOT)]
        )

    assert [call.call_id for call in listing.newest(read("call_id=+call+")).calls] == [" call "]
    assert len(listing.newest(read(f"call_id={'x' * 900}")).calls) == 1


def test_the_export_is_the_filtered_list(recorded):
    dice = random.Random(14)
    for asked in [Filters(), *(toolcalls.drawn_filters(dice) for _ in range(6))]:
        wanted = toolcalls.brute(asked)

        lines = [json.loads(line) for line in exported(asked, "jsonl").splitlines()]
        table = list(csv.DictReader(io.StringIO(exported(asked, "csv"), newline="")))

        assert [line["id"] for line in lines] == wanted
        assert [line["id"] for line in table] == wanted
        assert lines == [json.loads(json.dumps(item(row))) for row in whole(asked)]


def exported(asked: Filters, form: exports.Form) -> str:
    """Put the pieces together, as the page does."""
    pieces, place = [export.head(form)], None
    while True:
        piece, place = export.page(asked, form, place)
        pieces.append(piece)
        if place is None:
            return b"".join(pieces).decode()


def whole(asked: Filters):
    """Read all rows with everything."""
    return rows(listing.newest(asked, limit=10_000).calls, whole=True)


@pytest.mark.parametrize(
    "begins", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1", "＝1", "\u200b=1", "\0=1"]
)
def test_no_cell_is_a_formula_or_has_what_cannot_be_seen(begins):
    log.append(toolcalls.call("c", 1, args={begins: 1}, status="error", error=f"{begins}HYPERLINK()"))

    row = next(csv.DictReader(io.StringIO(exported(Filters(), "csv"), newline="")))

    assert not row["error"].lstrip().startswith(exports.FORMULAS)
    for text in row.values():
        assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u200b" for c in text), text


def test_conditions_that_no_index_serves_have_another_way():
    asked = conditions.of(Filters(replayed="no", q="x"))

    assert [way.field for way in asked.ways] == ["q"]  # a rare word's calls are looked up
    assert set(asked.tests) == {"replayed", "q"}
