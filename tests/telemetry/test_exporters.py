"""Real exporters of real frameworks, over the model of a script: each program's conversation is the same."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.doors import Caller, events_of
from tests.support.live import ROOT, Server
from tests.support.otlp import conversations_of, counts_of
from tests.support.otlp_programs import PROGRAMS
from tests.support.provider_server import ProviderServer, served_apart
from tests.support.tiers import variants
from tests.support.weather_model import answer_to

NAMELESS = "openllmetry_openai"  # a loop of one's own has no agent: the service stands for it


@pytest.fixture
def model() -> Iterator[ProviderServer]:
    """A model that has the weather looked up, then answers: by chat completions, and by responses."""
    with served_apart(lambda _, asked: answer_to(asked)) as server:
        yield server


def run(name: str, server: Server, caller: Caller, model: ProviderServer) -> set[str]:
    """Run a program; return the conversations that came of it."""
    before = conversations_of(server)
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "x",
        "LANGSMITH_API_KEY": "x",
        "OTEL_EXPORTER_OTLP_ENDPOINT": server.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{caller.token}",
        "OTEL_SERVICE_NAME": "a-service",
        "TRACELOOP_TRACE_CONTENT": "true",
        "PYTHONWARNINGS": "ignore",
    }
    command = [sys.executable, "-m", "tests.support.otlp_programs", name]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return conversations_of(server) - before


@pytest.mark.parametrize("name", variants(sorted(PROGRAMS)))
def test_a_program_becomes_a_conversation(server, caller, model, name):
    (conversation,) = run(name, server, caller, model)

    agents, messages, calls, errors, *tokens = counts_of(server, conversation)
    assert agents == {"a-service" if name == NAMELESS else "Weather"}
    assert (messages, calls, errors, tokens) == (2, {"get_weather": 1}, 0, [30, 8])
    bodies = [body for _, _, body in events_of(server, conversation)]
    words = [body.get("content") or body.get("text") for body in bodies if body.get("type") != "control"]
    assert [text for text in words if text] == ["Weather in Paris?", "Rainy."]
    (ended,) = [body for body in bodies if body.get("status") == "success"]
    assert (ended["name"], ended["output"]) == ("get_weather", "rainy in Paris")
