"""The products of `comparison`: Switchboard, Arize Phoenix, and LangGraph in two forms."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
from pathlib import Path

from tests.benchmarks.comparison_product import PLACES, Follower, Http, Product
from tests.support.live import ROOT, free_port, until


class Switchboard(Product):
    """This checkout."""

    name, packages = "Switchboard", (str(ROOT),)
    has_spans = has_stream = has_approvals = True
    spans_path = "/v1/traces"

    def version(self) -> str:
        """Return the checkout's commit."""
        command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        return (
            "switchboard-dashboard "
            + subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        )

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Start `switchboard serve` on SQLite."""
        program = str(self.venv / "bin" / "switchboard")
        return [program, "serve", "--no-demo", "--port", str(self.port)], {"SWITCHBOARD_DATA_DIR": str(self.data)}

    def ready_path(self) -> str:
        """Use the readiness endpoint: others need a token, which needs the tables."""
        return "/readyz"

    def prepare(self) -> None:
        """Make a token, once."""
        if not self.headers:
            command = [str(self.venv / "bin" / "switchboard"), "token", "robot", "--role", "admin"]
            environment = os.environ | {"SWITCHBOARD_DATA_DIR": str(self.data)}
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, cwd=self.home)
            self.headers = {"Authorization": f"Bearer {done.stdout.strip().splitlines()[-1]}"}

    def publish(self, client: Http, place: int, text: str) -> None:
        """Publish a message."""
        payload = {"conversation_id": f"s{place}", "type": "message", "sender": "agent:A", "recipient": "user:maria"}
        client.ask("POST", "/api/v1/publish", {"topic": f"stream:s{place}", "payload": payload | {"content": text}})

    def newest(self, client: Http, place: int) -> str:
        """Read the newest page."""
        return client.ask("GET", f"/api/v1/conversations/s{place}/events?limit=20")

    def everything(self) -> str:
        """Read all pages of all conversations."""
        client, texts = self.http(), list[str]()
        for conversation in client.get("/api/v1/conversations", limit=100)["items"]:
            cursor: str | None = "0"
            while cursor is not None:
                path = f"/api/v1/conversations/{conversation['conversation_id']}/events?limit=500&after={cursor}"
                texts.append(client.ask("GET", path))
                cursor = json.loads(texts[-1])["cursor"]
        return "".join(texts)

    def follow(self) -> Follower:
        """Follow all conversations."""
        return Follower(self.port, "/api/v1/events", self.headers)

    def request(self, client: Http, number: int) -> None:
        """Ask about a call of an external agent."""
        call = {
            "conversation_id": "desk",
            "agent": "Desk",
            "name": "wipe",
            "tool_call_id": f"c{number}",
            "args_raw": "{}",
        }
        until(lambda: '"decided"' in client.ask("POST", "/api/v1/approvals/requests", call), what="a decision")

    def decide(self, client: Http, number: int) -> float:
        """Decide in the list of approvals."""
        pending = until(lambda: client.get("/api/v1/approvals", status="pending")["items"], what="a pending request")
        seen = time.monotonic()
        client.ask("POST", f"/api/v1/approvals/{pending[0]['approval_id']}/decision", {"decision": "approve"})
        return seen


class Phoenix(Product):
    """Arize Phoenix, which keeps traces in SQLite."""

    name, packages = "Arize Phoenix", ("arize-phoenix",)
    has_spans = True
    spans_path = "/v1/traces"

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Start `phoenix serve` with nothing sent elsewhere."""
        environment = {
            "PHOENIX_WORKING_DIR": str(self.data),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
        }
        environment |= {"PHOENIX_GRPC_PORT": str(free_port()), "PHOENIX_TELEMETRY_ENABLED": "false"}
        environment["PHOENIX_ALLOW_EXTERNAL_RESOURCES"] = "false"
        return [str(self.venv / "bin" / "phoenix"), "serve"], environment

    def ready_path(self) -> str:
        """List the projects."""
        return "/v1/projects"

    def publish(self, client: Http, place: int, text: str) -> None:
        """Export one span."""
        from tests.benchmarks.comparison_spans import encoded

        client.ask("POST", "/v1/traces", encoded(place, text), **{"Content-Type": "application/x-protobuf"})

    def newest(self, client: Http, place: int) -> str:
        """Read the newest page; a project exists once it has a span."""
        try:
            return client.ask("GET", "/v1/projects/default/spans?limit=20")
        except AssertionError:
            return ""

    def everything(self) -> str:
        """Read all pages."""
        client, texts, cursor = self.http(), list[str](), None
        while True:
            more = f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""
            texts.append(client.ask("GET", f"/v1/projects/default/spans?limit=1000{more}"))
            cursor = json.loads(texts[-1]).get("next_cursor")
            if not cursor:
                return "".join(texts)


class LangGraph(Product):
    """A graph behind FastAPI, with the checkpointer on SQLite."""

    name = "LangGraph, FastAPI and SQLite"
    packages: tuple[str, ...] = ("langgraph", "langgraph-checkpoint-sqlite", "fastapi", "uvicorn")
    has_stream = has_approvals = True

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Start the small server beside this module."""
        program = Path(__file__).with_name("comparison_langgraph.py")
        return [str(self.venv / "bin" / "python"), str(program), str(self.port), str(self.data / "threads.sqlite")], {}

    def ready_path(self) -> str:
        """Read the state of a thread."""
        return "/threads/0/state"

    def thread(self, place: int) -> str:
        """Return the id of a thread."""
        return str(place)

    def publish(self, client: Http, place: int, text: str) -> None:
        """Run the graph on one input."""
        client.ask("POST", f"/threads/{self.thread(place)}/runs", {"say": text, "ask": False})

    def newest(self, client: Http, place: int) -> str:
        """Read the state, which has all messages."""
        return client.ask("GET", f"/threads/{self.thread(place)}/state")

    def everything(self) -> str:
        """Read the states of all threads."""
        client = self.http()
        return "".join(self.newest(client, place) for place in range(PLACES))

    def follow(self) -> Follower:
        """Follow the first thread."""
        return Follower(self.port, f"/threads/{self.thread(0)}/stream", self.headers)

    def request(self, client: Http, number: int) -> None:
        """Run the graph until it waits, then until the decision has been taken up."""
        client.ask("POST", f"/threads/{self.thread(0)}/runs", {"say": "wipe", "ask": True})
        until(lambda: not json.loads(self.newest(client, 0))["next"], what="the graph to go on")

    def decide(self, client: Http, number: int) -> float:
        """Resume the graph with a decision."""
        until(lambda: json.loads(self.newest(client, 0))["next"], what="the graph to wait")
        seen = time.monotonic()
        client.ask("POST", f"/threads/{self.thread(0)}/decision", {"decision": "approve"})
        return seen


class LangGraphDev(LangGraph):
    """The same graph in LangGraph's own server for development, which keeps its data in memory and in files."""

    name, packages = "`langgraph dev`", ("langgraph-cli[inmem]", "langgraph-api", "langgraph")

    def command(self) -> tuple[list[str], dict[str, str]]:
        """Start `langgraph dev` without an account; it keeps its data below the folder it runs in."""
        shutil.copy(Path(__file__).with_name("comparison_langgraph.py"), self.data / "desk.py")
        config = {"dependencies": ["."], "graphs": {"desk": "./desk.py:graph"}}
        (self.data / "langgraph.json").write_text(json.dumps(config))
        program = [str(self.venv / "bin" / "langgraph"), "dev", "--no-browser", "--no-reload", "--port", str(self.port)]
        return [*program, "--config", str(self.data / "langgraph.json")], {"LANGGRAPH_NO_VERSION_CHECK": "true"}

    def ready_path(self) -> str:
        """Use the liveness endpoint."""
        return "/ok"

    def prepare(self) -> None:
        """Make the threads, where there are none."""
        for place in range(PLACES):
            body = {"thread_id": self.thread(place), "if_exists": "do_nothing"}
            self.http().ask("POST", "/threads", body)

    def thread(self, place: int) -> str:
        """Return an id of the form that it takes."""
        return f"00000000-0000-4000-8000-{place:012}"

    def publish(self, client: Http, place: int, text: str) -> None:
        """Run the graph on one input."""
        body = {"assistant_id": "desk", "input": {"say": text, "ask": False}}
        client.ask("POST", f"/threads/{self.thread(place)}/runs/wait", body)

    def request(self, client: Http, number: int) -> None:
        """Run the graph until it waits, then until the decision has been taken up."""
        body = {"assistant_id": "desk", "input": {"say": "wipe", "ask": True}}
        client.ask("POST", f"/threads/{self.thread(0)}/runs/wait", body)
        until(lambda: not json.loads(self.newest(client, 0))["next"], what="the graph to go on")

    def decide(self, client: Http, number: int) -> float:
        """Resume the graph with a decision."""
        until(lambda: json.loads(self.newest(client, 0))["next"], what="the graph to wait")
        seen = time.monotonic()
        body = {"assistant_id": "desk", "command": {"resume": "approve"}}
        client.ask("POST", f"/threads/{self.thread(0)}/runs/wait", body)
        return seen
