"""Bodies of any kind at `/v1/traces` and `/v1/logs`: no answer is a 500, and what is answered is of the right kind.

`make test` sends a small, seeded share; `make faults` 10,000.
"""

from __future__ import annotations

import gzip
import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.doors import Caller, make_tokens
from tests.support.growth import cpu_of, read_numbers
from tests.support.live import prepared
from tests.support.loop_turns import WatchedServer
from tests.support.otlp import JSON, PROTOBUF, raw_export, span, traces
from tests.telemetry.test_genai import weather

logger = logging.getLogger(__name__)
MOST = 0.25  # of the CPU that reading 1 MiB of numbers takes: 5 ms where that takes 20

NAMES = [
    "gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt", "gen_ai.completion",
    "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
    "gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.usage.input_tokens", "gen_ai.system_instructions",
    "openinference.span.kind", "input.value", "output.value", "session.id", "llm.input_messages.0.message.content",
    "llm.input_messages.0.message.role", "llm.input_messages.0", "llm.input_messages.0.message.tool_calls.0.tool_call",
    "ai.operationId", "ai.prompt", "ai.prompt.messages", "ai.response.toolCalls", "ai.toolCall.args",
    "traceloop.span.kind", "traceloop.entity.input", "gen_ai.prompt.0.role", "gen_ai.prompt.0.content",
    "langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.usage_details",
    "langsmith.span.kind", "pydantic_ai.all_messages", "events", "agent_name", "logfire.span_type",
    "gcp.vertex.agent.llm_request", "gen_ai.handoff.from_agent", "gen_ai.handoff.to_agent",
]  # fmt: skip
WORDS = [
    "chat", "execute_tool", "invoke_agent", "LLM", "TOOL", "AGENT", "CHAIN", "tool", "agent", "generation", "llm",
    "ai.toolCall", "ai.generateText", "ai.generateText.doGenerate", "pending_span", "user", "assistant", "system",
]  # fmt: skip
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(), st.text(max_size=20))
KEYS = st.sampled_from(
    ["role", "content", "parts", "type", "text", "id", "name", "arguments", "tool_calls", "function", "message",
     "kwargs", "response", "messages", "output", "data", "tool_call_id", "contents", "generations"]
)  # fmt: skip
TREES = st.recursive(
    PLAIN | st.sampled_from(WORDS),
    lambda t: st.lists(t, max_size=4) | st.dictionaries(KEYS, t, max_size=4),
    max_leaves=12,
)
VALUES = st.one_of(st.sampled_from(WORDS), TREES.map(json.dumps), st.text(max_size=30), st.integers(0, 1 << 40))
ATTRIBUTES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)
SEED = traces(*weather("fuzz", trace=99), span("x", {}, trace=99, number=9))
DOCUMENT = json_format.MessageToDict(ExportTraceServiceRequest.FromString(SEED))


@st.composite
def bodies(draw: Any) -> tuple[str, bytes]:
    """Make a body: of spans with any attributes, of a good one in pieces, or of anything."""
    kind = draw(st.sampled_from(["spans", "bytes", "tree", "mutated", "replaced"]))
    if kind == "spans":
        made = [
            span("s", a, trace=99, number=n + 1, parent=n) for n, a in enumerate(draw(st.lists(ATTRIBUTES, max_size=3)))
        ]
        body = traces(*made)
        if draw(st.booleans()):
            return PROTOBUF, body
        return JSON, json_format.MessageToJson(ExportTraceServiceRequest.FromString(body)).encode()
    if kind == "bytes":
        return draw(st.sampled_from([PROTOBUF, JSON])), draw(st.binary(max_size=200))
    if kind == "tree":
        names = ["resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords", "attributes"]
        return JSON, json.dumps({name: draw(TREES) for name in names}).encode()
    if kind == "mutated":
        body = bytearray(SEED)
        for _ in range(draw(st.integers(1, 8))):
            body[draw(st.integers(0, len(body) - 1))] = draw(st.integers(0, 255))
        return PROTOBUF, bytes(body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body)
    document = json.loads(json.dumps(DOCUMENT))
    chosen = draw(st.sampled_from(document["resourceSpans"][0]["scopeSpans"][0]["spans"]))
    chosen[draw(st.sampled_from([*chosen, "events", "status"]))] = draw(TREES)
    return JSON, json.dumps(document).encode()


def fuzz(caller: Caller, examples: int) -> Counter[int]:
    """Send so many bodies; return how often each status came."""
    seen: Counter[int] = Counter()

    @settings(
        max_examples=examples, derandomize=True, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(body=bodies(), path=st.sampled_from(["/v1/traces", "/v1/traces", "/v1/logs"]), packed=st.booleans())
    def send(body: tuple[str, bytes], path: str, packed: bool) -> None:
        encoding = "gzip" if packed else ""
        content = gzip.compress(body[1]) if packed else body[1]
        answer = raw_export(caller, content, path=path, content_type=body[0], encoding=encoding)
        seen[answer.status] += 1
        assert answer.headers["content-type"] == body[0]

    send()
    return seen


@pytest.mark.slow
def test_no_body_is_answered_with_a_500(caller):
    assert set(fuzz(caller, 200)) <= {200, 400, 413}


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[WatchedServer]:
    """A server of its own, whose loop is watched."""
    made = WatchedServer(tmp_path / "data")
    shutil.copytree(prepared(), made.data_dir)
    yield made.start()
    made.terminate()


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_body_of_10_000_is_answered_with_a_500_or_keeps_the_loop(watched):
    caller = make_tokens(watched)["admin"]
    watched.turns()

    seen = fuzz(caller, 10_000)

    turns, allowed = watched.turns(), MOST * cpu_of(read_numbers)
    logger.info("%s: %d turns over 2 ms, longest %.4f s", dict(seen), len(turns), max(turns, default=0))
    assert set(seen) <= {200, 400, 413}
    assert seen.total() >= 9_000
    assert [took for took in turns if took > allowed] == []
