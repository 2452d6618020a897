"""Real exporters of real frameworks, over the model of a script: each program's conversation is the same.

With `PROGRAM_PYTHON`, an interpreter that has google-adk (see `record_exports`), its program is run too; else its
recorded export alone is sent.
"""

import os
import subprocess
from collections.abc import Iterator

import pytest

from tests.support import programs
from tests.support.doors import Caller, events_of
from tests.support.live import ROOT, Server
from tests.support.otlp import conversations_of, counts_of, raw_export
from tests.support.otlp_programs import PROGRAMS, RECORDED
from tests.support.provider_server import ProviderServer, served_apart
from tests.support.record_exports import EXPORTS, environment_of
from tests.support.tiers import variants
from tests.support.weather_model import answer_to

OTHER_PYTHON = os.environ.get("PROGRAM_PYTHON", "")
NAMELESS = "openllmetry_openai"  # a loop of one's own has no agent: the service stands for it


@pytest.fixture
def model() -> Iterator[ProviderServer]:
    """A model that has the weather looked up, then answers: by chat completions, by responses, and as Gemini."""
    with served_apart(lambda _, request: answer_to(request)) as server:
        yield server


def run(name: str, server: Server, caller: Caller, model: ProviderServer) -> set[str]:
    """Run a program; return the conversations that came of it."""
    before = conversations_of(server)
    environment = environment_of(server.url, model, caller.token)
    command = ["-m", "tests.support.otlp_programs", name]
    if name in RECORDED:
        subprocess.run([OTHER_PYTHON, *command], cwd=ROOT, env=environment, timeout=200, check=True)
    else:
        done = programs.run(command, environment, 200)
        assert done.returncode == 0, done.stderr
    return conversations_of(server) - before


def is_the_weather(server: Server, conversation: str, agent: str) -> None:
    """Compare a conversation with what the program asked and was answered."""
    agents, messages, calls, errors, *tokens = counts_of(server, conversation)
    assert agents == {agent}
    assert (messages, calls, errors, tokens) == (2, {"get_weather": 1}, 0, [30, 8])
    bodies = [body for _, _, body in events_of(server, conversation)]
    words = [body.get("content") or body.get("text") for body in bodies if body.get("type") != "control"]
    assert [text for text in words if text] == ["Weather in Paris?", "Rainy."]
    (ended,) = [body for body in bodies if body.get("status") == "success"]
    assert ended["name"] == "get_weather"
    assert ended["output"] in ("rainy in Paris", {"result": "rainy in Paris"})


@pytest.mark.slow
@pytest.mark.parametrize("name", [*variants(sorted(PROGRAMS)), *(sorted(RECORDED) if OTHER_PYTHON else ())])
def test_a_program_becomes_a_conversation(server, caller, model, name):
    (conversation,) = run(name, server, caller, model)

    is_the_weather(server, conversation, "a-service" if name == NAMELESS else "Weather")


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_program_exported_becomes_a_conversation(server, caller, name):
    before = conversations_of(server)

    assert raw_export(caller, (EXPORTS / f"{name}.otlp").read_bytes()).status == 200

    (conversation,) = conversations_of(server) - before
    is_the_weather(server, conversation, "Weather")
