"""An answer that two instrumentations tell is counted once, in one request or in several, in whatever order."""

from itertools import permutations

import pytest

from conversations.telemetry import intake
from conversations.telemetry.otlp_protobuf import traces as decoded
from tests.support.otlp import span, traces

TOLD = {"gen_ai.usage.input_tokens": 97, "gen_ai.usage.output_tokens": 52}
MODEL = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.conversation.id": "counted"}
OUTER = span("chat", MODEL | TOLD, number=1, took=1)
BETWEEN = span("POST", {"http.request.method": "POST"}, number=2, parent=1, start=0.1)
INNER = span("chat", MODEL | TOLD, number=3, parent=2, start=0.2)
RIGHT_WITHIN = span("chat", MODEL | TOLD, number=4, parent=1, start=0.2)
AGENT = span("agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "A"}, number=2, parent=1)


def spent(*requests):
    """Return the tokens in and out that are told of these requests, sent one after the other, each event once."""
    memory, totals = intake.Memory(), {}
    for spans in requests:
        for step in intake.of_spans(decoded(traces(*spans)).spans, memory):
            if step.body.get("event") == "model.call":
                totals.setdefault(step.id, step.body.get("usage") or {})
    return tuple(sum(usage.get(name, 0) for usage in totals.values()) for name in ("input_tokens", "output_tokens"))


ORDERS = [order for order in permutations([OUTER, BETWEEN, INNER]) if order[-1] is not BETWEEN]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(str(each.span_id[-1]) for each in order))
def test_spans_of_one_answer_in_several_requests_are_counted_once(order):
    assert spent(*([each] for each in order)) == (97, 52)
    assert spent(*([each] for each in (*order, *order[::-1]))) == (97, 52)


def test_spans_of_one_answer_in_one_request_are_counted_once():
    assert spent([OUTER, BETWEEN, INNER]) == (97, 52)
    assert spent([INNER], [INNER, BETWEEN, OUTER], [OUTER]) == (97, 52)


@pytest.mark.parametrize("first", [OUTER, RIGHT_WITHIN], ids=["outer", "inner"])
def test_one_right_within_the_other_is_counted_once(first):
    (second,) = {1: [RIGHT_WITHIN], 4: [OUTER]}[first.span_id[-1]]

    assert spent([first], [second]) == (97, 52)


def test_two_answers_within_a_span_that_tells_no_tokens_are_both_counted():
    silent = span("chat", MODEL, number=1, took=1)
    second = span("chat", MODEL | TOLD, number=5, parent=1, start=0.5)

    assert spent([RIGHT_WITHIN], [silent], [second]) == (194, 104)
    assert spent([silent, RIGHT_WITHIN, second]) == (194, 104)


def test_an_answer_of_an_agent_within_another_answer_is_its_own():
    assert spent([INNER], [AGENT], [OUTER]) == (194, 104)
    assert spent([OUTER, AGENT, INNER]) == (194, 104)
