"""Numbers that JSON does not have: NaN and the infinities are told by name, as OTLP's own JSON has them."""

import json
import math

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from conversations.core.json_values import refuse_constant
from conversations.models import Event
from conversations.telemetry import intake, otlp_json, otlp_protobuf
from tests.support.otlp import span, traces
from tests.telemetry.test_late_names import store

pytestmark = pytest.mark.django_db(transaction=True)
SCORES = {"mean": math.nan, "max": math.inf, "min": -math.inf, "median": 0.5, "all": [math.nan, 1.5]}
TOLD = {"mean": "NaN", "max": "Infinity", "min": "-Infinity", "median": 0.5, "all": ["NaN", 1.5]}
TOOL = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.conversation.id": "scored",
    "gen_ai.tool.name": "score",
    "gen_ai.tool.call.id": "call_of_scores",
    "gen_ai.tool.call.arguments": SCORES,
    "gen_ai.tool.call.result": math.nan,
}


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
def test_they_are_told_by_name_and_the_record_stays_json(encoding):
    body = traces(span("execute_tool score", TOOL))
    if encoding == "json":
        body = json.dumps(json_format.MessageToDict(ExportTraceServiceRequest.FromString(body))).encode()

    store(intake.Memory(), *(otlp_json if encoding == "json" else otlp_protobuf).traces(body).spans)

    events = Event.objects.filter(kind="tool_step").order_by("seq")
    start, end = (json.loads(event.body, parse_constant=refuse_constant) for event in events)
    assert (start["args"], end["output"]) == (TOLD, "NaN")
