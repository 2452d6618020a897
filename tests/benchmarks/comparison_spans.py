"""Spans for `comparison`: a model's answers by the OpenInference convention, which both receivers read."""

from __future__ import annotations

import time
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tests.benchmarks.publisher import WORDS

_alone = TracerProvider().get_tracer("comparison")


def _facts(place: int, text: str) -> dict[str, Any]:
    model = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-5-mini", "session.id": f"s{place}"}
    counts = {"llm.token_count.prompt": 97, "llm.token_count.completion": 52}
    return model | counts | {"input.value": WORDS, "output.value": text}


def encoded(place: int, text: str) -> bytes:
    """Return a request with one span."""
    span = _alone.start_span("answer", attributes=_facts(place, text))
    span.end()
    return bytes(encode_spans([span]).SerializeToString())  # type: ignore[list-item]  # the SDK's own are readable


def export(url: str, headers: dict[str, str], texts: list[str], places: int) -> float:
    """Export a span for each text through the SDK's batch processor; return the seconds until all were taken."""
    provider = TracerProvider()
    exporter = OTLPSpanExporter(endpoint=url, headers=headers, timeout=60)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=len(texts) + 1, max_export_batch_size=512))
    tracer, start = provider.get_tracer("comparison"), time.monotonic()
    for n, text in enumerate(texts):
        tracer.start_span("answer", attributes=_facts(n % places, text)).end()
    assert provider.force_flush(120_000), "the spans were not taken within 120 s"
    seconds = time.monotonic() - start
    provider.shutdown()
    return seconds
