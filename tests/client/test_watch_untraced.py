"""`watch_agents` in a program whose tracing is disabled: nothing can be recorded, and the log says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.agent import AgentBase
from agents.tracing import set_trace_processors

from switchboard import HttpBus, InMemoryBus, watch_agents
from switchboard import agent_watch as module
from tests.support.live import free_port
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin and end without a watch."""
    monkeypatch.setattr(module, "_current", None)
    monkeypatch.setattr(AgentBase, "get_all_tools", AgentBase.get_all_tools)  # put back afterwards
    yield
    set_trace_processors([])
    set_tracing_disabled(False)


def clean_up(**config: Any) -> Any:
    """Run an agent that calls a tool twice that needs an approval; return its result."""

    @function_tool(needs_approval=True)
    def wipe(path: str) -> str:
        """Delete a file."""
        return f"gone: {path}"

    calls = [call("wipe", {"path": "/a"}, "call_a"), call("wipe", {"path": "/b"}, "call_b")]
    with served_apart(in_turn(calls, [message("Done.")])) as server:
        agent = Agent("Cleaner", model=model(server), tools=[wipe])
        return asyncio.run(Runner.run(agent, "clean up", run_config=RunConfig(**config)))


@pytest.mark.parametrize("is_disabled", [True, False])
def test_disabled_tracing_is_logged(caplog: pytest.LogCaptureFixture, is_disabled: bool) -> None:
    set_tracing_disabled(is_disabled)

    watch_agents(bus=InMemoryBus())

    assert caplog.text.count("tracing of the OpenAI Agents SDK is disabled") == is_disabled


def test_approvals_that_are_not_requested_of_an_untraced_run_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bus = HttpBus(f"http://127.0.0.1:{free_port()}", "sb_x")
    watch_agents(bus=bus, approve=True)

    result = clean_up(tracing_disabled=True)

    assert len(result.interruptions) == 2
    assert caplog.text.count("so the program decides by itself: the call is not traced") == 1
    bus.close(0)
