"""`watch_agents(approve=True)`: the wait for a decision is no part of a call's duration, and what keeps an approval
from being requested is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.agent import AgentBase
from agents.testing import ScriptedModel, assistant_message, function_call
from agents.tracing import set_trace_processors

from switchboard import agent_watch
from switchboard.agent_watch import AgentWatch
from switchboard.span_events import SpanEvents
from tests.client.test_calls_of_one_id import DecidingBus
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model

WAIT_S = 300.0


class SlowBus(DecidingBus):
    """A bus whose decisions take five minutes of `now`."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.events = 1_750_000_000.0, list[dict[str, Any]]()

    def publish_all(self, messages: Any, *, is_kept: bool = False) -> list[BaseException | None]:
        """Keep what is published."""
        self.events += [message.payload for message in messages]
        return super().publish_all(messages, is_kept=is_kept)

    def ask_approval(self, call: Any, wait_s: float) -> dict[str, Any]:
        """Approve, after a while."""
        self.now += WAIT_S
        return super().ask_approval(call, wait_s)


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> SlowBus:
    bus = SlowBus()
    monkeypatch.setattr(agent_watch, "time", SimpleNamespace(time=lambda: bus.now))
    return bus


@pytest.fixture
def watch(bus: SlowBus, monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentWatch]:
    monkeypatch.setattr(AgentBase, "get_all_tools", AgentBase.get_all_tools)  # put back afterwards
    watch = AgentWatch(bus, SpanEvents())
    set_trace_processors([watch])  # type: ignore[list-item]  # it has the methods
    watch.ask_for_approvals()
    yield watch
    set_trace_processors([])
    watch.shutdown()


@function_tool(needs_approval=True)
def wipe(path: str) -> str:
    """Delete a file."""
    return f"gone: {path}"


def test_the_wait_for_a_decision_is_no_part_of_a_calls_duration(bus: SlowBus, watch: AgentWatch) -> None:
    with served_apart(in_turn([call("wipe", {"path": "/b"}, "c1")], [message("Done.")])) as server:
        asyncio.run(Runner.run(Agent("Cleaner", model=model(server), tools=[wipe]), "clean up"))
    assert watch.flush()

    (end,) = (event for event in bus.events if event["event"] == "tool_step" and event["status"] == "success")
    assert (end["tool_call_id"], end["duration_ms"]) == ("c1", 0.0)
    (run,) = (event for event in bus.events if event["event"] == "run.done")
    assert run["duration_ms"] == WAIT_S * 1000


@pytest.mark.usefixtures("watch")
def test_a_model_that_records_no_span_is_named_as_the_reason(bus: SlowBus, caplog: pytest.LogCaptureFixture) -> None:
    steps = [[function_call("wipe", {"path": "/b"}, call_id="c1")], [assistant_message("Done.")]]

    result = asyncio.run(Runner.run(Agent("Cleaner", model=ScriptedModel(steps), tools=[wipe]), "clean up"))

    assert [json.loads(item.arguments) for item in result.interruptions] == [{"path": "/b"}]
    assert bus.requested == []
    assert "of wipe, so the program decides by itself: its model records no generation or response span" in caplog.text
