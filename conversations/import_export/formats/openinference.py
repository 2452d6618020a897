"""Spans of Phoenix and of OpenTelemetry's SDKs, one JSON object each: in a list, in `data` or `spans`, or on lines.

| who writes | ids | attributes |
|---|---|---|
| Phoenix (`GET …/spans`) | `context.trace_id`, `context.span_id`, `parent_id` | `attributes`, dotted or nested |
| Phoenix, a data frame as JSON | `context.trace_id`, `context.span_id` as names of columns | columns `attributes.…` |
| OpenTelemetry for Python (`span.to_json()`) | the same with `0x` | `attributes`, `resource.attributes` |
| OpenTelemetry for JavaScript | `spanContext.traceId`, `.spanId`, `parentSpanId` | `attributes` |
| the attributes alone | none: made of what they tell | the object itself |

`span_kind` of Phoenix is `openinference.span.kind`. `status_code` or `status` ERROR is an error, in the words of
`status_message`, else of the last exception. What the attributes mean is read by `conversations.telemetry`.
"""

import hashlib
from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export import span_recording
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording, decoded, encoded
from conversations.import_export.span_recording import flattened, id_of, nanoseconds
from conversations.telemetry.span import Span, SpanEvent, SpanSource, error_of

NAME = "Phoenix and OpenInference spans"
READS = ("document", "lines")
LISTS = ("data", "spans")
_MARKS = ("openinference.span.kind", "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.request.model")


def fits(sample: object) -> bool:
    """Return whether a document or a line is of this format."""
    if isinstance(sample, list):
        return any(fits(item) for item in sample)
    if not isinstance(sample, dict):
        return False
    if any(isinstance(sample.get(name), list) and sample[name] and _is_span(_first(sample[name])) for name in LISTS):
        return True
    return _is_span(sample)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    spans: list[Span] = []
    for location, value in report.values(source, lists=LISTS):
        try:
            span_recording.limited(spans).append(_span(value))
        except (Invalid, TooLarge) as error:
            report.add_problem(location, error.message)
    yield from span_recording.read(spans)


def _first(items: list[Any]) -> object:
    item = items[0]
    return item if isinstance(item, dict) else decoded(item)


def _is_span(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    if any(mark in value for mark in _MARKS):
        return True
    has_ids = any(isinstance(value.get(name), dict) for name in ("context", "spanContext"))
    has_ids = has_ids or "context.trace_id" in value
    return has_ids and "name" in value and any(name.startswith(("attributes", "span_kind")) for name in value)


def _span(value: object) -> Span:
    if not isinstance(value, dict):
        raise Invalid(f"must be a span (a JSON object); got {type(value).__name__}")
    if any(mark in value for mark in _MARKS):
        return _of_attributes(value)
    context = value.get("context") or value.get("spanContext") or {}
    context = context if isinstance(context, dict) else {}
    both = {**value, **{f"context.{name}": part for name, part in context.items()}}
    columns = {name[len("attributes.") :]: part for name, part in value.items() if name.startswith("attributes.")}
    attributes = flattened(value.get("attributes")) | flattened(columns)
    if isinstance(kind := value.get("span_kind"), str) and "openinference.span.kind" not in attributes:
        attributes["openinference.span.kind"] = kind
    events = _events(value.get("events"))
    parent = value.get("parent_id") or value.get("parentSpanId") or context.get("parent_id")
    return Span(
        id_of(both.get("context.trace_id") or both.get("context.traceId"), "context.trace_id"),
        id_of(both.get("context.span_id") or both.get("context.spanId"), "context.span_id"),
        id_of(parent, "parent_id") if isinstance(parent, str) and parent else "",
        str(value.get("name") or ""),
        nanoseconds(value.get("start_time", value.get("startTime"))),
        nanoseconds(value.get("end_time", value.get("endTime"))),
        attributes, _source(value), events, _error(value, events),
    )  # fmt: skip


def _of_attributes(value: dict[str, Any]) -> Span:
    digest = hashlib.sha256(encoded(value)).hexdigest()
    name = str(value.get("gen_ai.tool.name") or value.get("tool.name") or value.get("gen_ai.operation.name") or "span")
    return Span(digest[:32], digest[32:48], "", name, 0, 0, flattened(value), SpanSource({}, ""))


def _source(value: dict[str, Any]) -> SpanSource:
    resource = value.get("resource")
    scope = value.get("instrumentationScope") or value.get("instrumentation_scope") or value.get("scope")
    attributes = resource.get("attributes") if isinstance(resource, dict) else None
    return SpanSource(flattened(attributes), str(scope.get("name") or "") if isinstance(scope, dict) else "")


def _events(value: object) -> list[SpanEvent]:
    items = value if isinstance(value, list) else []
    return [
        SpanEvent(
            str(item.get("name") or ""),
            nanoseconds(item.get("timestamp", item.get("time"))),
            flattened(item.get("attributes")),
        )
        for item in items
        if isinstance(item, dict)
    ]


def _error(value: dict[str, Any], events: list[SpanEvent]) -> str | None:
    status = value.get("status")
    status = status if isinstance(status, dict) else {}
    code = value.get("status_code") or status.get("status_code") or status.get("code")
    if code not in ("ERROR", "STATUS_CODE_ERROR", 2):
        return None
    words = value.get("status_message") or status.get("description") or status.get("message")
    return error_of(words if isinstance(words, str) else "", events)
