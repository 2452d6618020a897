"""What is recorded of many calls, as a list, counts, a file and numbers: each is what a look at every call finds. They
are recorded once for all tests of this module."""

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from django.db import connection
from django.db.models import Max, Min
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from conversations.events import log
from conversations.models import Approval, ToolCall, Turn
from conversations.models.tool_call import FAILED, STOPPED
from conversations.tool_calls import statistics_query
from conversations.tool_calls.listing import facets
from conversations.tool_calls.listing import query as listing
from conversations.tool_calls.listing.export import EXPORT
from conversations.tool_calls.listing.filters import STATUSES, CallFilters
from conversations.tool_calls.listing.rows import item, rows
from conversations.tool_calls.statistics_query import Range
from tests.support import listed, toolcalls
from tests.support.databases import filled
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db
MINUTE = 60_000_000  # µs


@pytest.fixture(scope="module", autouse=True)
def recorded(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The samples and calls of ours."""
    with filled(django_db_blocker, toolcalls.record):
        yield


def listed_ids(filters: CallFilters, **bounds: int) -> list[str]:
    """Read all pages; return the ids."""
    return [call.id for call in listed.every_row(listing.newest, filters, **bounds)]


@pytest.mark.thorough
def test_filters_find_what_a_look_at_every_call_finds():
    assert ToolCall.objects.count() > 70

    listed.assert_filters_match(
        listed_ids, toolcalls.drawn_filters, toolcalls.brute, random.Random(11),
        count=rounds(40, 80), limit=9, walks=[25, 60, 200], least=rounds(5, 11),
    )  # fmt: skip


@pytest.mark.slow
def test_an_address_says_the_same_filters_again():
    listed.assert_addresses_say_the_same(toolcalls.drawn_filters, 12)


@pytest.mark.thorough
def test_facets_count_what_a_look_at_every_call_counts():
    dice = random.Random(13)
    for filters in [CallFilters(), *(toolcalls.drawn_filters(dice) for _ in range(10))]:
        facets_read = facets.facets(filters)
        assert [facet.name for facet in facets_read] == list(facets.COLUMNS)
        for facet in facets_read:
            for value in facet.values:
                only = filters.without(facet.name)
                wanted = len(toolcalls.brute(type(only)(**_fields(only) | {facet.name: (value.value,)})))

                assert value.count == wanted or (value.is_more and value.count <= wanted), (filters, facet.name, value)


@pytest.mark.slow
def test_facets_name_the_most_frequent_values():
    for facet in facets.facets(CallFilters()):
        there = ToolCall.objects.values_list(facets.COLUMNS[facet.name], flat=True)
        counted = Counter(value for value in there if value)
        shown = counted.most_common(None if facet.name == "status" else facets.SHOWN)

        assert {value.value for value in facet.values} <= set(facet.all_values) == set(
            counted
        ) or facet.name == "status"
        assert sorted(value.count for value in facet.values) == sorted(count for _, count in shown), facet.name


def _fields(filters: CallFilters) -> dict[str, object]:
    return {name: getattr(filters, name) for name in (field.name for field in dataclasses.fields(CallFilters))}


def test_no_page_looks_at_more_than_the_bound():
    plans = _plans(CallFilters(agent=("Desk",), status=("done",), replayed="no"))

    assert plans
    assert not any("SCAN t" in plan and "USING" not in plan for plan in plans), plans
    assert not any("TEMP B-TREE" in plan for plan in plans), plans


def _plans(filters: CallFilters) -> list[str]:
    """Ask the database how it goes about it; on PostgreSQL a small table is read whole, so only SQLite is asked."""
    if connection.vendor != "sqlite":
        return ["a small table"]
    with CaptureQueriesContext(connection) as captured:
        listing.newest(filters, walk=3)
    plans = []
    for query in captured.captured_queries:
        if "toolcall t" in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}".replace("%", "%%"))
                plans += [row[3] for row in cursor.fetchall()]
    return plans


@pytest.mark.slow
def test_the_export_is_the_filtered_list():
    dice = random.Random(14)
    for filters in [CallFilters(), *(toolcalls.drawn_filters(dice) for _ in range(6))]:
        wanted = toolcalls.brute(filters)

        lines = [json.loads(line) for line in listed.exported(EXPORT, filters, "jsonl").splitlines()]
        table = listed.table(EXPORT, filters)

        assert [line["id"] for line in lines] == wanted
        assert [line["id"] for line in table] == wanted
        assert lines == [json.loads(json.dumps(item(row))) for row in whole(filters)]


def whole(filters: CallFilters):
    """Read all rows with everything."""
    return rows(listing.newest(filters, limit=10_000).items, whole=True)


def _ranges(dice: random.Random) -> list[Range]:
    """Draw ranges that hold some of what is recorded, all of it among them."""
    ends = ToolCall.objects.aggregate(first=Min("started_at"), last=Max("started_at"))
    drawn = [sorted(dice.randint(ends["first"], ends["last"]) for _ in range(2)) for _ in range(6)]
    ranges = [Range("", first, other + 1, dice.randint(1, statistics_query.MAX_SPANS)) for first, other in drawn]
    return [Range("", ends["first"], ends["last"] + MINUTE, 7), *ranges]


def _output(**usage: int) -> dict[str, object]:
    return {"event": "output", "agent": "A", "text": "said", "model": "m", "usage": usage}


def test_each_span_counts_and_times_what_a_look_at_every_call_finds(monkeypatch):
    monkeypatch.setattr(statistics_query, "TIMED", 10_000)
    calls = list(ToolCall.objects.order_by("id").values_list("started_at", "status", "duration_ms"))

    for time_range in _ranges(random.Random(3)):
        spans = statistics_query.statistics_of(time_range).spans
        for span, (start, end) in zip(spans, time_range.edges(), strict=True):
            inside = [(status, ms) for at, status, ms in calls if start <= at < end]
            statuses = Counter(status for status, _ in inside)
            assert Counter(span.counts) == statuses
            assert (span.calls, span.failed) == (len(inside), sum(statuses[status] for status in FAILED))
            assert span.stopped == sum(statuses[status] for status in STOPPED)
            assert span.took == sorted(ms for status, ms in inside if status == "done" and ms)  # 0: unknown
            assert not span.is_cut
    assert {status for _, status, _ in calls} <= set(STATUSES)


def test_waiting_times_and_tokens_are_those_of_every_question_and_turn():
    for number in range(9):
        fields = {"agent": f"A{number % 2}", "model": f"m{number % 3}"}
        log.append([toolcalls.event("turns", _output(input_tokens=10 * number, output_tokens=number + 1) | fields)])
    last = Turn.objects.aggregate(last=Max("at"))["last"]
    whole = Range("", last - 60 * MINUTE, last + MINUTE, 1)

    numbers_read = statistics_query.statistics_of(whole)

    spent = {
        (spent_row.agent, spent_row.model, spent_row.is_demo): (spent_row.input, spent_row.output, spent_row.turns)
        for spent_row in numbers_read.spent
    }
    wanted: dict[tuple[str, str, bool], list[int]] = {}
    for turn in Turn.objects.all():
        sums = wanted.setdefault((turn.agent, turn.model, turn.is_demo), [0, 0, 0])
        for place, value in enumerate((turn.input_tokens, turn.output_tokens, 1)):
            sums[place] += value
    assert spent == {key: tuple(sums) for key, sums in wanted.items()}
    assert len(spent) >= 6
    decided = Approval.objects.filter(status="decided", decided_at__isnull=False)
    assert numbers_read.spans[0].waited == sorted(
        (approval.decided_at - approval.asked_at) / 1e6 for approval in decided
    )
    assert numbers_read.spans[0].waited
    assert numbers_read.spans[0].open == Approval.objects.filter(status="pending").count()
