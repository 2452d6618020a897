"""Langfuse exports: traces with their observations, or rows of either, in a list or on lines.

| who writes | a trace | an observation |
|---|---|---|
| `{"trace": …, "observations": […]}` | `trace` | `observations[]` |
| the API (`GET /api/public/traces/ID`) | the object | its `observations[]` |
| a table's export, the blob storage | a row without `traceId` (`trace_id`) | a row with it |

| in the file | here |
|---|---|
| `sessionId`, else the trace's id | the conversation |
| type GENERATION | an answer of a model: messages of `input` and `output` (the repeated history once), `usageDetails` |
| type TOOL, RETRIEVER | a tool call; AGENT is a run; SPAN, EVENT and CHAIN are what stands around |
| a TOOL without a call's id | has the id of a call that an earlier GENERATION of its trace made: one of the same name |
| | and arguments, else of the same name; so a call without its TOOL yet is the same once it has one |
| level ERROR, `statusMessage` | an error |
| `metadata.attributes`, `.resourceAttributes`, `.scope` | the span that it was, read by its convention, too |
| a trace without observations | what it was asked and answered |
| scores, costs, prompts | left out |

Rows may be in any order. Observations are made into spans and read by `conversations.telemetry`.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export import span_recording
from conversations.import_export.fields import field
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording
from conversations.import_export.span_recording import flattened, id_of, nanoseconds
from conversations.telemetry import conventions, message_shapes
from conversations.telemetry.conventions.langfuse import CALL_ID, HAS_TOOLS
from conversations.telemetry.span import Span, SpanSource
from conversations.telemetry.span_facts import Call

NAME = "Langfuse traces"
READS = ("document", "lines")
_TYPES = ("SPAN", "EVENT", "GENERATION", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL")

Row = dict[str, Any]  # of a trace or an observation: any JSON


def fits(sample: object) -> bool:
    """Return whether a document or a line is of this format."""
    if isinstance(sample, list):
        return any(fits(item) for item in sample)
    if not isinstance(sample, dict):
        return False
    if isinstance(sample.get("observations"), list):
        return "trace" in sample or ("id" in sample and "timestamp" in sample)
    return _is_observation(sample) or _is_bare_trace(sample)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    export = _Export()
    for location, value in report.values(source):
        for inner, row, take in export.rows(value, location):
            try:
                take(row)
            except (Invalid, TooLarge) as error:
                report.add_problem(inner, error.message)
    yield from span_recording.read(export.spans())


class _Export:
    """The contents of a file, in any order: traces by id, and observations."""

    def __init__(self) -> None:
        self._traces: dict[str, Row] = {}
        self._spans: dict[tuple[str, str], Span] = {}
        self._with_tools: set[str] = set()

    def rows(self, value: object, location: str) -> Iterator[tuple[str, object, Any]]:
        """Yield the rows of one object, each with its place and the function that takes it."""
        row = value if isinstance(value, dict) else {}
        if not isinstance(row.get("observations"), list):
            yield location, value, self._take_observation if _is_observation(row) else self._take_trace
            return
        yield location, row.get("trace", row), self._take_trace
        for number, observation in enumerate(row["observations"]):
            yield f"{location}, observations[{number}]", observation, self._take_observation

    def spans(self) -> list[Span]:
        """Return all spans, each in the session of its trace."""
        with_spans = {trace_id for trace_id, _ in self._spans}
        by_trace: defaultdict[str, list[Span]] = defaultdict(list)  # those with tools
        for span in self._spans.values():
            trace = self._traces.get(span.trace_id, {})
            if session := field(trace, "session_id"):
                span.attributes.setdefault("langfuse.session.id", str(session))
            span.attributes[HAS_TOOLS] = span.trace_id in self._with_tools
            if span.trace_id in self._with_tools:
                by_trace[span.trace_id].append(span)
        for trace_id in self._with_tools:
            _join_calls(by_trace[trace_id])
        alone = [_span_of_trace(trace_id, row) for trace_id, row in self._traces.items() if trace_id not in with_spans]
        return span_recording.limited([*self._spans.values(), *alone])

    def _take_trace(self, value: object) -> None:
        row = _row(value)
        self._traces[id_of(row.get("id"), "id")] = row

    def _take_observation(self, value: object) -> None:
        row = _row(value)
        span = _span_of_observation(row)
        self._spans[span.trace_id, span.span_id] = span
        if span.attributes["langfuse.observation.type"] == "tool":
            self._with_tools.add(span.trace_id)


class _MadeCalls:
    """The calls with ids that the answers of a trace made, until a tool's observation takes them."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._used: set[str] = set()
        self._by_content: defaultdict[tuple[str, ...], deque[str]] = defaultdict(deque)

    def add(self, call: Call) -> None:
        """Add a call; an answer may be in the trace twice."""
        if call.id and call.id not in self._ids:
            self._ids.add(call.id)
            for content in _contents_of(call):
                self._by_content[content].append(call.id)

    def take(self, call: Call) -> str:
        """Return the id of the first such call that is not taken; empty without one."""
        for content in _contents_of(call):
            waiting = self._by_content[content]
            while waiting:
                if (id_ := waiting.popleft()) not in self._used:
                    self._used.add(id_)
                    return id_
        return ""


def _contents_of(call: Call) -> tuple[tuple[str, ...], ...]:
    return (call.name, message_shapes.encoded(message_shapes.decoded(call.args))), (call.name,)


def _join_calls(spans: Iterable[Span]) -> None:
    """Note at the tools' spans of a trace which calls they are."""
    made = _MadeCalls()
    for span in sorted(spans, key=lambda span: (span.start, span.span_id)):
        facts = conventions.read(span)
        if facts.kind == "model":
            for message in facts.outputs:
                for call in message.calls:
                    made.add(call)
        elif facts.kind == "tool" and facts.call and not facts.call.id:
            span.attributes[CALL_ID] = made.take(facts.call)


def _row(value: object) -> Row:
    if not isinstance(value, dict):
        raise Invalid(f"must be a Langfuse trace or observation (a JSON object); got {type(value).__name__}")
    return value


def _is_observation(row: Row) -> bool:
    return str(row.get("type")).upper() in _TYPES and bool(field(row, "trace_id")) and bool(field(row, "start_time"))


def _is_bare_trace(row: Row) -> bool:
    return "timestamp" in row and "id" in row and any(name in row for name in ("sessionId", "session_id", "htmlPath"))


def _span_of_observation(row: Row) -> Span:
    metadata = message_shapes.decoded(row.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    parts = {name: message_shapes.decoded(metadata.get(name)) for name in ("attributes", "resourceAttributes", "scope")}
    scope = parts["scope"]
    own = {
        "langfuse.observation.type": str(row.get("type") or "").lower(),
        "langfuse.observation.input": row.get("input"),
        "langfuse.observation.output": row.get("output"),
        "langfuse.observation.model.name": field(row, "provided_model_name") or row.get("model"),
        "langfuse.observation.usage_details": field(row, "usage_details") or row.get("usage"),
        "langfuse.observation.level": row.get("level"),
        "langfuse.observation.status_message": field(row, "status_message"),
    }
    attributes = flattened(parts["attributes"]) | {name: value for name, value in own.items() if value is not None}
    parent = field(row, "parent_observation_id")
    start = nanoseconds(field(row, "start_time"))
    return Span(
        id_of(field(row, "trace_id"), "traceId"),
        id_of(row.get("id"), "id"),
        parent if isinstance(parent, str) else "",
        str(row.get("name") or ""),
        start,
        nanoseconds(field(row, "end_time")) or start,
        attributes,
        SpanSource(
            flattened(parts["resourceAttributes"]), str(scope.get("name") or "") if isinstance(scope, dict) else ""
        ),
    )


def _span_of_trace(trace_id: str, row: Row) -> Span:
    at = nanoseconds(row.get("timestamp"))
    plain = {side: message_shapes.decoded(row.get(side)) for side in ("input", "output")}
    attributes = {"openinference.span.kind": "CHAIN", "langfuse.session.id": field(row, "session_id")}
    attributes |= {f"{side}.value": value for side, value in plain.items() if isinstance(value, str)}
    return Span(trace_id, trace_id, "", str(row.get("name") or ""), at, at, attributes, SpanSource({}, ""))
