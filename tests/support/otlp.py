"""Requests as OpenTelemetry exporters make them, and what the record holds after them."""

from __future__ import annotations

import gzip
import http.client
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

if TYPE_CHECKING:
    from tests.support.doors import Caller
    from tests.support.live import Server

PROTOBUF, JSON = "application/x-protobuf", "application/json"
NOW = 1_767_225_600_000_000_000  # ns
Attributes = Mapping[str, Any]


def value_of(plain: Any) -> AnyValue:
    """Write a value as OTLP has it."""
    value = AnyValue()
    match plain:
        case bool():
            value.bool_value = plain
        case int():
            value.int_value = plain
        case float():
            value.double_value = plain
        case str():
            value.string_value = plain
        case bytes():
            value.bytes_value = plain
        case list() | tuple():
            value.array_value.values.extend(map(value_of, plain))
        case dict():
            for key, item in plain.items():
                value.kvlist_value.values.add(key=key).value.CopyFrom(value_of(item))
    return value


def span(
    name: str,
    attributes: Attributes,
    *,
    trace: int = 1,
    number: int = 1,
    parent: int = 0,
    start: float = 0,
    took: float = 0.1,
    error: str = "",
    events: Iterable[tuple[str, Attributes]] = (),
) -> Span:
    """Make a span; times are seconds."""
    made = Span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=(trace << 32 | number).to_bytes(8, "big"),
        parent_span_id=(trace << 32 | parent).to_bytes(8, "big") if parent else b"",
        name=name,
        start_time_unix_nano=NOW + int(start * 1e9),
        end_time_unix_nano=NOW + int((start + took) * 1e9),
    )
    fill(made.attributes, attributes)
    for event_name, event_attributes in events:
        fill(made.events.add(name=event_name, time_unix_nano=made.start_time_unix_nano).attributes, event_attributes)
    if error:
        made.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=error))
    return made


def fill(target: Any, attributes: Attributes) -> None:
    """Add attributes to a message's list of them."""
    for key, plain in attributes.items():
        target.add(key=key).value.CopyFrom(value_of(plain))


def traces(*spans: Span, service: str = "", scope: str = "") -> bytes:
    """Make the body of an export."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    fill(resource.resource.attributes, {"service.name": service} if service else {})
    part = resource.scope_spans.add()
    part.scope.name = scope
    part.spans.extend(spans)
    return request.SerializeToString()


def logs(*records: tuple[Span, str, Any]) -> bytes:
    """Make the body of an export of log records: the span, the event's name, the body."""
    request = ExportLogsServiceRequest()
    part = request.resource_logs.add().scope_logs.add()
    for number, (of, name, body) in enumerate(records):
        record = part.log_records.add(trace_id=of.trace_id, span_id=of.span_id, event_name=name)
        record.time_unix_nano = of.start_time_unix_nano + number
        record.body.CopyFrom(value_of(body))
    return request.SerializeToString()


class Reply(NamedTuple):
    """An answer, undecoded."""

    status: int
    headers: dict[str, str]
    body: bytes


def export(
    caller: Caller, body: bytes, *, path: str = "/v1/traces", content_type: str = PROTOBUF, zipped: bool = False
) -> Any:
    """Send an export as an exporter does; return what `doors.ask` does."""
    headers = {"Content_Type": content_type} | ({"Content_Encoding": "gzip"} if zipped else {})
    return caller.ask("POST", path, gzip.compress(body) if zipped else body, **headers)


def raw_export(
    caller: Caller, body: bytes, *, path: str = "/v1/traces", content_type: str = PROTOBUF, encoding: str = ""
) -> Reply:
    """Send bytes as they are; return what came."""
    connection = http.client.HTTPConnection("127.0.0.1", caller.server.port, timeout=60)
    headers = {"Authorization": f"Bearer {caller.token}", "Content-Type": content_type, "Content-Encoding": encoding}
    try:
        connection.request("POST", path, body, {name: value for name, value in headers.items() if value})
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.read())
    finally:
        connection.close()


class Counts(NamedTuple):
    """What a conversation holds, as its rows tell it."""

    agents: frozenset[str]
    messages: int
    calls: Mapping[str, int]  # by tool
    errors: int
    input_tokens: int
    output_tokens: int


def counts_of(server: Server, conversation: str) -> Counts:
    """Count a conversation by its rows."""
    mark = "%s" if "SWITCHBOARD_DATABASE_URL" in server.environment else "?"
    with server.database() as database:
        number, messages, errors = database.execute(
            f"SELECT id,messages,errors FROM conversations_conversation WHERE key={mark}", [conversation]
        ).fetchone()
        agents = database.execute(
            f"SELECT name FROM conversations_participant WHERE conversation_id={mark} AND kind='agent'", [number]
        ).fetchall()
        calls = database.execute(
            f"SELECT name FROM conversations_toolcall WHERE conversation_id={mark}", [number]
        ).fetchall()
        spent = database.execute(
            "SELECT COALESCE(SUM(input_tokens),0),COALESCE(SUM(output_tokens),0) FROM conversations_turn"
            f" WHERE conversation_id={mark}",
            [number],
        ).fetchone()
    return Counts(
        frozenset(name.removeprefix("agent:") for (name,) in agents), messages, Counter(name for (name,) in calls),
        errors, *spent,
    )  # fmt: skip


def conversations_of(server: Server) -> set[str]:
    """Return the ids of all conversations that are seen."""
    return {key for (key,) in server.rows("SELECT key FROM conversations_conversation WHERE NOT is_staged")}
