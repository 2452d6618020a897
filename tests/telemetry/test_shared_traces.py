"""A trace id is no secret: what one token reports of a trace decides nothing about another token's events of it."""

from uuid import uuid4

from tests.support.doors import Caller, message_payload
from tests.support.otlp import conversations_of, counts_of, export, span, traces

OTHER = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": "Other"}
DESK = {"gen_ai.operation.name": "chat", "gen_ai.agent.name": "Desk"}
SECRET = "the words of another service"


def part(number, trace, attributes, key=""):
    named = {"gen_ai.conversation.id": key} if key else {}
    return traces(span("run", attributes | named, trace=trace, number=number))


def new_trace():
    number = int(uuid4().hex[:8], 16)
    return number, f"{number:032x}"


def test_a_refused_request_names_no_trace(server, callers: dict[str, Caller]):
    telemetry, desk, (trace, own) = callers["telemetry"], callers["desk"], new_trace()
    export(telemetry, part(1, trace, OTHER))

    refused = export(desk, part(2, trace, OTHER, f"taken-{trace}"))
    export(telemetry, part(3, trace, OTHER))

    assert refused.status == 200
    assert {own, f"taken-{trace}"} & conversations_of(server) == {own}


def test_a_refused_span_does_not_name_the_rest_of_its_own_tokens_trace(server, callers: dict[str, Caller]):
    desk, (trace, own) = callers["desk"], new_trace()

    export(desk, part(1, trace, OTHER, f"taken-{trace}"))
    export(desk, part(2, trace, DESK))

    assert {own, f"taken-{trace}"} & conversations_of(server) == {own}


def test_the_words_of_another_tokens_trace_cannot_be_pulled_into_a_conversation_that_one_may_read(
    server, callers: dict[str, Caller]
):
    telemetry, desk, (trace, own) = callers["telemetry"], callers["desk"], new_trace()
    mine = f"mine-{trace}"
    assert (
        callers["admin"].publish(f"chat:{mine}", message_payload(mine, "Hello", recipient="agent:Desk")).status == 201
    )
    secret = OTHER | {"gen_ai.input.messages": f'[{{"role":"user","parts":[{{"type":"text","content":"{SECRET}"}}]}}]'}

    export(telemetry, part(1, trace, secret))
    export(desk, part(2, trace, DESK, mine))
    export(telemetry, part(3, trace, secret))

    assert own in conversations_of(server)
    read = desk.get(f"/api/v1/topics/stream:{mine}/messages")
    assert read.status == 200
    assert SECRET not in str(read.body)


def test_who_moves_a_trace_first_decides_nothing_for_others(server, callers: dict[str, Caller]):
    telemetry, desk, (trace, own) = callers["telemetry"], callers["desk"], new_trace()
    export(desk, part(1, trace, DESK))
    export(desk, part(2, trace, DESK, f"moved-{trace}"))
    assert {own, f"moved-{trace}"} & conversations_of(server) == {f"moved-{trace}"}

    export(telemetry, part(3, trace, OTHER))

    assert counts_of(server, f"moved-{trace}").agents == {"Desk"}
    (other,) = (key for key in conversations_of(server) if key.startswith(own))
    assert counts_of(server, other).agents == {"Other"}

    export(telemetry, part(4, trace, OTHER, f"late-{trace}"))

    assert {key for key in conversations_of(server) if str(trace) in key or own in key} == {
        f"moved-{trace}",
        f"late-{trace}",
    }


def test_tokens_of_an_answer_count_beside_anothers_of_the_same_trace(server, callers: dict[str, Caller]):
    telemetry, desk, (trace, _) = callers["telemetry"], callers["desk"], new_trace()
    spent = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 97, "gen_ai.usage.output_tokens": 52}
    export(desk, traces(span("chat", spent, trace=trace, number=2, parent=1)))

    outer = spent | {"gen_ai.conversation.id": f"spent-{trace}"}
    export(telemetry, traces(span("chat", outer, trace=trace, number=1)))

    assert counts_of(server, f"spent-{trace}").input_tokens == 97
