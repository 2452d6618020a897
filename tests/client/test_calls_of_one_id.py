"""`watch_agents(approve=True)`: calls of one trace that share an id, as of a model server that numbers calls anew, each
have the decision about their own tool and arguments."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, Runner, function_tool, trace
from agents.agent import AgentBase
from agents.tracing import set_trace_processors

from switchboard import HttpBus
from switchboard.agent_approvals import REJECTED, Approvals, RequestedCall
from switchboard.agent_watch import AgentWatch
from switchboard.span_events import SpanEvents
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model


class DecidingBus(HttpBus):
    """A bus to a server where every deletion of `/a` is rejected, and all else approved."""

    def __init__(self) -> None:
        self.requested: list[str] = []  # the paths

    def of_this_process(self) -> DecidingBus:
        """Return this bus."""
        return self

    def publish_all(self, messages: Any, *, is_kept: bool = False) -> list[BaseException | None]:
        """Accept all."""
        return [None for _ in messages]

    def require_delivered(self, timeout_s: float) -> None:
        """Return: everything is delivered at once."""

    def ask_approval(self, call: Any, wait_s: float) -> dict[str, Any]:
        """Return the decision about the path."""
        path = json.loads(call["args_raw"])["path"]
        self.requested.append(path)
        return {"status": "decided", "decision": "reject" if path == "/a" else "approve"}

    def close(self) -> None:
        """Do nothing: there is no connection."""


class Deletion:
    """A tool that needs approval, and the paths that it was called with."""

    def __init__(self) -> None:
        self.name, self.needs_approval, self.paths = "wipe", True, list[str]()

    async def on_invoke_tool(self, context: Any, arguments: str) -> str:
        """Delete a path."""
        self.paths.append(json.loads(arguments)["path"])
        return "gone"


def taken_over(*paths: str) -> tuple[Deletion, DecidingBus]:
    """Return a tool whose approvals are requested from the bus, for calls with these paths one after the other."""
    tool, bus, asked_about = Deletion(), DecidingBus(), iter(paths)

    def describe(*_: Any) -> RequestedCall:
        return RequestedCall("c", "Cleaner", "wipe", "call_0", json.dumps({"path": next(asked_about)}))

    Approvals(lambda: bus, describe, lambda *_: None)._take_over(tool)
    return tool, bus


@pytest.mark.parametrize("paths", [("/a", "/b"), ("/b", "/a")])
def test_decision_is_applied_to_the_call_with_its_arguments(paths: tuple[str, str]) -> None:
    tool, bus = taken_over(*paths)
    context = SimpleNamespace(tool_call_id="call_0")

    async def ask_about_both_and_call_both() -> list[str]:
        needs: Any = tool.needs_approval
        assert [await needs(context, {"path": path}, "call_0") for path in paths] == [False, False]
        return [await tool.on_invoke_tool(context, json.dumps({"path": path}, indent=1)) for path in paths]

    with trace("clean up"):
        outputs = asyncio.run(ask_about_both_and_call_both())

    assert bus.requested == list(paths)
    assert dict(zip(paths, outputs, strict=True)) == {"/a": REJECTED, "/b": "gone"}
    assert tool.paths == ["/b"]


def test_identical_calls_at_once_are_both_rejected() -> None:
    tool, _ = taken_over("/a", "/a")
    context = SimpleNamespace(tool_call_id="call_0")

    async def ask_about_both_and_call_both() -> list[str]:
        needs: Any = tool.needs_approval
        assert not any([await needs(context, {"path": "/a"}, "call_0") for _ in range(2)])
        return [await tool.on_invoke_tool(context, '{"path": "/a"}') for _ in range(2)]

    with trace("clean up"):
        assert asyncio.run(ask_about_both_and_call_both()) == [REJECTED, REJECTED]
    assert tool.paths == []


def test_calls_of_two_runs_of_a_trace_are_described_by_their_own_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentBase, "get_all_tools", AgentBase.get_all_tools)  # put back afterwards
    bus, wiped = DecidingBus(), list[str]()
    watch = AgentWatch(bus, SpanEvents())
    set_trace_processors([watch])  # type: ignore[list-item]  # it has the methods
    watch.ask_for_approvals()

    @function_tool(needs_approval=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        wiped.append(path)
        return f"gone: {path}"

    async def run_both() -> list[Any]:
        agents = (Agent("Cleaner", model=model(server), tools=[wipe]) for server in servers)
        with trace("clean up"):
            return await asyncio.gather(*(Runner.run(agent, "clean up") for agent in agents))

    with ExitStack() as stack:
        scripts = [in_turn([call("wipe", {"path": path}, "call_0")], [message("Done.")]) for path in ("/a", "/b")]
        servers = [stack.enter_context(served_apart(script)) for script in scripts]
        results = asyncio.run(run_both())
    set_trace_processors([])

    assert [result.final_output for result in results] == ["Done."] * 2
    assert (sorted(bus.requested), wiped) == (["/a", "/b"], ["/b"])
