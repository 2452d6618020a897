"""`watch_agents(approve=True)`: calls of a program elsewhere, decided in the inbox of a real server."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.agent import AgentBase
from agents.tracing import set_trace_processors

from switchboard import HttpBus, agent_approvals
from switchboard.agent_watch import AgentWatch
from switchboard.api import Api
from switchboard.errors import Unreachable
from switchboard.http_bus import MAX_DECISION_WAIT_S
from switchboard.span_events import SpanEvents
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live import Server, until
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model


@pytest.fixture(scope="module")
def approver(served: Server) -> str:
    """The token of somebody who may decide."""
    return served.token(f"approver-{uuid4().hex[:6]}", "approver")


@pytest.fixture(scope="module")
def desk(served: Server) -> str:
    """The token of an agent."""
    return served.command("token", f"Desk{uuid4().hex[:6]}", "--role", "agent").strip().splitlines()[-1]


@pytest.fixture
def watch(
    served: Server, proxy: CuttingProxy, served_token: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AgentWatch]:
    """The SDK of this process, watched, and its approvals asked."""
    monkeypatch.setattr(AgentBase, "get_all_tools", AgentBase.get_all_tools)  # put back afterwards
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path, timeout_s=2) as bus:
        watch = AgentWatch(bus, SpanEvents())
        set_trace_processors([watch])  # type: ignore[list-item]  # it has the methods
        watch.ask_for_approvals()
        yield watch
        set_trace_processors([])
        proxy.be("there")
        watch.shutdown()


class Program:
    """A run of an agent with a dangerous tool, in a thread of its own."""

    def __init__(self, *paths: str) -> None:
        self.group, self.wiped, self.result = uuid4().hex, list[str](), list[Any]()
        self._steps = [call("wipe", {"path": path}, f"call_{path}") for path in paths or ("/a",)], [message("Done.")]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        @function_tool(needs_approval=True)
        def wipe(path: str) -> str:
            """Delete a file."""
            self.wiped.append(path)
            return f"gone: {path}"

        with served_apart(in_turn(*self._steps)) as server:
            agent = Agent("Cleaner", model=model(server), tools=[wipe])
            self.result.append(asyncio.run(Runner.run(agent, "clean up", run_config=RunConfig(group_id=self.group))))
            self.requests = server.requests

    def ended(self) -> Any:
        """Wait for the run's result."""
        self._thread.join(100)
        (result,) = self.result
        return result

    def outputs(self) -> list[str]:
        """Return what the model was told that its calls gave."""
        items = self.requests[-1].body["input"]
        return [item["output"] for item in items if item.get("type") == "function_call_output"]


def open_requests(served: Server, token: str, program: Program) -> list[dict[str, Any]]:
    """Return the open questions about a program's calls."""
    _, body = served.request("GET", "/api/v1/approvals?status=pending&limit=100", token=token)
    return [item for item in body["items"] if item["conversation_id"] == program.group]


def decide(served: Server, token: str, approval: str, decision: str, **more: Any) -> int:
    """Decide a question; return the status."""
    body = json.dumps({"decision": decision, **more}).encode()
    return served.request("POST", f"/api/v1/approvals/{approval}/decision", body, token)[0]


def open_request(served: Server, token: str, program: Program) -> str:
    """Wait for the one question of a program; return its id."""
    (item,) = until(lambda: open_requests(served, token, program), what="the approval request")
    return str(item["approval_id"])


DECISIONS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "approve": ({}, ["/a"], ["gone: /a"]),
    "edit": ({"arguments": {"path": "/b"}}, ["/b"], ["gone: /b"]),
    "reject": ({"message": "Not that one."}, [], ["Not that one."]),
    "respond": ({"output": "It is gone already."}, [], ["It is gone already."]),
}


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("decision", DECISIONS)
def test_run_waits_for_the_decision_and_goes_on_as_decided(
    served: Server, proxy: CuttingProxy, approver: str, decision: str
) -> None:
    more, wiped, outputs = DECISIONS[decision]
    proxy.be("there")
    program = Program()
    approval = open_request(served, approver, program)
    assert program.result == []

    assert decide(served, approver, approval, decision, **more) == 200

    assert program.ended().final_output == "Done."
    assert (program.wiped, program.outputs()) == (wiped, outputs)
    assert decide(served, approver, approval, "approve") == 409
    _, calls = served.request("GET", "/api/v1/tool-calls?limit=100", token=approver)
    made = until(lambda: [item for item in calls["items"] if item["conversation_id"] == program.group])
    assert [item["call_id"] for item in made] == ["call_/a"]


def test_call_is_asked_about_once_its_beginning_has_arrived(
    served: Server, proxy: CuttingProxy, approver: str, watch: AgentWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published is spooled at first: a question that overtook it would begin a second call of the same id."""
    publish, tries = Api.publish, itertools.count(1)

    def late(self: Api, lines: Sequence[bytes]) -> list[Any]:
        if any(b"tool_step" in line for line in lines) and next(tries) <= 3:
            raise Unreachable("not yet")
        return publish(self, lines)

    monkeypatch.setattr(Api, "publish", late)
    proxy.be("there")
    program = Program()

    assert decide(served, approver, open_request(served, approver, program), "reject", message="No.") == 200

    assert program.ended().final_output == "Done."
    assert isinstance(watch._bus, HttpBus)
    assert watch._bus.flush(60)
    _, calls = served.request("GET", "/api/v1/tool-calls?limit=100", token=approver)
    made = [item["call_id"] for item in calls["items"] if item["conversation_id"] == program.group]
    assert made == ["call_/a"]


@pytest.mark.usefixtures("watch")
def test_calls_at_once_are_asked_about_each(served: Server, proxy: CuttingProxy, approver: str) -> None:
    proxy.be("there")
    program = Program("/a", "/b", "/c")
    until(lambda: len(open_requests(served, approver, program)) == 3, what="three approval requests")

    for item in open_requests(served, approver, program):
        path = (
            json.loads(item["arguments"])["path"] if isinstance(item["arguments"], str) else item["arguments"]["path"]
        )
        assert decide(served, approver, item["approval_id"], "approve" if path != "/b" else "reject") == 200

    assert program.ended().final_output == "Done."
    assert sorted(program.wiped) == ["/a", "/c"]


@pytest.mark.usefixtures("watch")
def test_program_decides_by_itself_while_the_server_is_away(proxy: CuttingProxy) -> None:
    proxy.be("away")

    result = Program().ended()

    assert [item.name for item in result.interruptions] == ["wipe"]
    assert result.interruptions[0].arguments == '{"path": "/a"}'


@pytest.mark.slow
@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("is_asked", [False, True])
def test_program_decides_by_itself_within_its_bound_while_the_server_hangs(
    served: Server, proxy: CuttingProxy, approver: str, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    """The server takes the connection and never answers: from the first, or once the question is there."""
    monkeypatch.setattr(agent_approvals, "GIVE_UP_S", 3.0)
    proxy.be("there" if is_asked else "hanging")
    began = time.monotonic()
    program = Program()
    if is_asked:
        open_request(served, approver, program)
        began = time.monotonic()
        proxy.be("hanging")

    result = program.ended()

    bound = 3.0 + 2.0 + MAX_DECISION_WAIT_S * is_asked  # what is given up after, and the try that is under way then
    assert [item.name for item in result.interruptions] == ["wipe"]
    assert program.wiped == []
    assert time.monotonic() - began < 3 * bound


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once the program has an answer to its question: that it is open."""
    answered, ask = threading.Event(), HttpBus.ask_approval

    def note(self: HttpBus, *args: Any) -> dict[str, Any]:
        answer = ask(self, *args)
        answered.set()
        return answer

    monkeypatch.setattr(HttpBus, "ask_approval", note)
    return answered


@pytest.mark.usefixtures("watch")
def test_decision_of_while_the_line_was_cut_is_received(
    served: Server, proxy: CuttingProxy, approver: str, answered: threading.Event
) -> None:
    proxy.be("there")
    program = Program()
    approval = open_request(served, approver, program)
    assert answered.wait(60)
    proxy.be("away")
    assert decide(served, approver, approval, "approve") == 200
    assert program.result == []

    proxy.be("there")

    assert program.ended().final_output == "Done."
    assert program.wiped == ["/a"]
