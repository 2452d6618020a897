"""`POST /v1/traces` and `/v1/logs`: encodings, compression, limits, answers, and whose words an agent may tell."""

import gzip
import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from conversations.asgi import telemetry
from conversations.core.errors import Invalid
from tests.support.doors import Caller, ask, events_of
from tests.support.otlp import JSON, PROTOBUF, conversations_of, counts_of, export, raw_export, span, traces
from tests.support.tiers import variants
from tests.telemetry.test_genai import weather


def as_json(body, ids):
    """Write an export in JSON, its ids as OTLP has them or as protobuf's own JSON does."""
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    document = json_format.MessageToDict(ExportTraceServiceRequest.FromString(body))
    if ids == "hex":
        import base64

        for item in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in item:
                    item[name] = base64.b64decode(item[name]).hex()
    return json.dumps(document).encode()


@pytest.mark.parametrize("ids", ["hex", "base64"])
def test_json_is_the_same_as_protobuf(server, caller, ids):
    key = f"json-{ids}"
    export(caller, traces(*weather(f"{key}-protobuf", trace=21)))

    answer = export(caller, as_json(traces(*weather(key, trace=22)), ids), content_type=JSON)

    assert (answer.status, answer.body) == (200, {})
    assert counts_of(server, key) == counts_of(server, f"{key}-protobuf")


def test_an_export_may_be_packed(server, caller):
    assert export(caller, traces(*weather("packed", trace=23)), zipped=True).status == 200

    assert counts_of(server, "packed").messages == 2


@pytest.mark.slow
def test_a_bomb_is_refused_for_its_size(caller):
    bomb = gzip.compress(bytes(64 << 20))

    reply = raw_export(caller, bomb, encoding="gzip")

    assert (reply.status, reply.headers["content-type"]) == (413, PROTOBUF)


@pytest.mark.parametrize(
    "body", [b"\x1f\x8bnonsense", gzip.compress(b"x" * 1000)[:20], b"plain"], ids=["nonsense", "torn", "plain"]
)
def test_what_is_no_gzip_is_refused(caller, body):
    assert raw_export(caller, body, encoding="gzip").status == 400


def test_packed_members_that_follow_each_other_are_one_export_unless_they_are_very_many():
    """A body of 8 MiB has room for 400,000 empty ones, each of which would take a copy of all that follow."""
    body = traces(*weather("members", trace=29))
    halves = [gzip.compress(half) for half in (body[:40], body[40:])]

    assert telemetry._unpacked(b"".join(halves), b"gzip") == body
    with pytest.raises(Invalid, match="at most 100 members"):
        telemetry._unpacked(gzip.compress(b"") * 100 + gzip.compress(body), b"gzip")


def test_an_empty_export_is_fine_in_both_encodings(caller):
    assert raw_export(caller, b"")[0:3:2] == (200, b"")
    assert raw_export(caller, b"{}", content_type=JSON)[0:3:2] == (200, b"{}")


@pytest.mark.parametrize(
    ("content_type", "body"),
    [(PROTOBUF, b"\xff\xff"), (JSON, b"[1]"), (JSON, b"{"), ("", b"{}"), (JSON, b'{"resourceSpans":NaN}')],
    ids=str,
)
def test_what_is_no_export_is_refused_for_good(caller, content_type, body):
    reply = raw_export(caller, body, content_type=content_type)

    assert reply.status == 400
    if content_type == PROTOBUF:
        assert (reply.headers["content-type"], reply.body[:2]) == (PROTOBUF, b"\x08\x03")
    else:
        assert json.loads(reply.body)["code"] == 3


def test_a_span_without_an_id_is_told_and_the_others_are_stored(server, caller):
    bad = span("chat", {"gen_ai.operation.name": "chat"})
    bad.trace_id = b"short"

    reply = raw_export(caller, traces(*weather("partial", trace=24), bad))

    answer = ExportTraceServiceResponse.FromString(reply.body)
    assert (reply.status, answer.partial_success.rejected_spans) == (200, 1)
    assert "trace id" in answer.partial_success.error_message
    assert counts_of(server, "partial").messages == 2


@pytest.mark.parametrize("letter", variants(["漢", "😀", "\x1b", '"']))
def test_long_texts_of_any_letters_are_shortened_to_what_an_event_holds(server, caller, letter):
    key, long = f"letters-{ord(letter)}", letter * 300_000
    parts = [{"type": "reasoning", "content": long}, {"type": "text", "content": long}]
    messages = {"gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}], ensure_ascii=False)}
    chat = span("chat", {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": key, **messages}, trace=ord(letter))

    reply = raw_export(caller, traces(chat))

    partial = ExportTraceServiceResponse.FromString(reply.body).partial_success
    assert (reply.status, partial.rejected_spans, partial.error_message) == (200, 0, "")
    (body,) = [body for _, kind, body in events_of(server, key) if kind == "output"]
    assert all("… [300,000 characters]" in body[name] and len(body[name]) > 30_000 for name in ("text", "reasoning"))


def test_nobody_exports_without_a_token(server):
    answer = ask(server, "POST", "/v1/traces", b"", Content_Type=PROTOBUF)

    assert (answer.status, answer.headers["content-type"]) == (401, PROTOBUF)


def test_other_methods_are_refused(caller):
    answer = caller.get("/v1/traces")

    assert (answer.status, answer.headers["allow"]) == (405, "POST")


def test_a_telemetry_token_tells_of_any_agent_and_nothing_else(server, callers: dict[str, Caller]):
    collector = callers["telemetry"]
    mine = weather("collected", trace=28)
    for item in mine:
        for pair in item.attributes:
            if pair.key == "gen_ai.agent.name":
                pair.value.string_value = "Desk"

    reply = raw_export(collector, traces(*mine))

    assert (reply.status, reply.body) == (200, b"")
    assert counts_of(server, "collected").agents == {"Desk"}
    assert collector.publish("stream:collected", {"sender": "agent:Desk"}).status == 403
    assert collector.get("/api/v1/conversations/collected").status == 403
    for address in ("/api/v1/conversations/collected", "/api/v1/conversations/collected/events"):
        assert callers["desk"].get(address).status == 403, "who is told of is not let in"


def test_an_agents_token_tells_of_itself_alone(server, callers: dict[str, Caller]):
    mine = weather("agent-token", trace=25)
    for item in mine:
        for pair in item.attributes:
            if pair.key == "gen_ai.agent.name":
                pair.value.string_value = "Desk"

    reply = raw_export(callers["desk"], traces(*mine))

    answer = ExportTraceServiceResponse.FromString(reply.body)
    assert "may publish only as Desk" in answer.partial_success.error_message
    assert counts_of(server, "agent-token").agents == {"Desk"}
    assert {body.get("sender") for _, _, body in events_of(server, "agent-token")} == {None}  # the person's words


def test_an_agents_token_tells_of_no_other_agent(server, callers: dict[str, Caller]):
    reply = raw_export(callers["desk"], traces(*weather("other-agent", trace=26)))

    answer = ExportTraceServiceResponse.FromString(reply.body)
    assert answer.partial_success.rejected_spans == 4
    assert "other-agent" not in conversations_of(server)
