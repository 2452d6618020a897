"""A trace by the rules of the trace event format: µs, complete events that nest within their thread, named threads."""

import itertools
import json
from typing import Any

import pytest

from conversations.conversation import conversation_files
from conversations.events.log.timeline_reads import CallTimes, TimelineEvents
from conversations.models import Conversation
from conversations.rendering import chrome_trace
from conversations.rendering.conversation_timeline import TimelineLayout, TimelineTotals
from conversations.rendering.timeline_rows import ModelTime, TimelineRow
from conversations.rendering.timeline_scale import scale_of
from tests.support import large_talks, teamwork
from tests.support.cast import person

EMPTY = TimelineEvents(first=1, head=9, last_at=0, events=[], calls=[], runs=[])


def traced(*rows: TimelineRow) -> dict[str, Any]:
    """Trace these rows."""
    layout = TimelineLayout(list(rows), scale_of([], 0, 1000), 0, 1000, TimelineTotals(1000, 0, 0, 0))
    return chrome_trace.trace("A talk", "talk", EMPTY, layout)


def row(kind: str, name: str, start: int, end: int | None, depth: int = 0, **more: Any) -> TimelineRow:
    return TimelineRow(kind, depth, name, more.pop("words", ""), start, end, more.pop("seq", 1), 1, **more)


def check(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """Assert what a viewer relies on; return the complete events."""
    entries = trace["traceEvents"]
    complete = [entry for entry in entries if entry["ph"] == "X"]
    named = {entry["tid"] for entry in entries if entry["ph"] == "M" and entry["name"] == "thread_name"}
    assert {entry["tid"] for entry in entries if "tid" in entry} == named
    for slice_ in complete:
        assert isinstance(slice_["ts"], int)
        assert isinstance(slice_["dur"], int)
        assert slice_["dur"] >= 0
    threads = itertools.groupby(
        sorted(complete, key=lambda slice_: (slice_["tid"], slice_["ts"], -slice_["dur"])), lambda x: x["tid"]
    )
    for _, slices in threads:
        ends: list[int] = []
        for slice_ in slices:
            while ends and ends[-1] <= slice_["ts"]:
                ends.pop()
            assert not ends or slice_["ts"] + slice_["dur"] <= ends[-1], slice_
            ends.append(slice_["ts"] + slice_["dur"])
    return complete


def test_a_call_is_on_the_thread_of_its_agent_whatever_its_name_hides() -> None:
    rows = [row("agent", "agent:Tri\u202eage", 0, 900), row("call", "find", 200, 300, 2, seq=3)]
    layout = TimelineLayout(rows, scale_of([], 0, 1000), 0, 1000, TimelineTotals(1000, 0, 0, 0))
    call = CallTimes("c", "r", "Tri\u202eage", "find", 3, 4, "done", 200, 0.1)

    agent, called = check(chrome_trace.trace("A talk", "talk", EMPTY._replace(calls=[call]), layout))

    assert agent["tid"] == called["tid"]


def test_agents_are_threads_and_what_they_do_nests() -> None:
    trace = traced(
        row("run", "agent:Dialogue", 0, 900, words="run"),
        row("agent", "agent:Dialogue", 10, 900, 1, turns=(ModelTime(20, 100, 7),)),
        row("call", "find", 200, 300, 2),
    )

    complete = check(trace)

    assert [slice_["name"] for slice_ in complete] == ["run of Dialogue", "Dialogue", "model turn", "find"]
    threads = {e["args"]["name"]: e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert set(threads) == {"Runs and waits", "Dialogue", "Tool calls"}
    assert complete[1]["tid"] == complete[2]["tid"] == threads["Dialogue"]
    assert complete[2]["args"] == {"event": 7}


def test_what_overlaps_without_nesting_goes_to_a_thread_of_its_own() -> None:
    trace = traced(row("call", "a", 0, 500), row("call", "b", 300, 800), row("call", "c", 500, 600))

    complete = check(trace)

    first, second, third = sorted(complete, key=lambda slice_: slice_["name"])
    assert first["tid"] == third["tid"] != second["tid"]


def test_what_goes_on_ends_at_the_last_moment_and_says_so() -> None:
    (slice_,) = check(traced(row("run", "agent:Dialogue", 400, None, words="run")))

    assert slice_["dur"] == 600
    assert slice_["args"]["unfinished"] is True


def test_messages_are_moments_of_their_sender() -> None:
    trace = traced(row("message", "user:Rosa", 5, 5, words="wet"))

    (moment,) = [trace_event for trace_event in trace["traceEvents"] if trace_event["ph"] == "i"]

    assert moment["ts"] == 5
    assert moment["args"]["text"] == "wet"
    check(trace)


@pytest.mark.django_db
def test_a_large_conversation_is_traced_within_the_rules() -> None:
    large_talks.write("large", events=1_000)

    trace = json.loads(b"".join(conversation_files.pieces("large", "trace")))

    complete = check(trace)
    assert sum(slice_["cat"] == "run" for slice_ in complete) == 100
    assert sum(slice_["cat"] == "tool" for slice_ in complete) == 100
    assert trace["otherData"] == {"conversation_id": "large", "first_event": 1, "last_event": 1_000}


@pytest.mark.django_db
def test_a_wait_for_approval_is_a_slice() -> None:
    teamwork.team()
    teamwork.ask(person("owner", "admin"), "waits")
    Conversation.objects.get(key="waits")

    trace = json.loads(b"".join(conversation_files.pieces("waits", "trace")))

    waits = [slice_ for slice_ in check(trace) if slice_["cat"] == "wait"]
    assert [slice_["name"] for slice_ in waits] == ["waiting for approval of file_incident"]
