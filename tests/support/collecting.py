"""A stand-in for an OpenTelemetry collector: takes OTLP/HTTP, fails and stalls as it is told, reads what came."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import log
from tests.support.alerting import Post, Receiver

Json = Mapping[str, Any]
SPENT = {"input_tokens": 7, "output_tokens": 3}


class Collected(NamedTuple):
    """A span as a collector has it."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    attributes: Mapping[str, Any]
    span: Span


def spans_of(post: Post) -> list[Collected]:
    """Read a request."""
    assert (post.path, post.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
    request = ExportTraceServiceRequest.FromString(gzip.decompress(post.body))
    spans = [span for part in request.resource_spans for scope in part.scope_spans for span in scope.spans]
    return [Collected(s.name, s.span_id, s.parent_span_id, s.trace_id, _plain(s.attributes), s) for s in spans]


def _plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class Collector(Receiver):
    """Keeps what it accepted; `refused`: a run for which it answers 400."""

    refused = ""

    def judge(self, body: bytes) -> int | None:
        """Refuse a request that has the run it does not take."""
        return 400 if self.refused and self.refused.encode() in gzip.decompress(body) else None

    @property
    def endpoint(self) -> str:
        """What `SWITCHBOARD_OTLP_ENDPOINT` is set to."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Collected]:
        """Return every span that was accepted, as often as it was."""
        return [span for post in list(self.posts) for span in spans_of(post)]

    def runs(self) -> Counter[str]:
        """Count the accepted runs by their ids."""
        named = [span.attributes["switchboard.run.id"] for span in self.spans() if span.name.startswith("invoke_agent")]
        return Counter(named)


def partly(rejected: int, words: str) -> bytes:
    """Make the answer that refuses some spans."""
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans, response.partial_success.error_message = rejected, words
    return response.SerializeToString()


def ran(
    key: str = "c", agent: str = "Clerk", *, end: str = "run.done", calls: int = 1, spent: Json = SPENT, **more: Any
) -> str:
    """Have the record hold a run that called tools and has ended; return its id."""
    run = new_id()
    of = {"run_id": run, "agent": agent}
    bodies: list[dict[str, Any]] = [
        {"event": "run.queued", **of, "input_seq": 0},
        {"event": "run.started", **of, "attempt": 1, "worker": "w"},
    ]
    for _ in range(calls):
        call = {**of, "name": "add", "tool_call": new_id(), "tool_call_id": f"call_{new_id()}"}
        bodies += [
            {"event": "tool_step", **call, "status": "start", "args": {"a": 2}},
            {"event": "tool_step", **call, "status": "success", "output": 5, "duration_ms": 1.5},
        ]
    bodies += [
        {"event": "output", **of, "turn": 1, "text": "It is five."},
        {"event": "model.turn", **of, "turn": 1, "model": "gpt-5-mini", "usage": spent, "duration_ms": 12.5},
        {"event": end, **of, **more},
    ]
    log.append([log.from_internal(key, {"id": new_id(), **body}, SYSTEM) for body in bodies])
    return run
