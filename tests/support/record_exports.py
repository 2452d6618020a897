"""Record what programs export, as `tests/samples/exports/NAME.otlp`: `python -m tests.support.record_exports NAME…`.

Requests of OTLP in protobuf that stand one behind the other are one request. `PROGRAM_PYTHON` is the interpreter that
runs them: one that has google-adk, whose package takes no version of websockets that the server is tested with.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dashboard.pages.connect_sources import OTEL_WORDS
from tests.support.answering import Answer, Request, answering
from tests.support.live import ROOT
from tests.support.provider_server import ProviderServer, served_apart
from tests.support.weather_model import answer_to

EXPORTS = ROOT / "tests" / "samples" / "exports"


def environment_of(endpoint: str, model: ProviderServer, token: str = "") -> dict[str, str]:
    """Return the environment in which a program exports its words to an endpoint."""
    return {
        **os.environ,
        "OPENAI_BASE_URL": model.url,
        "OPENAI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": model.url.removesuffix("/v1"),
        "GEMINI_API_KEY": "x",
        "LANGSMITH_API_KEY": "x",
        "LANGCHAIN_REVISION_ID": "none",  # else what git says of the folder
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{token}" if token else "",
        "OTEL_SERVICE_NAME": "a-service",
        **OTEL_WORDS,
        "PYTHONWARNINGS": "ignore",
    }


def record(name: str, python: str, folder: Path = EXPORTS) -> Path:
    """Run a program and write what it exported."""
    bodies: list[bytes] = []

    def answer(request: Request) -> Answer:
        bodies.append(request.body)
        return Answer()

    with served_apart(lambda _, request: answer_to(request)) as model, answering(answer) as collector:
        environment = environment_of(collector, model)
        command = [python, "-m", "tests.support.otlp_programs", name]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=200)
    path = folder / f"{name}.otlp"
    path.write_bytes(b"".join(bodies))
    return path


if __name__ == "__main__":
    for program in sys.argv[1:]:
        record(program, os.environ.get("PROGRAM_PYTHON", sys.executable))
