"""Traces of one session that do not repeat its history: what each of them answers and calls is there."""

import json
import time

import pytest

from conversations.telemetry import intake, occurrences
from conversations.telemetry.occurrences import Occurrences
from conversations.telemetry.otlp_protobuf import traces as decoded
from tests.support.otlp import span, traces

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "c", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "c", "gen_ai.tool.name": "search"}


def spoken(role, text):
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def answer(trace, *history, text="Yes.", number=1, start=0.0):
    """Make a span of an answer to a history, in which the person speaks first and by turns."""
    inputs = [spoken("assistant" if n % 2 else "user", words) for n, words in enumerate(history)]
    messages = {
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps([spoken("assistant", text)]),
    }
    return span("chat m", CHAT | messages, trace=trace, number=number, start=start or trace)


def call(trace, query, *, number=1, call_id="functions.search:0"):
    attributes = {"gen_ai.tool.call.id": call_id, "gen_ai.tool.call.arguments": json.dumps({"q": query})}
    return span("execute_tool search", TOOL | attributes, trace=trace, number=number, start=trace)


def ids_of(kind, memory, *spans):
    """Return the ids of the events of a kind that are in these spans."""
    steps = intake.of_spans(decoded(traces(*spans)).spans, memory)
    return [step.id for step in steps if step.payload.event == kind]


def test_the_same_answer_in_two_traces_without_histories_is_there_twice():
    first, second = answer(1, "Is it high water?"), answer(2, "Is it deep?")
    memory = intake.Memory()

    together = ids_of("output", intake.Memory(), first, second)
    one_by_one = [*ids_of("output", memory, first), *ids_of("output", memory, second), *ids_of("output", memory, first)]

    assert len(together) == 2
    assert one_by_one == [*together, together[0]]


def test_a_history_has_the_answers_of_the_traces_before_it():
    before = [answer(1, "Is it high water?"), answer(2, "Is it deep?")]
    history = ["Is it high water?", "Yes.", "Is it deep?", "Yes.", "Is it cold?"]

    assert len(ids_of("output", intake.Memory(), *before, answer(3, *history))) == 3


def test_agents_with_histories_of_their_own_lose_no_answer():
    north, south = answer(1, "Go north."), answer(2, "Go south.")

    assert len(ids_of("output", intake.Memory(), north, south, answer(3, "Go north.", "Yes.", "Go on."))) == 3


def test_an_answer_that_two_spans_of_a_trace_report_is_there_once():
    inner = answer(2, "Is it high water?", "Yes.", "Is it deep?", number=2, start=2.01)

    assert len(ids_of("output", intake.Memory(), answer(1, "Is it high water?"), answer(2, "Is it deep?"), inner)) == 2


@pytest.mark.parametrize("query", ["tides", "weather"])
def test_calls_whose_id_begins_anew_are_each_there(query):
    assert len(set(ids_of("tool_step", intake.Memory(), call(1, "tides"), call(2, query)))) == 4


def test_a_call_whose_id_is_unique_is_there_once_in_whatever_trace_it_is_told():
    spans = [call(trace, "tides", call_id="call_0123456789") for trace in (1, 2)]

    assert len(set(ids_of("tool_step", intake.Memory(), *spans))) == 2


def test_many_traces_with_the_same_answer_take_no_longer_each():
    numbers, began = Occurrences(), time.thread_time()

    assert [numbers.number_of(("c", "Yes."), 1, str(n)) for n in range(20_000)] == list(range(1, 20_001))
    assert time.thread_time() - began < 2


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(occurrences, "MAX_NUMBERS", 3)
    numbers = Occurrences()

    assert [numbers.number_of(("c", "Yes."), 1, str(n)) for n in range(4)] == [1, 2, 3, 1]
