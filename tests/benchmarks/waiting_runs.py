"""`waiting_runs`: memory of 2,000 runs of one worker that all wait at the same time, against the bare SDK's.

Half of them wait for their model's first word, the others inside a tool that their model called. Each is measured in a
process of its own: what it has resident with all of them waiting, less what it had with one. Target: at most 1 MB each.
`RUNS` changes how many.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import common

RUNS = int(os.environ.get("RUNS", "2000"))
WITHIN = 300.0  # seconds for all of them to wait
PAGE = os.sysconf("SC_PAGE_SIZE")


class Waiting:
    """Counts who waits, until all are let go."""

    def __init__(self) -> None:
        self.count = 0
        self.over = asyncio.Event()

    async def wait(self) -> None:
        """Wait with the others."""
        self.count += 1
        await self.over.wait()


def agent_of(waiting: Waiting) -> Any:
    """Return an agent each second of whose runs waits inside a tool, the others for their model."""
    from agents import Agent, Model, function_tool
    from agents.testing import ScriptedModel, function_call

    @function_tool
    async def wait() -> str:
        """Wait."""
        await waiting.wait()
        return "over"

    class Slow(Model):
        def __init__(self) -> None:
            self.requests = 0

        async def get_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream_response(self, *given: Any, **more: Any) -> Any:
            self.requests += 1
            if self.requests % 2:
                await waiting.wait()
            async for event in ScriptedModel([[function_call("wait", {}, call_id="c1")]]).stream_response(
                *given, **more
            ):
                yield event

    return Agent(name="Clerk", model=Slow(), tools=[wait])


def resident() -> int:
    """Return the bytes that this process has resident, without what is free."""
    from dashboard.server import memory_allocator

    gc.collect()
    memory_allocator.give_back_freed()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


async def until_waiting(waiting: Waiting, count: int) -> None:
    """Return once so many wait."""
    async with asyncio.timeout(WITHIN):
        while waiting.count < count:
            await asyncio.sleep(0.05)


async def bare() -> None:
    """Have the SDK alone run them."""
    from agents import RunConfig, Runner

    waiting, config = Waiting(), RunConfig(tracing_disabled=True)
    agent = agent_of(waiting)

    async def run_of(words: str) -> None:
        result = Runner.run_streamed(agent, words, run_config=config)
        async for _ in result.stream_events():
            pass

    tasks = [asyncio.create_task(run_of("hello 0")), asyncio.create_task(run_of("hello 1"))]
    await until_waiting(waiting, 2)
    before = resident()
    tasks += [asyncio.create_task(run_of(f"hello {n}")) for n in range(2, RUNS)]
    await until_waiting(waiting, RUNS)
    print(json.dumps({"bytes": (resident() - before) / (RUNS - 2)}), flush=True)
    os._exit(0)


async def ours() -> None:
    """Have a worker run them, from queued on."""
    from agents_app.model_providers.providers import ModelConfig
    from agents_app.teams import agent_registry
    from agents_app.teams.definition import Team
    from agents_app.worker.worker import Worker
    from conversations.events import log

    waiting, writer = Waiting(), log.WriterThreads()
    writer.start()
    team = Team(name="bench", agents=[agent_of(waiting)], entry=["Clerk"])
    worker = Worker(writer, [team], config=ModelConfig(), per_team=RUNS)
    await asyncio.to_thread(agent_registry.register, worker.served_teams)
    await asyncio.to_thread(queue, range(2))
    task = asyncio.create_task(worker.run())
    await until_waiting(waiting, 2)
    before = resident()
    began = time.monotonic()
    await asyncio.to_thread(queue, range(2, RUNS))
    await until_waiting(waiting, RUNS)
    took = time.monotonic() - began
    lag = await _worst_lag(5.0)
    size = (resident() - before) / (RUNS - 2)
    figures = {"bytes": size, "started_s": round(took, 1), "lag_ms": round(lag * 1000, 1), "is_alive": not task.done()}
    print(json.dumps(figures | {"threads": threading.active_count()}), flush=True)
    os._exit(0)


async def _worst_lag(seconds: float) -> float:
    """Return by how much the loop was late at worst while they wait: leases are renewed meanwhile."""
    worst, until = 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        await asyncio.sleep(0.01)
        worst = max(worst, time.monotonic() - began - 0.01)
    return worst


def queue(numbers: range) -> None:
    """Queue a run in each of so many conversations."""
    from conversations.core import principals
    from conversations.events import log, payload

    by = principals.token_principal("bench")
    for at in range(numbers.start, numbers.stop, 100):
        events = []
        for n in range(at, min(at + 100, numbers.stop)):
            message = {"type": "message", "conversation_id": f"c{n}", "sender": "R", "recipient": "agent:Clerk"}
            body = json.dumps(message | {"content": f"hello {n}"})
            events.append(log.from_bus(f"chat:c{n}", None, body, payload.parse(body.encode()), by))
        log.append(events)


def main() -> None:
    """Measure each in its own process, and report."""
    got = {}
    for kind in ("bare", "ours"):
        command = [sys.executable, "-m", "tests.benchmarks.waiting_runs", kind]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * WITHIN, check=True)
        got[kind] = json.loads(done.stdout.splitlines()[-1])
    mine, theirs = got["ours"], got["bare"]
    mb = mine.pop("bytes") / 1e6
    common.report(
        "waiting_runs", ratio=mb / (theirs["bytes"] / 1e6), target="<= 1 MB a waiting run", met=mb <= 1,
        mb_each=round(mb, 4), bare_mb_each=round(theirs["bytes"] / 1e6, 4), runs=RUNS, **mine,
    )  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:]:
        common.set_up()
        try:
            asyncio.run({"bare": bare, "ours": ours}[sys.argv[1]]())
        finally:
            common.tear_down()
    else:
        main()
        common.tear_down()
