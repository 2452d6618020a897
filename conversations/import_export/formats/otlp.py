"""OpenTelemetry's own JSON (OTLP): one export request, a list of them, or one on each line as a collector's file
exporter writes them. Decoded and read as the endpoint `/v1/traces` does.

| in the file | here |
|---|---|
| `resourceSpans[].scopeSpans[].spans[]` | agents' runs, answers of models, tool calls (`conversations.telemetry`) |
| a session that the spans name, else `traceId` | the conversation |
| a span without a traceId of 32 and a spanId of 16 hex digits | left out and reported |
"""

import json
from collections.abc import Iterator

from conversations.core.errors import Invalid, TooLarge
from conversations.import_export import span_recording
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Recording, decoded, encoded
from conversations.telemetry import otlp_json
from conversations.telemetry.span import Span

NAME = "OTLP JSON"
READS = ("document", "lines")
FIELD = "resourceSpans"


def fits(sample: object) -> bool:
    """Return whether a document or a line is of this format."""
    if isinstance(sample, list):
        return any(fits(item) for item in sample)
    return isinstance(sample, dict) and isinstance(sample.get(FIELD), list)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    spans: list[Span] = []
    for location, body in _requests(source, report):
        try:
            requests = otlp_json.traces(_whole(body), most=span_recording.MAX_SPANS)
        except (Invalid, TooLarge) as error:
            report.add_problem(location, error.message)
            continue
        if requests.rejected:
            report.add_problem(location, f"{requests.reason} ({requests.rejected:,} spans)")
        span_recording.limited(spans).extend(requests.spans)
    yield from span_recording.read(spans)


def _requests(source: RecordingFile, report: ImportReport) -> Iterator[tuple[str, bytes]]:
    if not source.is_document():
        for location, value in report.objects(source):
            yield location, encoded(value)
        return
    document = source.document()
    if isinstance(document, dict):
        yield "the document", encoded(document)
        return
    for number, raw in enumerate(document):
        yield f"[{number}]", bytes(raw)


def _whole(body: bytes) -> bytes:
    """Return JSON without lone surrogates, which the endpoint refuses."""
    if b"\\ud" not in body.lower():
        return body
    return json.dumps(decoded(body), ensure_ascii=False).encode("utf-8", "replace")
