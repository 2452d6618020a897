"""A program that forks after `watch_agents(bus=…)` records what the new process does with that bus's settings."""

import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support import programs
from tests.support.answering import Answer, Request, answering
from tests.support.live import Server

PROGRAM = """
import os, sys
from agents.tracing import agent_span, trace
from switchboard import HttpBus, InMemoryBus, watch_agents

url, token, spool, conversation = sys.argv[1:]
bus = HttpBus(url, token, spool_dir=spool or None) if url else InMemoryBus()
watch = watch_agents(bus=bus, conversation=conversation)
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
with trace("forked"), agent_span("Forked"):
    pass
is_published = watch.flush(30) and not watch.lost
if not url:
    is_published = is_published and bool(bus.read(f"stream:{conversation}"))
os._exit(0 if is_published else 1)
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if "SWITCHBOARD" not in name and name != "REDIS_URL"}

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(*arguments: str) -> str:
    """Run the program; return what it logged."""
    done = programs.run(["-c", PROGRAM, *arguments], ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("has_spool", [True, False])
def test_it_is_recorded_at_the_server_of_the_bus_that_was_passed(
    served: Server, served_token: str, tmp_path: Path, has_spool: bool
) -> None:
    conversation = uuid4().hex

    run(f"http://127.0.0.1:{served.port}", served_token, str(tmp_path) if has_spool else "", conversation)

    address = f"/api/v1/conversations/{conversation}/events"
    kinds = [item["kind"] for item in served.request("GET", address, token=served_token)[1]["items"]]
    assert "run.started" in kinds


def test_a_bus_of_the_programs_own_is_used_as_it_is() -> None:
    run("", "", "", uuid4().hex)


ASKING = """
import asyncio, os, sys
from agents import Agent, Runner, function_tool
from switchboard import HttpBus, watch_agents
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model

watch_agents(bus=HttpBus(sys.argv[1], "t", spool_dir=sys.argv[2]), approve=True)
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

@function_tool(needs_approval=True)
def wipe() -> str:
    return "gone"

with served_apart(in_turn([call("wipe", {}, "c1")], [message("Done.")])) as server:
    result = asyncio.run(Runner.run(Agent("Cleaner", model=model(server), tools=[wipe]), "clean up"))
os._exit(1 if result.interruptions else 0)
"""


class Storing:
    """A server that remembers what was published, in order, and approves every call."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def answer(self, request: Request) -> Answer:
        """Answer a request."""
        several = json.loads(request.body).get("messages", ())
        self.messages += several
        decided = {"items": [{} for _ in several], "status": "decided", "decision": "approve"}
        return Answer(200, json.dumps(decided).encode())


@pytest.mark.slow
def test_its_approvals_are_requested(tmp_path: Path) -> None:
    with answering(Storing().answer) as address:
        done = programs.run(["-c", ASKING, address, str(tmp_path)], ENVIRONMENT)

    assert done.returncode == 0, done.stderr


WATCH = """
import sys
from agents.tracing import agent_span, trace
from switchboard import HttpBus, watch_agents

watch_agents(bus=HttpBus(*sys.argv[1:3], spool_dir=sys.argv[3]))
"""
CHILD = (
    WATCH
    + """
with trace("in a child"), agent_span("Child"):
    pass
"""
)
PARENT = f"""
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor

if sys.argv[5]:
    exec({WATCH!r})
context = multiprocessing.get_context("fork")
if sys.argv[4] == "process":
    child = context.Process(target=exec, args=({CHILD!r}, {{}}))
    child.start()
    child.join()
else:
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        executor.submit(exec, {CHILD!r}, {{}}).result()
os._exit(0)
"""


@pytest.mark.parametrize("is_watched_before", ["yes", ""])
@pytest.mark.parametrize("way", ["process", "executor"])
def test_a_child_of_multiprocessing_publishes_all_before_it_ends(
    tmp_path: Path, way: str, is_watched_before: str
) -> None:
    server = Storing()
    with answering(server.answer) as address:
        done = programs.run(["-c", PARENT, address, "t", str(tmp_path), way, is_watched_before], ENVIRONMENT)

    assert done.returncode == 0, done.stderr
    assert [message["payload"]["event"] for message in server.messages] == ["run.started", "run.done"]
