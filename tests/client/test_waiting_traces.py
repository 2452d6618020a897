"""A run that waits keeps its group and ends, however many other traces begin and end meanwhile."""

from types import SimpleNamespace

import pytest

from switchboard.known_traces import MAX_ENDED, MAX_OPEN
from switchboard.span_events import SpanEvents
from switchboard.span_facts import SpanFacts


def agent_span(trace_id: str, *, is_end: bool = False) -> SpanFacts:
    return SpanFacts(is_end, "agent", trace_id, f"span-{trace_id}", None, 1_790_000_000.0, SimpleNamespace(name="Desk"))


def play_others(events: SpanEvents, count: int) -> None:
    for number in range(count):
        events.trace(f"other-{number}", None)
        events.of(agent_span(f"other-{number}"))
        events.of(agent_span(f"other-{number}", is_end=True))


def test_a_run_that_outlasts_many_traces_ends_in_its_group():
    events = SpanEvents()
    events.trace("long", "group")
    events.of(agent_span("long"))

    play_others(events, MAX_ENDED + 1)
    ended = events.of(agent_span("long", is_end=True))

    assert [(message.topic, message.payload["event"]) for message in ended] == [("stream:group", "run.done")]


def test_a_trace_that_ended_makes_room():
    events = SpanEvents()
    events.trace("short", "group")
    events.of(agent_span("short"))
    events.of(agent_span("short", is_end=True))

    play_others(events, MAX_ENDED)

    assert events.conversation_of("short") == "short"


@pytest.mark.slow
def test_traces_that_never_end_are_bounded():
    events = SpanEvents()
    for number in range(MAX_OPEN + 1):
        events.trace(f"open-{number}", "group")
        events.of(agent_span(f"open-{number}"))

    assert events.conversation_of("open-0") == "open-0"
    assert events.conversation_of("open-2") == "group"
