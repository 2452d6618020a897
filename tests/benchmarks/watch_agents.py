"""`watch_agents`: CPU of a program of the Agents SDK that is watched, against the same program bare.

Each run asks a scripted model server twice over HTTP and calls a tool. The model server and Switchboard are processes
of their own; CPU is the whole program's, the thread that publishes included, until all is with the server. Bare and
watched rounds take turns. Target: at most 1.05 times the bare program's CPU.
"""

import asyncio
import subprocess
import sys
import time

from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from agents.tracing import set_trace_processors
from openai import AsyncOpenAI

from switchboard import HttpBus
from switchboard.agent_watch import AgentWatch
from switchboard.span_events import SpanEvents
from tests.benchmarks import common
from tests.support.live import Server

RUNS, ROUNDS, WARM_UP = 40, 12, 2
PROVIDER = """
import threading
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn
steps = [call("add", {"a": 1, "b": 2}, "call_1")], [message("It is three, as far as anybody can tell. " * 20)]
with served_apart(in_turn(*steps)) as server:
    print(server.url, flush=True)
    threading.Event().wait()
"""


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def main() -> None:
    """Take turns; report the middle of the ratios."""
    server = Server(common.HOME / "data").start()
    provider = subprocess.Popen([sys.executable, "-c", PROVIDER], stdout=subprocess.PIPE, text=True)
    try:
        assert provider.stdout is not None
        url = provider.stdout.readline().strip()
        with HttpBus(server.url, server.token(), spool_dir=common.HOME / "spool") as bus:
            _measure(url, bus)
    finally:
        provider.kill()
        server.kill()
        common.tear_down()


def _measure(url: str, bus: HttpBus) -> None:
    watch = AgentWatch(bus, SpanEvents())
    figures: list[tuple[float, float]] = []
    for round_ in range(ROUNDS + WARM_UP):
        set_trace_processors([])
        bare = _cpu(url)
        set_trace_processors([watch])  # type: ignore[list-item]  # it has the methods
        watched = _cpu(url, watch)
        if round_ >= WARM_UP:
            figures.append((bare, watched))
    assert watch.lost == 0
    ratio = common.median(watched / bare for bare, watched in figures)
    bare_ms, watched_ms = (1000 * common.median(column) for column in zip(*figures, strict=True))
    common.report(
        "watch_agents", ratio=ratio, target="<= 1.05", met=ratio <= 1.05, runs=RUNS * ROUNDS,
        bare_cpu_ms_per_run=round(bare_ms, 2), watched_cpu_ms_per_run=round(watched_ms, 2),
    )  # fmt: skip


def _cpu(url: str, watch: AgentWatch | None = None) -> float:
    """Run the program; return its CPU seconds a run."""
    began = time.process_time()
    asyncio.run(_program(url))
    assert watch is None or watch.flush(60)
    return (time.process_time() - began) / RUNS


async def _program(url: str) -> None:
    async with AsyncOpenAI(base_url=url, api_key="none") as client:
        agent = Agent("Counter", model=OpenAIResponsesModel("gpt-test", client), tools=[add])
        for _ in range(RUNS):
            await Runner.run(agent, "what is 1 + 2?", run_config=RunConfig())


if __name__ == "__main__":
    main()
