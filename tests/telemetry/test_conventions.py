"""What each convention adds, over the doors: log records, pending spans, handoffs, failures, kinds and sessions."""

import json

from tests.support.doors import events_of
from tests.support.otlp import conversations_of, counts_of, export, logs, raw_export, span, traces


def bodies_of(server, conversation, kind):
    return [body for _, event_kind, body in events_of(server, conversation) if event_kind == kind]


def test_log_records_hold_the_messages_of_their_spans(server, caller):
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "conv-logs",
        "gen_ai.system": "openai",
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 4,
    }
    asking = span("chat", model, trace=401)
    call = {"id": "call_logs_0123456789", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    records = logs(
        (asking, "gen_ai.user.message", {"content": "Weather in Oslo?"}),
        (asking, "gen_ai.assistant.message", {"tool_calls": [call]}),
        (asking, "gen_ai.tool.message", {"id": "call_logs_0123456789", "content": "snow"}),
        (asking, "gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "Snow."}}),
    )

    assert export(caller, traces(asking)).status == 200
    for _ in range(2):
        assert export(caller, records, path="/v1/logs").status == 200

    assert counts_of(server, "conv-logs") == ({"agent"}, 2, {"get_weather": 1}, 0, 11, 4)
    (ended,) = [body for body in bodies_of(server, "conv-logs", "tool_step") if body["status"] == "success"]
    assert ended["output"] == "snow"
    assert [body["content"] for body in bodies_of(server, "conv-logs", "message")] == ["Weather in Oslo?"]


def test_the_event_of_the_current_generation_holds_both_sides(server, caller):
    asking = span("chat", {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "conv-details"}, trace=402)
    both = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}],
    }
    export(caller, traces(asking))

    export(caller, logs((asking, "gen_ai.client.inference.operation.details", both)), path="/v1/logs")

    assert counts_of(server, "conv-details").messages == 2


def test_a_log_line_of_no_span_is_accepted_and_says_nothing(server, caller):
    before = conversations_of(server)
    line = span("x", {})
    line.trace_id = line.span_id = b""

    assert raw_export(caller, logs((line, "gen_ai.user.message", {"content": "x"})), path="/v1/logs").status == 200
    assert conversations_of(server) == before


def test_langfuse_tells_kinds_input_output_usage_and_failure(server, caller):
    session = {"langfuse.session.id": "conv-langfuse"}
    arguments = {"messages": [{"role": "user", "content": "Weather in Rome?"}]}
    spans = [
        span("Weather", {"langfuse.observation.type": "agent", **session}, trace=403, number=1, took=2),
        span(
            "generation",
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.model.name": "gpt-5-mini",
                "langfuse.observation.input": json.dumps(arguments),
                "langfuse.observation.output": json.dumps({"role": "assistant", "content": "Sunny."}),
                "langfuse.observation.usage_details": json.dumps({"input": 20, "output": 6, "total": 26}),
                **session,
            },
            trace=403,
            number=2,
            parent=1,
            start=0.5,
        ),
        span(
            "get_weather",
            {
                "langfuse.observation.type": "tool",
                "langfuse.observation.input": '{"city": "Rome"}',
                "langfuse.observation.level": "ERROR",
                "langfuse.observation.status_message": "the service is away",
                **session,
            },
            trace=403,
            number=3,
            parent=1,
            start=0.2,
        ),
    ]

    assert export(caller, traces(*spans)).status == 200

    assert counts_of(server, "conv-langfuse") == ({"Weather"}, 2, {"get_weather": 1}, 1, 20, 6)
    start, end = bodies_of(server, "conv-langfuse", "tool_step")
    assert (start["args"], end["status"], end["error"]) == ({"city": "Rome"}, "error", "the service is away")


def test_googles_adk_tells_its_session_requests_and_tools(server, caller):
    session = {"gcp.vertex.agent.session_id": "conv-adk"}
    request = {"contents": [{"role": "user", "parts": [{"text": "Roll a die."}]}]}
    called = {"content": {"role": "model", "parts": [{"function_call": {"id": "adk-call-000001", "name": "roll_die"}}]}}
    named = {"gen_ai.agent.name": "hello_agent"}
    spans = [
        span(
            "invoke_agent", {"gen_ai.operation.name": "invoke_agent", **named, **session}, trace=404, number=1, took=2
        ),
        span(
            "call_llm",
            {
                "gen_ai.system": "gcp.vertex.agent",
                "gen_ai.request.model": "gemini-2.5-flash",
                "gcp.vertex.agent.llm_request": json.dumps(request),
                "gcp.vertex.agent.llm_response": json.dumps(called),
                "gen_ai.usage.input_tokens": 30,
                "gen_ai.usage.output_tokens": 5,
                **session,
            },
            trace=404,
            number=2,
            parent=1,
            start=0.1,
        ),
        span(
            "execute_tool roll_die",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "roll_die",
                "gen_ai.tool.call.id": "adk-call-000001",
                "gcp.vertex.agent.tool_call_args": '{"sides": 6}',
                "gcp.vertex.agent.tool_response": '{"result": 4}',
                **session,
            },
            trace=404,
            number=3,
            parent=1,
            start=0.4,
        ),
    ]

    assert export(caller, traces(*spans, scope="gcp.vertex.agent")).status == 200

    assert counts_of(server, "conv-adk") == ({"hello_agent"}, 1, {"roll_die": 1}, 0, 30, 5)
    start, end = bodies_of(server, "conv-adk", "tool_step")
    assert (start["args"], end["output"]) == ({"sides": 6}, {"result": 4})


def test_a_pending_span_begins_what_the_whole_one_ends(server, caller):
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_pending_0123456",
        "gen_ai.conversation.id": "conv-pending",
    }
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "W",
        "gen_ai.conversation.id": "conv-pending",
    }
    pending = {"logfire.span_type": "pending_span", "logfire.pending_parent_id": "0" * 16}
    within = pending | {"logfire.pending_parent_id": f"{405 << 32 | 1:016x}"}
    begun = [
        span("agent", {**agent, **pending}, trace=405, number=11, parent=1, took=0),
        span("tool", {**tool, **within}, trace=405, number=12, parent=2, start=0.1, took=0),
    ]
    whole = [
        span("agent", agent, trace=405, number=1, took=2),
        span("tool", {**tool, "gen_ai.tool.call.result": "rain"}, trace=405, number=2, parent=1, start=0.1, took=1),
    ]

    export(caller, traces(*begun, scope="logfire"))
    at_first = [kind for _, kind, _ in events_of(server, "conv-pending")]
    export(caller, traces(*whole, scope="logfire"))
    export(caller, traces(*begun, scope="logfire"))

    assert at_first == ["run.started", "tool_step"]
    assert [kind for _, kind, _ in events_of(server, "conv-pending")] == [*at_first, "tool_step", "run.done"]
    assert counts_of(server, "conv-pending") == ({"W"}, 0, {"get_weather": 1}, 0, 0, 0)


def test_a_handoff_names_both_agents(server, caller):
    handed = {
        "gen_ai.handoff.from_agent": "Triage",
        "gen_ai.handoff.to_agent": "Weather",
        "gen_ai.conversation.id": "conv-handoff",
    }

    export(caller, traces(span("handoff", handed, trace=406)))

    (body,) = bodies_of(server, "conv-handoff", "agent.handoff")
    assert (body["from_agent"], body["to_agent"]) == ("Triage", "Weather")


def test_a_failed_tool_and_a_failed_agent_say_why(server, caller):
    common = {"gen_ai.conversation.id": "conv-failed"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", **common}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Clerk", **common}
    raised = ("exception", {"exception.type": "ValueError", "exception.message": "no funds"})
    whole = span("agent", agent, trace=407, number=1, took=1, error="the team failed")
    call = span("pay", tool, trace=407, number=2, parent=1, events=[raised])
    call.status.code = 2

    export(caller, traces(call, whole))

    (ended,) = [body for body in bodies_of(server, "conv-failed", "tool_step") if body["status"] != "start"]
    assert (ended["status"], ended["error"]) == ("error", "ValueError: no funds")
    assert bodies_of(server, "conv-failed", "run.failed")[0]["error"] == "the team failed"
    assert counts_of(server, "conv-failed").errors == 1
