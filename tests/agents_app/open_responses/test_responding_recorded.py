"""What others' clients once asked of their providers, asked of the worker of the responses door; the provider answers
as it did then. One worker, one server, all requests at once."""

import json
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.conf import settings

from agents_app.model_providers.providers import ModelConfig
from conversations.models import ToolCall
from tests.support.agents_running import ended_runs, team, working
from tests.support.provider_server import Answer, served_apart
from tests.support.recorded_streams import api_of, has_refused_calls, recorded
from tests.support.responses import answer, ask, calls, function, user, words

pytestmark = pytest.mark.django_db(transaction=True)
HOME = Path(settings.SAMPLES_DIR)
REQUESTS = sorted(HOME.glob("streams-openllmetry/sse/*.request.json"))
CHUNKS = sorted(HOME.glob("streams-vercel-ai/*.chunks.txt"))
needs_requests = pytest.mark.skipif(not REQUESTS, reason="no streams-openllmetry in SWITCHBOARD_SAMPLES_DIR")


@contextmanager
def providing(bodies):
    """A worker whose models are named like recordings, and the server that plays these."""
    requests = {}

    def respond(_n, request):
        name = request.body["model"]
        requests[name] = request.body
        return Answer(bodies[name])

    with served_apart(respond) as server:
        config = ModelConfig(api_key="sk-a", base_url=server.url, model="m", silence_s=20.0)
        with working(team(), config=config, per_team=100):
            yield requests


def items_of(body):
    """Turn a recorded request's words into input items."""
    if "input" in body:
        return [user(body["input"])] if isinstance(body["input"], str) else body["input"]
    made = []
    for message in body["messages"]:
        if message["role"] == "tool":
            made.append(
                {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            )
            continue
        if message.get("content"):
            made.append({"type": "message", "role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls") or ():
            function = call["function"]
            made.append({"type": "function_call", "call_id": call["id"]} | function)
    return made


def tools_of(body):
    """Turn a recorded request's tools into ours; those that only run at the provider are none."""
    functions = [tool for tool in body.get("tools") or () if tool["type"] == "function"]
    return [{"type": "function", **tool.get("function", {}), **tool} for tool in functions]


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of the SDK, at an action newer than its types
@needs_requests
def test_recorded_requests_are_answered_with_what_the_provider_said():
    asked_then, bodies = {}, {}
    for n, path in enumerate(REQUESTS):
        stream = path.with_name(path.name.replace(".request.json", ".response.sse"))
        if stream.exists() and not has_refused_calls(stream):
            bodies[f"r{n}"] = stream.read_bytes()
            asked_then[f"r{n}"] = json.loads(path.read_text())["body"]
    with providing(bodies) as given:
        made = {
            name: ask(
                items_of(body), agent="Plain model", model=api_of(bodies[name], name), tools=tools_of(body),
                instructions=body.get("instructions"),
            )
            for name, body in asked_then.items()
        }  # fmt: skip
        ended_runs(len(made), within=60)

    assert len(made) >= 35
    for name, response in made.items():
        shown, expected = answer(response), recorded(bodies[name])
        sent = {tool["name"] for tool in tools_of(asked_then[name])}
        external = [call for call in expected.calls if call[0] in sent]
        assert shown["status"] == "completed", (name, shown["error"])
        assert [(call["name"], call["arguments"]) for call in calls(shown)] == external, name
        assert "".join(words(shown)) == expected.text, name
        if expected.tokens is not None:
            assert (shown["usage"]["input_tokens"], shown["usage"]["output_tokens"]) == expected.tokens
        assert len(given[name].get("tools", ())) == len(sent)
    assert ToolCall.objects.exclude(status="called", origin="external").count() == 0


def framed(path):
    """Put the framing back that the recording left out."""
    lines = [line for line in path.read_text().splitlines() if line]
    end = [b"data: [DONE]\n\n"] if '"chat.completion.chunk"' in lines[0] else []
    return b"".join([f"data: {line}\n\n".encode() for line in lines] + end)


REASONS = {  # kinds of calls that no request to us can have asked for, and an error of the provider's
    "openai-custom-tool.1": "Tool write_sql not found",
    "openai-error.1": "You exceeded your current quota",
    "openai-mcp-tool-approval.1": "MCP server label zip1 not found",
    "programmatic-tool-calling.1": "without a programmatic_tool_calling tool",
}


def name_of(path):
    return path.name.split("__")[-1].removesuffix(".chunks.txt")


@needs_requests
@pytest.mark.parametrize("path", CHUNKS, ids=name_of)
def test_recorded_open_responses_come_through_or_end_with_a_reason(path):
    body = framed(path)
    with providing({"m": body}):
        response = ask("go", agent="Plain model", model=api_of(body), tools=[function("weather")])
        ended_runs()

    shown = answer(response)
    if reason := REASONS.get(name_of(path)):
        assert (shown["status"], shown["error"]["code"], shown["output"]) == ("failed", "model_error", [])
        assert reason in shown["error"]["message"]
        return
    frames = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")]
    deltas = [event for event in frames if event.get("type") == "response.output_text.delta"]
    text = "".join(event["delta"] for event in deltas) if deltas else recorded(body).text
    assert (shown["status"], "".join(words(shown))) == ("completed", text)
    assert text or calls(shown)
    if name_of(path) == "lmstudio-tool-call.1":
        assert [item["type"] for item in shown["output"]] == ["reasoning", "message", "function_call"]
        assert json.loads(calls(shown)[0]["arguments"]) == {"location": "San Francisco"}
