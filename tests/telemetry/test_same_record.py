"""Each source of spans makes the same record however it is sent: twice, in halves, each span by itself in any order.

Played against the intake alone, whose events the log keeps once by their ids; what is named late is moved by its trace.
"""

import json
import random
from collections import Counter

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from conversations.telemetry import intake, late_names, otlp_json, otlp_protobuf
from tests.support import imported
from tests.support.otlp import span, traces
from tests.support.otlp_programs import PROGRAMS, RECORDED
from tests.support.record_exports import EXPORTS
from tests.support.tiers import variants
from tests.telemetry.test_genai import weather
from tests.telemetry.test_late_names import COLLECTOR, store, unnamed
from tests.telemetry.test_recorded import DATA, FIXTURES, PRISM, of_attributes, one_by_one, prism, spans_of

SEEDS = range(20)


def of_prism(name):
    return [json.dumps(request).encode() for request in one_by_one(spans_of(prism(name)))]


def of_fixture(name):
    plain = json.loads((DATA / "otlp-openinference" / f"{name}.json").read_text())
    return [json.dumps(of_attributes(plain, "c" * 32)).encode()]


def of_vercel():
    spans = json.loads((DATA / "otlp-openinference" / "vercel-v6-all-spans.json").read_text())
    made = []
    for each in spans:
        request = of_attributes(each["attributes"], each["spanContext"]["traceId"], each["name"], "ai")
        (span_,) = request["resourceSpans"][0]["scopeSpans"][0]["spans"]
        span_ |= {"spanId": each["spanContext"]["spanId"], "parentSpanId": each.get("parentSpanId") or ""}
        made.append(json.dumps(request).encode())
    return made


def of_genai(*, is_named):
    spans = weather("same", trace=5)
    return [traces(each) for each in (spans if is_named else unnamed(spans))]


def of_export(name):
    """Make a request of each span that a program exported."""
    document = json_format.MessageToDict(ExportTraceServiceRequest.FromString((EXPORTS / f"{name}.otlp").read_bytes()))
    requests = [
        json_format.ParseDict(request, ExportTraceServiceRequest()) for request in one_by_one(spans_of([document]))
    ]
    return [request.SerializeToString() for request in requests]


def of_two_instrumentations():
    attributes = {"gen_ai.usage.input_tokens": 97, "gen_ai.usage.output_tokens": 52, "gen_ai.conversation.id": "two"}
    model = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", **attributes}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "A"}
    inner = {**model, "gen_ai.input.messages": json.dumps([{"role": "user", "content": "Hello"}])}
    whole = [span("agent", agent), span("chat", model, number=2, parent=1), span("chat", inner, number=3, parent=2)]
    return [traces(each) for each in whole]


SOURCES = {
    "genai": lambda: of_genai(is_named=True),
    "genai-named-late": lambda: of_genai(is_named=False),
    "two-instrumentations": of_two_instrumentations,
    "vercel": of_vercel,
    **{name: lambda name=name: of_export(name) for name in sorted(PROGRAMS | RECORDED)},
    **{name: lambda name=name: of_prism(name) for name in PRISM},
    **{name: lambda name=name: of_fixture(name) for name in FIXTURES},
}


def record_of(requests):
    """Return the ids in each conversation, and the tokens told there, of requests that are read one after the other."""
    memory, record = intake.Memory(), {}
    for body in requests:
        decoded = (otlp_json if body[:1] == b"{" else otlp_protobuf).traces(body)
        read = intake.read(decoded.spans, memory)
        for step in read.steps:
            record.setdefault(step.conversation, {}).setdefault(step.id, step.body)
        memory.note_stored("", [(step.conversation, step.id) for step in read.steps])
        for trace_id, (own_key, conversation) in read.late_names.items():
            record[conversation] = record.pop(own_key, {}) | record.get(conversation, {})
            memory.note_moved("", trace_id)
    return {key: (sorted(bodies), spent(bodies.values())) for key, bodies in record.items()}


def spent(bodies):
    usages = [body.get("usage") or {} for body in bodies]
    return sum(map(Counter, usages and [{k: v for k, v in u.items() if type(v) is int} for u in usages]), Counter())


@pytest.mark.parametrize("source", variants(SOURCES, quick=4))
def test_twice_shuffled_and_halved_it_is_the_same_record(source):
    requests = SOURCES[source]()
    whole = record_of(requests)

    assert whole
    assert record_of([*requests, *requests]) == whole
    assert record_of([*requests[len(requests) // 2 :], *requests]) == whole
    for seed in SEEDS:
        shuffled = random.Random(seed).sample(requests, len(requests))
        assert (seed, record_of(shuffled)) == (seed, whole)
        assert (seed, record_of([*shuffled[: len(shuffled) // 2], *requests, *shuffled])) == (seed, whole)


def counts_after(requests):
    """Store what is told as the door does; return the counts and calls of each conversation, and empty the record."""
    memory = intake.Memory()
    for body in requests:
        decoded = (otlp_json if body[:1] == b"{" else otlp_protobuf).traces(body)
        late = store(memory, *decoded.spans)
        for trace_id, (own_key, conversation) in late.items():
            assert late_names.move(own_key, conversation, COLLECTOR)
            memory.note_moved("", trace_id)
    counts = {key: (imported.stored()[key], sorted(imported.calls(key))) for key in imported.stored()}
    imported.forget()
    return counts


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("source", variants(SOURCES, quick=3))
def test_what_is_counted_is_the_same_in_any_order(source):
    requests = SOURCES[source]()
    whole = counts_after(requests)

    for seed in SEEDS[:3]:
        shuffled = random.Random(seed).sample(requests, len(requests))
        assert (seed, counts_after([*shuffled[: len(shuffled) // 2], *requests, *shuffled])) == (seed, whole)
        assert (seed, counts_after(shuffled)) == (seed, whole)
