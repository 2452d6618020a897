"""What `watch_agents` records of runs of the real Agents SDK that are cancelled, and of good runs beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from agents.tracing import agent_span, trace

from tests.client.test_watch_agents import IN, events, kinds
from tests.support.live import until
from tests.support.provider_answers import call, message
from tests.support.provider_server import Answer, Asked, served_apart
from tests.support.watched import in_turn, model, watched

CANCELLED = "It was cancelled (CancelledError)."
CALL = [call("wait", {}, "call_1")]


@function_tool
async def wait() -> str:
    """Wait until it is cancelled."""
    await asyncio.Event().wait()
    return "never"


async def with_timeout(agent: Agent[Any], is_due: Callable[[], bool]) -> None:
    """Run an agent, and cancel it as a timeout does."""
    run = asyncio.create_task(Runner.run(agent, "go", run_config=IN))
    await _cancelled_when(is_due, run)


async def streamed(agent: Agent[Any], is_due: Callable[[], bool]) -> None:
    """Stream a run, and cancel who reads it as a web client does that hangs up."""
    result = Runner.run_streamed(agent, "go", run_config=IN)

    async def read() -> None:
        async for _ in result.stream_events():
            pass

    await _cancelled_when(is_due, asyncio.create_task(read()))
    await asyncio.wait([result.run_loop_task] if result.run_loop_task else ())


async def _cancelled_when(is_due: Callable[[], bool], task: asyncio.Task[Any]) -> None:
    await asyncio.to_thread(until, is_due)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


Way = Callable[[Agent[Any], Callable[[], bool]], Coroutine[Any, Any, None]]


@pytest.mark.parametrize("way", [with_timeout, streamed])
def test_a_run_that_is_cancelled_in_a_call_has_failed_and_its_call_has_ended(way: Way) -> None:
    with served_apart(in_turn(CALL)) as server, watched() as (watch, bus):
        agent = Agent("Clerk", model=model(server), tools=[wait])

        asyncio.run(way(agent, lambda: any(m.payload.get("status") == "start" for m in bus.read("stream:g"))))

        recorded = events(watch, bus)
    ends = [event for event in recorded if event["event"] == "run.failed"]
    assert [(end["reason"], end["error"]) for end in ends] == [("cancelled", CANCELLED)]
    assert [event["error"] for event in recorded if event.get("status") == "error"] == [CANCELLED]
    assert "run.done" not in kinds(recorded)


def test_a_run_that_is_cancelled_while_its_model_answers_has_failed() -> None:
    requests = []

    def never(_n: int, request: Asked) -> Answer:
        requests.append(request)
        return Answer(kind="application/json", end="silent")

    with served_apart(never) as server, watched() as (watch, bus):
        asyncio.run(with_timeout(Agent("Clerk", model=model(server)), lambda: bool(requests)))

        recorded = events(watch, bus)
    assert [event.get("error") for event in recorded if event["event"] == "model.call"] == [CANCELLED]
    assert (recorded[-1]["event"], recorded[-1]["reason"]) == ("run.failed", "cancelled")


def test_a_run_that_the_keyboard_interrupts_has_failed() -> None:
    with watched() as (watch, bus):
        with pytest.raises(KeyboardInterrupt), trace("t", group_id="g"), agent_span("Clerk"):
            raise KeyboardInterrupt

        recorded = events(watch, bus)
    assert [event.get("reason") for event in recorded] == [None, "cancelled"]
    assert recorded[-1]["error"] == "It was cancelled (KeyboardInterrupt)."


def test_a_run_whose_loop_is_gone_has_failed() -> None:
    async def leave() -> None:
        run = Runner.run(Agent("Clerk", model=model(server)), "go", run_config=IN)
        run.send(None)
        run.close()  # as a coroutine that nobody awaits any longer ends

    with served_apart(lambda _n, _request: None) as server, watched() as (watch, bus):
        asyncio.run(leave())

        recorded = events(watch, bus)
    assert (recorded[-1]["event"], recorded[-1].get("reason")) == ("run.failed", "cancelled")


def test_a_run_in_the_handler_of_a_cancellation_is_done() -> None:
    async def tidied() -> None:
        try:
            raise asyncio.CancelledError
        except asyncio.CancelledError:
            await Runner.run(agent, "tidy up", run_config=IN)

    with served_apart(in_turn([message("Tidy.")])) as server, watched() as (watch, bus):
        agent = Agent("Clerk", model=model(server))
        asyncio.run(tidied())

        recorded = events(watch, bus)
    assert kinds(recorded) == ["run.started", "user_message", "model.call", "output", "run.done"]
    assert not any("error" in event for event in recorded)
