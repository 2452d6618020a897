"""The GenAI conventions over `POST /v1/traces`: messages, calls, runs, tokens, each once."""

import json

from tests.support.doors import events_of
from tests.support.otlp import counts_of, export, span, traces

HISTORY = [
    {"role": "user", "parts": [{"type": "text", "content": "Weather in Paris?"}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "tool_call", "id": "call_0123456789", "name": "get_weather", "arguments": {"city": "Paris"}}
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call_0123456789", "response": "rainy, 57°F"}]},
]
ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "Rainy."}], "finish_reason": "stop"}]


def chat(number, inputs, outputs, *, conversation, start, **more):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.conversation.id": conversation,
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.usage.input_tokens": 97,
        "gen_ai.usage.output_tokens": 52,
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps(outputs),
    }
    return span("chat gpt-5-mini", attributes, number=number, parent=1, start=start, **more)


def weather(conversation, trace=1):
    """An agent that asks its model, calls a tool, and asks again."""
    common = {"gen_ai.conversation.id": conversation}
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Weather", **common}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "call_0123456789",
        "gen_ai.tool.call.arguments": '{"city": "Paris"}',
        "gen_ai.tool.call.result": "rainy, 57°F",
        **common,
    }
    return [
        chat(2, HISTORY[:1], HISTORY[1:2], conversation=conversation, start=0.1, trace=trace),
        span("execute_tool get_weather", tool, trace=trace, number=3, parent=1, start=0.3),
        chat(4, HISTORY, ANSWER, conversation=conversation, start=0.5, trace=trace),
        span("invoke_agent Weather", agent, trace=trace, number=1, took=1),
    ]


def test_a_trace_becomes_a_conversation(server, caller):
    answer = export(caller, traces(*weather("genai")))

    assert answer.status == 200
    assert counts_of(server, "genai") == ({"Weather"}, 2, {"get_weather": 1}, 0, 194, 104)
    kinds = [(kind, body.get("content") or body.get("text")) for _, kind, body in events_of(server, "genai")]
    assert kinds == [
        ("run.started", None),
        ("message", "Weather in Paris?"),
        ("tool_step", None),
        ("model.call", None),
        ("tool_step", None),
        ("output", "Rainy."),
        ("model.call", None),
        ("run.done", None),
    ]
