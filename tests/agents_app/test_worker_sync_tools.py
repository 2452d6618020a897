"""Synchronous tools that do not return: other runs go on, and the worker ends."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from agents import Agent, FunctionTool, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import Team
from conversations.models import Run, ToolCall
from tests.support.agents_running import Scripted, ended_runs, send_message, working
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
HANGING = 8  # more than a worker's connections for tools


@pytest.fixture
def hang() -> Iterator[FunctionTool]:
    """A tool that returns when the test is over."""
    is_over = threading.Event()

    @function_tool
    def hang() -> str:
        """Hang."""
        is_over.wait(60)
        return "over"

    yield hang
    is_over.set()


def executing(count: int) -> bool:
    return ToolCall.objects.filter(name="hang", status="executing").count() == count


def test_tools_that_hang_hold_up_neither_another_tool_nor_a_look_up(hang):
    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    clerk = Agent(name="Clerk", model=Scripted(lambda: [[function_call("hang", {}, call_id="h")]]), tools=[hang])
    script = [[function_call("look", {}, call_id="l")], [assistant_message("Done.")]]
    porter = Agent(name="Porter", model=ScriptedModel(script), tools=[look])
    with working(Team(name="test", agents=[clerk, porter], entry=["Clerk", "Porter"]), stop_s=0) as worker:
        for n in range(HANGING):
            send_message(f"hello {n}", key=f"c{n}")
        until(lambda: executing(HANGING), within=30, what="all of them to hang")

        send_message(key="quick", to="agent:Porter")

        (run,) = ended_runs(within=30)
        assert (run.agent, run.status) == ("Porter", "done")
        address = asyncio.run_coroutine_threadsafe(worker._loop.getaddrinfo("localhost", 80), worker._loop)
        assert address.result(30)


def test_a_worker_ends_although_a_tool_hangs(hang):
    clerk = Agent(name="Clerk", model=ScriptedModel([[function_call("hang", {}, call_id="h")]]), tools=[hang])
    with working(Team(name="test", agents=[clerk], entry=["Clerk"]), stop_s=0):
        send_message()
        until(lambda: executing(1), what="it to hang")
        began = time.monotonic()

    assert time.monotonic() - began < 20
    assert Run.objects.get().status == "cancelled"
