"""Search with a time finds what a scan finds, though times do not rise with ids."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations import search
from conversations.conversation import fork
from conversations.core.micros import to_datetime
from conversations.models import Event
from conversations.search import index_writer
from conversations.search.indexer import Indexer
from tests.support import old_times
from tests.support.old_times import DAY_US, NOW
from tests.support.searching import catch_up, say, search_all
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db
DAYS = (-1, 0, 1, 2, 3, 20, 30, 44, 45, 60, 61)


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep times by few ids each, so that a small record has many spans."""
    monkeypatch.setattr("conversations.search.recorded_times.BITS", 2)
    monkeypatch.setattr("conversations.search.sqlite.FIRST", 8)


def iso(at: int) -> str:
    """Write µs as the address has it."""
    return datetime.fromtimestamp(at / 1e6, UTC).isoformat()


def scan(word: str, **filters: Any) -> list[tuple[str, int]]:
    """Return what there is to find, newest first, by looking at every event."""
    events = Event.objects.filter(conversation__is_staged=False, erased_by=None).exclude(kind="token")
    if "since" in filters:
        events = events.filter(at__gte=filters["since"])
    if "until" in filters:
        events = events.filter(at__lt=filters["until"])
    if "conversation" in filters:
        events = events.filter(conversation__key=filters["conversation"])
    if "kind" in filters:
        events = events.filter(kind=filters["kind"])
    rows = events.order_by("-id").values_list("conversation__key", "seq", "body")
    return [(key, seq) for key, seq, body in rows if _says(body, word)]


def _says(body: str, word: str) -> bool:
    parsed = json.loads(body)
    return word in json.dumps([parsed.get(name) for name in ("content", "args", "title")])


def test_forks_of_an_old_conversation_hide_nothing_of_today(team, monkeypatch):
    clock = old_times.set_clock(monkeypatch)
    clock.now = NOW - 60 * DAY_US
    say("old", *[f"long ago {number}" for number in range(90)])
    clock.now = NOW
    say("today", *[f"refund {number}" for number in range(30)])
    fork.fork(team["operator"], "old", 90)
    fork.fork(team["operator"], "old", 90)
    catch_up()

    assert len(search_all("refund")) == 30
    assert len(search_all("refund", since=iso(NOW - DAY_US))) == 30
    assert len(search_all("ago", until=iso(NOW - DAY_US))) == 270


@pytest.mark.slow
@settings(max_examples=rounds(25, 80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_time_finds_what_a_scan_finds(recorded, data):
    days = data.draw(st.lists(st.sampled_from(DAYS), max_size=2, unique=True).map(lambda some: sorted(some)[::-1]))
    query: dict[str, Any] = {}
    if days and data.draw(st.booleans()):
        query["until"] = NOW - days.pop() * DAY_US
    if days:
        query["since"] = NOW - days[0] * DAY_US
    if data.draw(st.booleans()):
        query["kind"] = data.draw(st.sampled_from(["message", "tool_step"]))
    if data.draw(st.integers(0, 3)) == 0:
        query["conversation"] = data.draw(st.sampled_from(recorded))

    told_times = {name: iso(value) if name in ("since", "until") else value for name, value in query.items()}

    assert search_all("refund", limit=data.draw(st.sampled_from([3, 7, 200])), **told_times) == scan(
        "refund", **query
    ), query


@pytest.fixture
def recorded(team, monkeypatch, small_spans) -> list[str]:
    """Such a record, indexed; the conversations that are to be seen."""
    old_times.record(monkeypatch, team["operator"])
    catch_up()
    return old_times.conversations()


def test_an_index_that_is_made_again_knows_the_times(recorded):
    since = iso(NOW - DAY_US)
    before = search_all("refund", since=since)
    index_writer.empty()
    assert search_all("refund", since=since) == []

    while Indexer().step():
        pass
    catch_up()

    assert search_all("refund", since=since) == before == scan("refund", since=NOW - DAY_US) != []


def test_how_far_it_looked_is_no_further_than_what_is_left(recorded, monkeypatch):
    monkeypatch.setattr("conversations.search.finder.PATIENCE", -1)
    before, hits = "", []
    while True:
        page = search.find(search.read("refund"), before=before, limit=5)
        hits += [hit.event for hit in page.hits]
        if page.cursor is None:
            break
        if page.looked_to is not None:
            left = Event.objects.filter(id__lt=int(page.cursor), conversation__is_staged=False)
            assert page.looked_to >= max(left.values_list("at", flat=True), default=0)
        before = page.cursor

    assert [(event.conversation, event.seq) for event in hits] == scan("refund")


def test_a_span_is_looked_at_from_its_first_moment_to_its_last() -> None:
    say("desk", "refund")
    catch_up()
    at = to_datetime(Event.objects.get().at)

    assert search_all("refund", since=at.isoformat()) == [("desk", 1)]
    assert search_all("refund", until=at.isoformat()) == []
    assert search_all("refund", until=(at + timedelta(microseconds=1)).isoformat()) == [("desk", 1)]
