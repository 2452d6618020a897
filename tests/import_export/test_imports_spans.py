"""Spans of Phoenix, of OpenTelemetry's SDKs and in OTLP's JSON: however they are written, they are one record."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from conversations.import_export import span_recording
from conversations.telemetry import otlp_json
from tests.support.imported import (
    THEIRS,
    Counts,
    agents,
    bring,
    calls,
    document,
    forget,
    in_lines,
    is_the_same_record,
    stored,
    total,
    written,
)

pytestmark = pytest.mark.django_db(transaction=True)
TRACE = "0af7651916cd43dd8448eb211c80319c"
ATTRIBUTES: list[dict[str, Any]] = [
    {"openinference.span.kind": "AGENT", "agent.name": "pilot", "session.id": "harbour-7"},
    {
        "openinference.span.kind": "LLM", "llm.model_name": "m", "session.id": "harbour-7",
        "llm.token_count.prompt": 21, "llm.token_count.completion": 7,
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "High water at Whitby?",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "At 14:20.",
    },
    {
        "openinference.span.kind": "TOOL", "tool.name": "tide_table", "session.id": "harbour-7",
        "input.value": '{"harbour": "Whitby"}', "output.value": "no table", "tool_call.id": "call_000001",
    },
]  # fmt: skip
NAMES = ("pilot", "answer", "tide_table")
EXPECTED = Counts(messages=2, calls=1, errors=1, input_tokens=21, output_tokens=7)
SECOND = 1_000_000_000
BEGAN = 1_767_348_000  # s since 1970


def iso(number: int) -> str:
    """Return the time of a span."""
    return f"2026-01-02T10:00:{number:02}+00:00"


def span_id(number: int) -> str:
    """Return the id of a span."""
    return f"b7ad6b716920333{number}"


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Write attributes as objects within objects, and numbered ones as lists."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        node, *names = root, *name.split(".")
        for part in names[:-1]:
            node = node.setdefault(part, {})
        node[names[-1]] = value
    return listed(root)


def listed(node: Any) -> Any:
    """Turn objects whose names are numbers into lists."""
    if not isinstance(node, dict):
        return node
    inner = {name: listed(value) for name, value in node.items()}
    return [inner[name] for name in sorted(inner)] if inner and all(name.isdigit() for name in inner) else inner


def phoenix(number: int, *, is_nested: bool = False) -> dict[str, Any]:
    """Write a span as Phoenix's API does."""
    attributes = dict(ATTRIBUTES[number])
    kind = attributes.pop("openinference.span.kind")
    return {
        "name": NAMES[number], "context": {"trace_id": TRACE, "span_id": span_id(number)}, "span_kind": kind,
        "parent_id": span_id(0) if number else None, "start_time": iso(number), "end_time": iso(number + 1),
        "status_code": "ERROR" if number == 2 else "OK", "status_message": "no table" if number == 2 else "",
        "attributes": nested(attributes) if is_nested else attributes, "events": [],
    }  # fmt: skip


def frame(number: int) -> dict[str, Any]:
    """Write a span as a row of Phoenix's data frame, times in ms."""
    span = phoenix(number)
    columns = {f"attributes.{name}": value for name, value in span.pop("attributes").items()}
    context = {f"context.{name}": value for name, value in span.pop("context").items()}
    times = {"start_time": (BEGAN + number) * 1000, "end_time": (BEGAN + number + 1) * 1000}
    return {**span, **times, **context, **columns, "attributes.retrieval.documents": None}


def python_sdk(number: int) -> dict[str, Any]:
    """Write a span as OpenTelemetry's SDK for Python does."""
    span = phoenix(number)
    del span["span_kind"], span["status_code"], span["status_message"]
    is_error = number == 2
    return {
        **span, "kind": "SpanKind.INTERNAL", "parent_id": span["parent_id"] and f"0x{span['parent_id']}",
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{span_id(number)}", "trace_state": "[]"},
        "status": {"status_code": "ERROR", "description": "no table"} if is_error else {"status_code": "UNSET"},
        "attributes": ATTRIBUTES[number], "resource": {"attributes": {"service.name": "x"}, "schema_url": ""},
    }  # fmt: skip


def javascript_sdk(number: int) -> dict[str, Any]:
    """Write a span as OpenTelemetry's SDK for JavaScript does."""
    return {
        "name": NAMES[number], "spanContext": {"traceId": TRACE, "spanId": span_id(number)},
        "parentSpanId": span_id(0) if number else None, "startTime": [BEGAN + number, 0],
        "endTime": [BEGAN + number + 1, 0], "attributes": ATTRIBUTES[number],
        "status": {"code": 2, "message": "no table"} if number == 2 else {"code": 0},
    }  # fmt: skip


def otlp(numbers: tuple[int, ...] = (0, 1, 2)) -> dict[str, Any]:
    """Write an export request of OTLP."""
    spans = [
        {
            "traceId": TRACE, "spanId": span_id(n), "name": NAMES[n], "parentSpanId": span_id(0) if n else "",
            "startTimeUnixNano": str((BEGAN + n) * SECOND), "endTimeUnixNano": str((BEGAN + n + 1) * SECOND),
            "attributes": [
                {"key": key, "value": {"intValue": str(v)} if isinstance(v, int) else {"stringValue": v}}
                for key, v in ATTRIBUTES[n].items()
            ],
            "status": {"code": 2, "message": "no table"} if n == 2 else {},
        }
        for n in numbers
    ]  # fmt: skip
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}


def test_spans_become_their_conversation(tmp_path):
    bring(written(tmp_path / "x.json", {"data": [phoenix(n) for n in range(3)], "next_cursor": None}))

    assert stored() == {"harbour-7": EXPECTED}
    assert agents("harbour-7") == {"pilot"}
    assert calls("harbour-7") == [("tide_table", "failed")]


def test_however_spans_are_written_they_are_the_same_record(tmp_path):
    is_the_same_record(
        written(tmp_path / "x.json", [phoenix(n) for n in range(3)]),
        written(tmp_path / "nested.json", {"data": [phoenix(n, is_nested=True) for n in range(3)]}),
        in_lines(tmp_path / "frame.jsonl", [frame(n) for n in (2, 0, 1)]),
        in_lines(tmp_path / "python.jsonl", [python_sdk(n) for n in (1, 2, 0)]),
        written(tmp_path / "javascript.json", [javascript_sdk(n) for n in range(3)]),
        written(tmp_path / "otlp.json", otlp()),
        in_lines(tmp_path / "otlp.jsonl", [otlp((2,)), otlp((1,)), otlp((0,))]),
        written(tmp_path / "requests.json", [otlp((0, 1)), otlp((2,))]),
        written(tmp_path / "half.json", otlp((0, 1))),
    )


def test_a_bad_span_is_named_with_its_line(tmp_path):
    rows = [phoenix(0), {**phoenix(1), "context": {"trace_id": TRACE}}, "{broken", phoenix(1), phoenix(2)]

    problems = bring(in_lines(tmp_path / "x.jsonl", rows), is_strict=False)

    assert problems[0] == "line 2: must be a span with context.span_id, a string of 1 to 100 characters; skipped"
    assert problems[1].startswith("line 3: must be JSON: ")
    assert stored() == {"harbour-7": EXPECTED}


def test_a_bad_request_of_otlp_is_named_with_its_line(tmp_path):
    bad = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "x", "spanId": "y"}]}]}]}
    rows = [otlp(), {"resourceSpans": [7]}, bad]

    problems = bring(in_lines(tmp_path / "x.jsonl", rows), is_strict=False)

    assert [problem.partition(":")[0] for problem in problems] == ["line 2", "line 3"]
    assert "expected a list of objects" in problems[0]
    assert "a traceId of 32 hex digits" in problems[1]
    assert stored() == {"harbour-7": EXPECTED}


def test_a_request_of_too_many_spans_is_left_out_and_the_others_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(span_recording, "MAX_SPANS", 2)

    problems = bring(in_lines(tmp_path / "otlp.jsonl", [otlp(), otlp((0, 1))]), is_strict=False)

    assert problems == ["line 1: a request must have at most 2 spans; skipped"]
    assert stored()["harbour-7"].messages == EXPECTED.messages


def test_a_request_in_a_file_may_have_as_many_spans_as_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(otlp_json, "MAX_SPANS", 2)

    bring(written(tmp_path / "otlp.json", otlp()))

    assert stored() == {"harbour-7": EXPECTED}


PRISM = sorted((THEIRS / "otlp-agent-prism").glob("*.json.gz"))
FIXTURES = {
    "openinference_client_span_tool_calls": Counts(3, 1, 0, 97, 52),
    "openinference_client_span_input_output_only": Counts(3, 1, 0, 97, 52),
    "otel_genai_client_span_tool_calls": Counts(3, 1, 0, 97, 52),
    "otel_genai_deprecated_client_span_tool_calls": Counts(3, 1, 0, 97, 52),
    "otel_genai_tool_execution_span": Counts(0, 1, 0, 0, 0),
}


def counted(requests: list[dict[str, Any]]) -> Counts:
    """Count a recording of OpenInference by itself."""
    words: Counter[str] = Counter()
    tools = errors = 0
    spent = [0, 0]
    spans = (
        s
        for r in requests
        for resource in r["resourceSpans"]
        for scope in resource["scopeSpans"]
        for s in scope["spans"]
    )
    for span in spans:
        plain = {pair["key"]: next(iter(pair["value"].values())) for pair in span.get("attributes", [])}
        kind = plain.get("openinference.span.kind")
        errors += kind in ("LLM", "RETRIEVER", "TOOL") and span.get("status", {}).get("code") == "STATUS_CODE_ERROR"
        tools += kind in ("RETRIEVER", "TOOL")
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
                tools += bool(plain.get(f"{at}.tool_calls.0.tool_call.function.name"))
        words |= here
    return Counts(words.total(), tools, errors, *spent)


@pytest.mark.slow
@pytest.mark.skipif(not PRISM, reason="recorded traces are not here")
def test_recorded_requests_come_out_as_they_were_counted(tmp_path):
    for path in PRISM:
        requests = json.loads(gzip.decompress(path.read_bytes()))
        bring(path)
        assert (path.name, total()) == (path.name, counted(requests))
        forget()
        is_the_same_record(
            path,
            in_lines(tmp_path / "mixed", random.Random(3).sample(requests, len(requests))),
            written(tmp_path / "half", requests[: len(requests) // 2 + 1]),
        )


@pytest.mark.skipif(not PRISM, reason="recorded spans are not here")
def test_attributes_alone_are_a_span():
    for name, counts in FIXTURES.items():
        bring(THEIRS / "otlp-openinference" / f"{name}.json")
        assert (name, total()) == (name, counts)
        forget()


@pytest.mark.skipif(not PRISM, reason="recorded spans are not here")
def test_spans_of_the_vercel_ai_sdk_come_out_as_they_were_counted():
    path: Path = THEIRS / "otlp-openinference" / "vercel-v6-all-spans.json"
    spans = document(path)
    inner = [s for s in spans if s["name"].endswith(("Text.doGenerate", "Text.doStream", "Object.doGenerate"))]
    names = ("ai.usage.inputTokens", "ai.usage.promptTokens")

    bring(path)

    traces = {
        s["spanContext"]["traceId"] for s in spans if s["name"].startswith(("ai.generate", "ai.stream", "ai.tool"))
    }
    assert set(stored()) == traces
    assert total().input_tokens == sum(s["attributes"].get(name, 0) for s in inner for name in names)
