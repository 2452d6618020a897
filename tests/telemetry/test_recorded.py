"""Recorded traces of others, in: what comes out is what an independent count of the file says, sent however often and
in whatever order."""

import gzip
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.support.live import ROOT
from tests.support.otlp import JSON, conversations_of, counts_of, export, raw_export

DATA = ROOT.parent / "shared" / "data"
PRISM = ("rag_earnings_agent", "smol_deep_research_agent")


def prism(name: str) -> list[dict]:
    """Return the requests of a recording."""
    return json.loads(gzip.decompress((DATA / "otlp-agent-prism" / f"{name}.json.gz").read_bytes()))


def spans_of(requests: list[dict]) -> list[tuple[dict, dict]]:
    """Return each span with what stands around it."""
    return [
        ({**resource, "scopeSpans": [{**scope, "spans": []}]}, span)
        for request in requests
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def one_by_one(spans: list[tuple[dict, dict]]) -> list[dict]:
    """Make a request of each span."""
    requests = []
    for around, span in spans:
        scope = {**around["scopeSpans"][0], "spans": [span]}
        requests.append({"resourceSpans": [{**around, "scopeSpans": [scope]}]})
    return requests


def with_trace(requests: list[dict], trace_id: str) -> list[dict]:
    """Give all spans another trace."""
    spans = [(around, {**span, "traceId": trace_id}) for around, span in spans_of(requests)]
    return one_by_one(spans)


def counted(requests: list[dict]) -> tuple[int, Counter[str], int, int, int]:
    """Count a recording of OpenInference by itself: messages, calls by tool, errors, tokens in and out."""
    words: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    spent, errors = [0, 0], 0
    for _, span in spans_of(requests):
        plain = {pair["key"]: next(iter(pair["value"].values())) for pair in span.get("attributes", [])}
        kind = plain.get("openinference.span.kind")
        errors += kind in ("LLM", "RETRIEVER", "TOOL") and span.get("status", {}).get("code") == "STATUS_CODE_ERROR"
        if kind in ("RETRIEVER", "TOOL"):
            calls[span["name"]] += 1
        if kind != "LLM":
            continue
        spent[0] += int(plain.get("llm.token_count.prompt", 0))
        spent[1] += int(plain.get("llm.token_count.completion", 0))
        here: Counter[str] = Counter()
        for side in ("input", "output"):
            for n in range(100):
                at = f"llm.{side}_messages.{n}.message"
                text = plain.get(f"{at}.content") or plain.get(f"{at}.contents.0.message_content.text")
                if text and plain[f"{at}.role"] != "system":
                    here[f"{plain[f'{at}.role']}: {text}"] += 1
                if name := plain.get(f"{at}.tool_calls.0.tool_call.function.name"):
                    calls[name] += 1
        words |= here
    return words.total(), calls, errors, spent[0], spent[1]


def stored(server, conversation: str):
    """Return the same of the record."""
    _, messages, calls, errors, *tokens = counts_of(server, conversation)
    return (messages, calls, errors, *tokens)


def send(caller, requests: list[dict]) -> None:
    """Send requests one after the other."""
    for request in requests:
        assert export(caller, json.dumps(request).encode(), content_type=JSON).status == 200


@pytest.mark.parametrize("name", PRISM)
def test_a_recording_comes_out_as_it_was_counted(server, caller, name):
    requests = prism(name)
    before = conversations_of(server)

    send(caller, requests)

    (conversation,) = conversations_of(server) - before
    assert stored(server, conversation) == counted(requests)


@pytest.mark.parametrize("name", PRISM)
def test_twice_shuffled_and_halved_it_is_the_same_record(server, caller, name):
    requests, trace_id = prism(name), f"{PRISM.index(name) + 1:032x}"
    single = with_trace(requests, trace_id.replace("0", "a", 1))
    shuffled = random.Random(7).sample(single, len(single))

    send(caller, shuffled[: len(shuffled) // 2])
    send(caller, single)
    send(caller, shuffled)

    assert stored(server, trace_id.replace("0", "a", 1)) == counted(requests)


FIXTURES = {
    "openinference_client_span_tool_calls": (3, {"get_weather": 1}, 0, 97, 52),
    "openinference_client_span_input_output_only": (3, {"get_weather": 1}, 0, 97, 52),
    "otel_genai_client_span_tool_calls": (3, {"get_weather": 1}, 0, 97, 52),
    "otel_genai_deprecated_client_span_tool_calls": (3, {"get_weather": 1}, 0, 97, 52),
    "otel_genai_tool_execution_span": (0, {"get_weather": 1}, 0, 0, 0),
}


def of_attributes(plain: dict, trace_id: str, name: str = "span", scope: str = "") -> dict:
    """Make a request of a span of which the attributes alone are recorded."""
    pairs = [{"key": key, "value": value_of(value)} for key, value in plain.items()]
    span = {"traceId": trace_id, "spanId": "1" * 16, "name": name, "attributes": pairs}
    span |= {"startTimeUnixNano": "1767225600000000000", "endTimeUnixNano": "1767225601000000000"}
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": scope}, "spans": [span]}]}]}


def value_of(plain):
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value_of(item) for item in plain]}}
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(type(plain), "stringValue")
    return {kind: plain}


@pytest.mark.parametrize("name", FIXTURES)
def test_a_span_of_each_convention_tells_the_same(server, caller, name):
    plain = json.loads((DATA / "otlp-openinference" / f"{name}.json").read_text())
    trace_id = f"b{list(FIXTURES).index(name):031x}"

    send(caller, [of_attributes(plain, trace_id)])

    assert stored(server, trace_id) == FIXTURES[name]


def test_spans_of_the_vercel_ai_sdk(server, caller):
    path: Path = DATA / "otlp-openinference" / "vercel-v6-all-spans.json"
    spans = json.loads(path.read_text())
    texts = [s for s in spans if s["name"].startswith(("ai.generate", "ai.stream"))]
    inner = [s for s in texts if s["name"].endswith(("doGenerate", "doStream"))]

    for span in spans:
        body = of_attributes(span["attributes"], span["spanContext"]["traceId"], span["name"], "ai")
        assert raw_export(caller, json.dumps(body).encode(), content_type=JSON).status == 200

    counts = {s["spanContext"]["traceId"]: counts_of(server, s["spanContext"]["traceId"]) for s in texts}
    names = {"ai.usage.inputTokens", "ai.usage.promptTokens"}
    assert sum(c.input_tokens for c in counts.values()) == sum(s["attributes"].get(k, 0) for s in inner for k in names)
    assert Counter(c.messages for c in counts.values()) == {2: 6, 4: 2}  # the multi-turn prompt has four
    assert not any(s["spanContext"]["traceId"] in conversations_of(server) for s in spans if "embed" in s["name"])
