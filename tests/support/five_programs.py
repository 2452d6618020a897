"""Five programs that people run already, at once beside one server: `python -m tests.support.five_programs`.

A script of the OpenAI Agents SDK that has its approvals asked here, a LangGraph agent and a pydantic-ai agent that
export traces, a Claude Code session file that is followed while it is written, and a worker of magent2 on Redis. The
first three run in the environment that the lines of the page Connect set.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from dashboard.pages.connect_sources import SOURCES, Connection
from tests.support import magent2
from tests.support.live import ROOT, Server, until
from tests.support.magent2 import Gateway, Worker
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.services import RedisServer, running
from tests.support.watched import in_turn
from tests.support.weather_model import answer_to

SDK_PROGRAM = """
import asyncio, sys
import switchboard
from agents import Agent, RunConfig, Runner, function_tool

watch = switchboard.watch_agents(approve=True)

@function_tool(needs_approval=True)
def restart_service(name: str) -> str:
    "Restart a service."
    return f"{name} restarted"

async def main():
    agent = Agent("Operator", model="gpt-test", tools=[restart_service])
    config = RunConfig(group_id=sys.argv[1], workflow_name="Night shift")
    result = await Runner.run(agent, "The payments service hangs. Restart it.", run_config=config)
    print(result.final_output, flush=True)

asyncio.run(main())
"""
SDK_STEPS = [call("restart_service", {"name": "payments"}, "call_1")], [message("Payments is up again.")]
SESSION = [
    ("user", "msg_1", "Add a health check to the gateway."),
    ("assistant", "msg_2", [{"type": "text", "text": "I will look at the gateway first."}]),
    (
        "assistant",
        "msg_3",
        [{"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "gateway.py"}}],
    ),
    ("user", "msg_4", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "app = FastAPI()"}]),
    ("assistant", "msg_5", [{"type": "text", "text": "Added GET /health, and a test for it."}]),
]
TOKENS = """
from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
print(tokens.make_token(SYSTEM, "night-shift", "agent", agent="Operator"))
print(tokens.make_token(SYSTEM, "collector", "telemetry"))
"""


class FivePrograms:
    """The five, begun. `names` are their conversations, by what runs them; pydantic-ai's is one of its trace."""

    def __init__(self, server: Server, bus: RedisServer, folder: Path, stack: ExitStack) -> None:
        self.server, self.bus, self._folder = server, bus, folder
        self.names = {
            "agents-sdk": "night-shift",
            "langgraph": "thread of openinference_langgraph",
            "claude-code": "claude-code-five-programs",
            "magent2": "delivery-42",
        }
        self._sdk, self._others = server.command("shell", "--no-imports", "-c", TOKENS).split()
        self._models = [stack.enter_context(served_apart(answer)) for answer in (in_turn(*SDK_STEPS), _weather)]
        self._processes: list[subprocess.Popen[str]] = []

    def begin(self) -> None:
        """Start all five."""
        script = [sys.executable, "-c", SDK_PROGRAM, self.names["agents-sdk"]]
        lines = exports_of("agents-sdk", Connection(self.server.url, self._sdk, "Operator", "maria"))
        spool = {"SWITCHBOARD_SPOOL_DIR": str(self._folder / "spool")}
        self.sdk = self._start(script, self._models[0].url, **lines, **spool)
        lines = exports_of("opentelemetry", Connection(self.server.url, self._others, "weather", "maria"))
        for name in ("openinference_langgraph", "pydantic_ai"):
            program = [sys.executable, "-m", "tests.support.otlp_programs", name]
            self._start(program, self._models[1].url, **lines)
        self._session = self._folder / "session.jsonl"
        self._session.touch()
        follow = [sys.executable, "manage.py", "follow", str(self._session)]
        self._start(follow, "", SWITCHBOARD_TOKEN=self._others, SWITCHBOARD_DATA_DIR=str(self._folder / "none"))
        threading.Thread(target=self._write_session, daemon=True).start()
        self.worker = Worker(self.bus, "Courier", magent2.with_tool)
        Gateway(self.bus).send(self.names["magent2"], "user:rosa", "agent:Courier", "Where is parcel 42?")

    def end(self) -> None:
        """End them."""
        self.worker.stop()
        for process in self._processes:
            process.terminate()
            process.communicate(timeout=60)

    def _start(self, command: list[str], model: str, **more: str) -> subprocess.Popen[str]:
        clean_environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("SWITCHBOARD_", "OPENAI_", "DJANGO_"))
        }
        model_of = {"OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "ignore"}
        environment = (
            clean_environment | model_of | {"SWITCHBOARD_URL": self.server.url, "PYTHONUNBUFFERED": "1"} | more
        )
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._processes.append(process)
        return process

    def _write_session(self) -> None:
        for number, (role, name, content) in enumerate(SESSION):
            line: dict[str, Any] = {"type": role, "uuid": name, "sessionId": "five-programs", "cwd": "/srv/gateway"}
            line |= {"timestamp": f"2026-01-02T10:00:{number:02}Z", "version": "2.0.0", "isSidechain": False}
            message: dict[str, Any] = {"role": role, "content": content}
            if role == "assistant":
                usage = {"input_tokens": 900 + number, "output_tokens": 20}
                message |= {"id": name, "type": "message", "model": "claude-sonnet-4-5", "usage": usage}
            with self._session.open("a") as file:
                file.write(json.dumps(line | {"message": message}) + "\n")
            threading.Event().wait(0.4)  # as a person would see it grow


def exports_of(source: str, connection: Connection) -> dict[str, str]:
    """Return the environment that the lines of a card on the page Connect set."""
    words = [word for step in SOURCES[source].steps(connection) for word in shlex.split(step.code, comments=True)]
    names = [words[at + 1] for at, word in enumerate(words) if word == "export"]
    return dict(name.split("=", 1) for name in names)


def _weather(_: int, request: Any) -> Any:
    return answer_to(request)


@contextmanager
def started(server: Server, bus: RedisServer) -> Iterator[FivePrograms]:
    """Have the five ready beside a server on a Redis."""
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="five-programs-") as folder:
        programs = FivePrograms(server, bus, Path(folder), stack)
        try:
            yield programs
        finally:
            programs.end()


def main() -> None:
    """Run them beside a new server until somebody presses Enter."""
    with running(RedisServer()) as bus, tempfile.TemporaryDirectory(prefix="five-programs-data-") as home:
        server = Server(Path(home) / "data", "--no-demo", SWITCHBOARD_REDIS_URL=bus.url, SWITCHBOARD_TEAMS="").start()
        try:
            until(lambda: "sign-in link" in server.output(), what="the link")
            link = next(line for line in server.output().splitlines() if "sign-in link" in line)
            with started(server, bus) as programs:
                programs.begin()
                input(f"{link}\nFive programs run. Enter ends them.\n")
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
