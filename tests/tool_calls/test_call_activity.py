"""The calls over time: every filter counts what a look at every call finds, up to a bound that is said and held."""

from datetime import UTC, datetime, timedelta

import pytest

from conversations.core.micros import to_datetime
from conversations.events import log
from conversations.models import Conversation, ToolCall
from conversations.tool_calls.listing import activity as counting
from conversations.tool_calls.listing.activity import WIDTHS, CallActivity, activity
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import searching, toolcalls
from tests.support.grids import for_each
from tests.support.growth import sqlite_steps

pytestmark = pytest.mark.django_db

FILTERS = [
    CallFilters(), CallFilters(status=("failed",)), CallFilters(status=("done", "rejected")), CallFilters(last="24h"),
    CallFilters(agent=("Desk",)), CallFilters(agent=("Desk", "Other")),
    CallFilters(agent=("Desk",), status=("failed",)),
    CallFilters(replayed="no"), CallFilters(min_ms=5.0), CallFilters(max_ms=3.0, tool=("look_up",)),
    CallFilters(qualified=("billing.refund",)), CallFilters(q="paid"), CallFilters(conversation="desk"),
    CallFilters(call_id="call-3"), CallFilters(agent=("nobody",)),
]  # fmt: skip


def store() -> None:
    """Calls of a year: each two hours and some seconds before the next."""
    for number in range(24):
        outcome = {"status": "error", "error": "busy"} if number % 5 == 0 else {"result_summary": "paid"}
        agent = ("Desk", "Other", "Third")[number % 3]
        log.append(
            toolcalls.call("desk" if number % 2 else "other", number, agent=agent, duration_ms=number, **outcome)
        )
    for number, decision in enumerate(["", "approve", "reject"]):
        log.append(toolcalls.ours("ours", f"run-{number}", number, decision=decision))
    searching.catch_up()
    for number, call in enumerate(ToolCall.objects.order_by("-started_at", "-called_seq")):
        ToolCall.objects.filter(id=call.id).update(started_at=call.started_at - number * 7_212_000_000)


def brute(filters: CallFilters, counted: CallActivity | None) -> None:
    """Hold a count against a look at every call."""
    ids = toolcalls.brute(filters)
    if filters.last:
        since = (datetime.now(UTC) - timedelta(hours=24)).timestamp() * 1e6
        ids = [id_ for id_ in ids if ToolCall.objects.get(id=id_).started_at >= since]
    if counted is None:
        assert ids == []
        return
    calls, failed = [0] * len(counted.calls), [0] * len(counted.calls)
    for call in ToolCall.objects.filter(id__in=ids):
        place = (call.started_at - counted.start) // counted.width
        calls[place] += 1
        failed[place] += call.status == "failed"
    assert (counted.calls, counted.failed, counted.counted_from) == (calls, failed, None)
    assert sum(calls) == len(ids) > 0


def test_what_is_counted_is_what_a_look_finds():
    def count(filters):
        counted = activity(filters)

        brute(filters, counted)
        alone = not filters or filters.last
        assert counted is None or counted.everything == (None if alone else ToolCall.objects.count())

    store()

    for_each(zip(FILTERS), count)


def test_of_too_many_the_newest_are_counted_and_it_says_since_when(monkeypatch):
    def count(filters):
        counted = activity(filters)

        assert counted is not None
        times = sorted(ToolCall.objects.filter(id__in=toolcalls.brute(filters)).values_list("started_at", flat=True))
        assert counted.counted_from in times
        assert sum(counted.calls) == sum(at >= counted.counted_from for at in times) <= 9
        assert counted.everything in (None, 10)

    store()
    monkeypatch.setattr(counting, "COUNTED", 9)
    monkeypatch.setattr(counting, "WALK", 9)

    every = [CallFilters(), CallFilters(agent=("Desk", "Other", "Third")), CallFilters(replayed="no")]
    for_each(zip(every), count)


def test_what_an_import_still_writes_is_not_counted():
    store()
    Conversation.objects.filter(key="desk").update(is_staged=True)

    counted = activity(CallFilters())

    assert counted is not None
    assert sum(counted.calls) == ToolCall.objects.exclude(conversation__key="desk").count()


@pytest.mark.parametrize("hours", [0, 0.001, 0.1, 1, 23, 24, 24 * 7, 24 * 365, 24 * 365 * 60])
def test_spans_begin_at_round_times_and_reach_the_end(hours):
    end = 1_796_000_000_000_000
    begin = int(end - hours * 3.6e9)

    start, width, spans = counting._spans(begin, end)

    assert start <= begin
    assert start % width == 0
    assert width in WIDTHS
    assert start + (spans - 1) * width <= end < start + spans * width
    assert spans <= counting.MAX_SPANS
    assert to_datetime(start).microsecond == 0


@pytest.mark.sqlite("its steps are counted")
@pytest.mark.parametrize("filters", [CallFilters(), CallFilters(replayed="no"), CallFilters(agent=("Desk",)),
                                   CallFilters(agent=("Rare",), min_ms=1.0)])  # fmt: skip
def test_counting_takes_no_longer_the_more_calls_there_are(monkeypatch, filters):
    monkeypatch.setattr(counting, "WALK", 20)
    monkeypatch.setattr(counting, "COUNTED", 20)

    def recorded_so_far(numbers: range) -> int:
        log.append([
            event for number in numbers
            for event in toolcalls.call("c", number, agent="Desk" if number % 400 else "Rare", duration_ms=5.0)
        ])  # fmt: skip
        return sqlite_steps(lambda: activity(filters))

    few, many = recorded_so_far(range(200)), recorded_so_far(range(200, 1600))

    assert few > 0
    assert many < 2 * few
