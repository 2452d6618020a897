"""Models of servers: recorded streams come through unchanged, broken ones end with a reason, tries are bounded."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agents import Agent, ModelBehaviorError, RunConfig, Runner
from agents.result import RunResultStreaming
from django.conf import settings
from django.test import override_settings
from openai.types.responses import Response

from agents_app.demo.model import DemoModel
from agents_app.model_providers.http_models import ChatModel, ModelFailed, ResponsesModel
from agents_app.model_providers.providers import ModelConfig, Provider, configured, model_for
from dashboard import config
from tests.support import recorded_streams as streams
from tests.support.provider_server import Answer, Asked, ProviderServer
from tests.support.tiers import rounds, sampled, variants

KEY = "sk-test-0123456789abcdefghij"


def config_of(server: ProviderServer, **changed: Any) -> ModelConfig:
    return ModelConfig(**{"api_key": KEY, "base_url": server.url, "model": "chat:m", "silence_s": 5.0} | changed)


class Ran(NamedTuple):
    """A run: its result, the text that it streamed, and what the model said at the end."""

    result: RunResultStreaming
    streamed: str
    recorded: streams.Told | None


async def drive(config: ModelConfig, tools: list[Any]) -> Ran:
    """Run an agent with a provider of its own."""
    provider = Provider(config)
    try:
        return await drive_on(provider, None, tools)
    finally:
        await provider.aclose()


async def drive_on(
    provider: Provider, model: str | None, tools: list[Any], refused: type[Exception] | tuple[()] = ()
) -> Ran:
    """Run an agent on a model; `refused` is what the SDK's runner may raise after the answer."""
    agent = Agent[Any](name="A", model=model, tools=tools, tool_use_behavior="stop_on_first_tool")
    text, error = "", None
    async with asyncio.timeout(60):
        result = Runner.run_streamed(agent, "go", run_config=RunConfig(model_provider=provider))
        try:
            async for event in result.stream_events():
                if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                    text += event.data.delta
                if event.type == "raw_response_event" and event.data.type == "response.completed":
                    error = told_by(event.data.response)
        except refused:
            pass
        return Ran(result, text, error)


def told_by(response: Response) -> streams.Told:
    text = "".join(p.text for i in response.output if i.type == "message" for p in i.content if p.type == "output_text")
    calls = [(item.name, item.arguments) for item in response.output if item.type == "function_call"]
    usage = response.usage
    return streams.Told(text, calls, (usage.input_tokens, usage.output_tokens) if usage else None)


def refused(path: Path) -> type[Exception] | tuple[()]:
    return ModelBehaviorError if streams.has_refused_calls(path) else ()


@pytest.mark.slow
@streams.needs_recordings
def test_recorded_streams_come_through_unchanged() -> None:
    recorded = sampled(streams.RECORDED, one_of=2)
    bodies = [path.read_bytes() for path in recorded]
    files = list(zip(recorded, bodies, strict=True))

    async def all_of_them() -> list[Ran]:
        async with ProviderServer(lambda n, request: Answer(bodies[n])) as server:
            provider = Provider(config_of(server))
            ran = [
                await drive_on(provider, streams.api_of(body), streams.tools_of(body), refused(path))
                for path, body in files
            ]
            await provider.aclose()
        return ran

    answers = asyncio.run(all_of_them())

    assert len(answers) >= rounds(25, 50)
    for (path, body), answer in zip(files, answers, strict=True):
        assert (answer.recorded, answer.streamed) == (streams.recorded(body), streams.recorded(body).text), path.name


def reasons_of_cuts(name: str, end: Any, steps: int | None) -> list[str]:
    """Cut a recording at `steps` places (None: after every byte) before its end mark; return the failures' reasons."""
    body = streams.body_of(name)
    places = streams.places_of(body, steps)
    reasons = []

    async def everywhere() -> None:
        async with ProviderServer(lambda n, request: Answer(body[: places[n]], end=end)) as server:
            provider = Provider(config_of(server, retries=0))
            for _ in places:
                with pytest.raises(ModelFailed) as failed:
                    await drive_on(provider, streams.api_of(body), streams.tools_of(body))
                reasons.append(str(failed.value))
            await provider.aclose()

    asyncio.run(everywhere())
    assert len(reasons) == len(places)
    return reasons


@pytest.mark.slow
@streams.needs_recordings
@pytest.mark.parametrize("name", variants(streams.CUT))
@pytest.mark.parametrize("end", variants(["closed", "reset"]))
def test_a_stream_cut_anywhere_ends_as_a_failure_with_a_reason(name: str, end: Any) -> None:
    reasons = reasons_of_cuts(name, end, 50)

    assert len(reasons) >= 50
    assert all(reason.startswith("m: ") and len(reason) > 10 for reason in reasons)


@pytest.mark.faults
@pytest.mark.timeout(600)
@streams.needs_recordings
@pytest.mark.parametrize("name", streams.CUT[1:2])
def test_a_stream_cut_after_any_byte_ends_as_a_failure_with_a_reason(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    reasons = reasons_of_cuts(name, "closed", None)

    record_property("amount", f"{len(reasons):,} cuts, each a failure with a reason")
    assert len(reasons) >= 1900
    assert all(reason.startswith("m: ") and len(reason) > 10 for reason in reasons)


def faulty(answer: Callable[[int, Asked], Answer | None], **changed: Any) -> tuple[str, int]:
    """Run against a faulty server; return the reason and the number of requests. It has to end within 10 s."""

    async def run() -> tuple[str, int]:
        async with ProviderServer(answer) as server, asyncio.timeout(60):
            with pytest.raises(ModelFailed) as failed:
                await drive(config_of(server, **changed), [])
            return str(failed.value), len(server.requests)

    return asyncio.run(run())


SOON = ("retry-after-ms: 5",)
EVENT = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
HALF = EVENT % b'{"index":0,"delta":{"role":"assistant","content":"Hal"},"finish_reason":null}'


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_refusing_server_is_asked_a_bounded_number_of_times(status: int) -> None:
    body = json.dumps({"error": {"message": "no capacity"}}).encode()

    reason, requests = faulty(lambda n, request: Answer(body, status, "application/json", SOON), retries=2)

    assert (requests, reason) == (3, f"m: the server responded with {status}: Error code: {status} - no capacity")


def test_a_server_that_recovers_is_answered() -> None:
    whole = (
        EVENT % b'{"index":0,"delta":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}'
        + b"data: [DONE]\n\n"
    )

    async def run() -> tuple[Any, int]:
        async with ProviderServer(lambda n, request: Answer(whole) if n else Answer(b"", 429, headers=SOON)) as server:
            ran = await drive(config_of(server), [])
            return ran.result.final_output, len(server.requests)

    assert asyncio.run(run()) == ("Hello", 2)


def test_a_dropped_connection_is_tried_again_and_then_told() -> None:
    reason, requests = faulty(lambda n, request: None, retries=1)

    assert requests == 2
    assert "the connection was lost" in reason


@pytest.mark.parametrize("body", [b"", HALF], ids=["before the first byte", "in the middle"])
def test_a_silent_server_is_not_waited_for_without_end(body: bytes) -> None:
    reason, _ = faulty(lambda n, request: Answer(body, end="silent"), silence_s=0.3, retries=0)

    assert reason == "m: the server was silent for too long"


def test_a_server_that_drips_for_ever_is_cut_off() -> None:
    reason, _ = faulty(lambda n, request: Answer(HALF, end="drip"), timeout_s=0.6)

    assert reason == "m: no complete answer within 0.6 s"


EMPTY = "the connection was lost (the stream has an end mark and nothing before it)"
NO_END = "the connection was lost (the stream ended before its end mark [DONE])"
INCOMPLETE = "the stream ended before the answer was complete"
NO_JSON, NO_EVENT = "the server sent invalid JSON", "the server sent an invalid event"


@pytest.mark.parametrize(
    ("body", "by_chat", "by_responses"),
    [
        (b"data: {not json\n\n", NO_JSON, NO_JSON),
        (b"<html>It works!</html>", NO_END, INCOMPLETE),
        (b"data: []\n\ndata: [DONE]\n\n", EMPTY, NO_EVENT),
        (
            b'data: {"choices": 5}\n\ndata: [DONE]\n\n',
            f"{NO_EVENT} (TypeError: 'int' object is not iterable)",
            INCOMPLETE,
        ),
        (b'data: {"error": {"message": "overloaded"}}\n\n', *["the server reported an error: overloaded"] * 2),
        (b"data: [DONE]\n\n", EMPTY, INCOMPLETE),
        (b"\xff\xfe\x00", NO_END, NO_JSON),
        (b"", NO_END, INCOMPLETE),
    ],
)
def test_malformed_answers_end_with_a_reason(body: bytes, by_chat: str, by_responses: str) -> None:
    for api, reason in (("chat", by_chat), ("responses", by_responses)):
        assert faulty(lambda n, request: Answer(body), model=f"{api}:m", retries=0) == (f"m: {reason}", 1)


def test_a_refused_key_is_not_repeated() -> None:
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()

    reason, requests = faulty(lambda n, request: Answer(body, 401, "application/json"))

    assert requests == 1
    assert "401" in reason
    assert KEY not in reason


def test_each_agent_may_have_its_own_api_and_model() -> None:
    async def run() -> list[tuple[str, Any]]:
        async with ProviderServer(lambda n, request: Answer(b"{}", 400, "application/json")) as server:
            provider = Provider(config_of(server, model="house"))
            for model in ("responses:one", "chat:two", "llama3:8b", None):
                with pytest.raises(ModelFailed):
                    await Runner.run(Agent(name="A", model=model), "go", run_config=RunConfig(model_provider=provider))
            await provider.aclose()
            assert {received.headers["authorization"] for received in server.requests} == {f"Bearer {KEY}"}
            return [(received.path.removeprefix("/v1/"), received.body["model"]) for received in server.requests]

    assert asyncio.run(run()) == [
        ("responses", "one"),
        ("chat/completions", "two"),
        ("chat/completions", "llama3:8b"),
        ("chat/completions", "house"),
    ]


def test_the_plain_name_of_the_configured_model_has_its_api() -> None:
    provider = Provider(ModelConfig(base_url="http://127.0.0.1:9/v1", model="responses:m"))

    kinds = [type(provider.get_model(name)) for name in ("m", None, "responses:m", "other", "chat:m")]

    assert kinds == [ResponsesModel, ResponsesModel, ResponsesModel, ChatModel, ChatModel]


def test_a_server_without_the_model_is_said_to_have_been_asked_by_which_api() -> None:
    words, _ = faulty(lambda n, request: Answer(b'{"error": {"message": "no m"}}', 404, "application/json"))

    assert "API used: Chat Completions; choose another with `responses:` or `chat:`" in words


def test_another_makers_model_is_not_sent_the_default_models_settings() -> None:
    async def run() -> dict[str, Any]:
        async with ProviderServer(lambda n, request: Answer(b"{}", 400, "application/json")) as server:
            with pytest.raises(ModelFailed):
                await drive(config_of(server), [])
            return server.requests[0].body

    body = asyncio.run(run())

    assert body["stream_options"] == {"include_usage": True}
    assert not {"reasoning_effort", "verbosity"} & body.keys()


def test_without_a_server_the_demo_model_speaks_and_says_so() -> None:
    agent = Agent[Any](name="A", model="responses:whatever")

    served = model_for(agent, Provider(ModelConfig()))

    assert isinstance(served.model, DemoModel)
    assert served[1:] == ("demo model", True)


@pytest.mark.parametrize(
    ("config", "name", "kind"),
    [
        (ModelConfig(api_key="k", model="x"), None, ResponsesModel),
        (ModelConfig(api_key="k", base_url="http://h/v1", model="x"), None, ChatModel),
        (ModelConfig(base_url="http://h/v1", model="x", api="responses"), None, ResponsesModel),
        (ModelConfig(base_url="http://h/v1", model="x"), "demo", DemoModel),
        (ModelConfig(api_key="k", model="demo"), "chat:x", DemoModel),
    ],
)
def test_the_settings_choose_the_model(config: ModelConfig, name: str | None, kind: type) -> None:
    assert isinstance(model_for(Agent(name="A", model=name), Provider(config)).model, kind)


def test_a_config_does_not_show_its_key() -> None:
    assert KEY not in repr(ModelConfig(api_key=KEY))


def test_the_environment_says_which_server_and_the_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("SWITCHBOARD_MODEL", "chat:house")

    with override_settings(CONFIG=config.load()):
        provider = configured()
        shown = repr(settings.CONFIG)

    assert (provider.api_key, provider.base_url, provider.model, provider.is_demo) == (
        KEY,
        "http://127.0.0.1:9/v1",
        "chat:house",
        False,
    )
    assert KEY not in shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_BASE_URL", "ftp://user:hunter2@host"),
        ("SWITCHBOARD_MODEL_API", "grpc"),
        ("SWITCHBOARD_MODEL_TIMEOUT_S", "0"),
        ("SWITCHBOARD_MODEL_RETRIES", "-1"),
    ],
)
def test_a_wrong_setting_ends_the_start_and_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SystemExit) as ended:
        config.load()

    assert f"\n  {name}: " in str(ended.value)
    assert "hunter2" not in str(ended.value)
