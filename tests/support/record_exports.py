"""Record what programs export, as `tests/samples/exports/NAME.otlp`: `python -m tests.support.record_exports NAME…`.

Requests of OTLP in protobuf that stand one behind the other are one request. `PROGRAM_PYTHON` is the interpreter that
runs them: one that has google-adk, whose package takes no version of websockets that the server is tested with.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dashboard.pages.connect_sources import OTEL_WORDS
from tests.support.live import ROOT
from tests.support.provider_server import ProviderServer, served_apart
from tests.support.weather_model import answer_to

EXPORTS = ROOT / "tests" / "samples" / "exports"


class Collector(ThreadingHTTPServer):
    """Keeps the bodies of all requests, in a thread of its own while entered."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.bodies: list[bytes] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Request(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        """Keep a body."""
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


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
    collector = Collector()
    with served_apart(lambda _, request: answer_to(request)) as model:
        environment = environment_of(f"http://127.0.0.1:{collector.server_port}", model)
        command = [python, "-m", "tests.support.otlp_programs", name]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=200)
    collector.shutdown()
    collector.server_close()
    path = folder / f"{name}.otlp"
    path.write_bytes(b"".join(collector.bodies))
    return path


if __name__ == "__main__":
    for program in sys.argv[1:]:
        record(program, os.environ.get("PROGRAM_PYTHON", sys.executable))
