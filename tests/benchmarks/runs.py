"""`runs`: CPU of a run with a tool call through the worker, against the bare SDK's; and what a token costs.

Both run 200 at a time, streamed, on the same scripted model; CPU is the whole process's (loop, writer, threads).
Python's threads take turns as in `runagents` (5 ms), and for `in_serve` as in `serve`, where nobody waits (0.1 ms).
Targets: at most 1.5 times the bare SDK's CPU per run; at most 50 µs CPU for a token's path.
"""

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable, Sequence

from tests.benchmarks import common

common.set_up()

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import assistant_message, function_call

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from agents_app.worker.worker import Worker
from conversations.core import principals
from conversations.events import commit_listeners, log, payload
from conversations.events.log.records import Stored
from conversations.models import Run
from dashboard.asgi import SWITCH_INTERVAL
from tests.support.agents_running import Scripted

RUNS = 200
ROUNDS = 9
TOKENS = 20_000
PYTHONS_OWN = 0.005  # seconds that a thread runs while others wait


@function_tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def agent() -> Agent:
    """Make the agent that both run: a tool call, then an answer."""
    steps = [[function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("It is five.")]]
    return Agent(name="Clerk", model=Scripted(lambda: steps), tools=[add])


def bare(prefix: str) -> float:
    """Run them by the SDK alone; return CPU seconds a run."""
    clerk = agent()

    async def run_of(words: str) -> None:
        result = Runner.run_streamed(clerk, words, run_config=RunConfig(tracing_disabled=True))
        async for _ in result.stream_events():
            pass

    async def all_() -> None:
        await asyncio.gather(*(run_of(f"{prefix} {n}") for n in range(RUNS)))

    began = time.process_time()
    asyncio.run(all_())
    return (time.process_time() - began) / RUNS


def ours(prefix: str) -> float:
    """Run them by a worker, from queued to done; return CPU seconds a run."""
    writer = log.WriterThreads()
    writer.start()
    worker = Worker(
        writer, [Team(name="bench", agents=[agent()], entry=["Clerk"])], config=ModelConfig(), per_team=RUNS
    )
    thread = threading.Thread(target=lambda: asyncio.run(worker.run()))
    from agents_app.teams import agent_registry

    agent_registry.register(worker.served_teams)
    for n in range(RUNS):
        key = f"{prefix}-{n}"
        body = json.dumps(
            {"type": "message", "conversation_id": key, "sender": "R", "recipient": "agent:Clerk", "content": key}
        )
        log.append(
            [log.from_bus(f"chat:{key}", None, body, payload.parse(body.encode()), principals.token_principal("b"))]
        )
    before = Run.objects.filter(status="done").count()
    are_done, forget = all_done()
    began = time.process_time()
    thread.start()
    are_done.wait()
    spent = (time.process_time() - began) / RUNS
    forget()
    worker.stop()
    thread.join()
    writer.close()
    assert Run.objects.filter(status="done").count() - before == RUNS
    return spent


def all_done() -> tuple[threading.Event, Callable[[], None]]:
    """Return what is set once all runs are done, and how to forget it. A thread that looked again and again would wait
    for its turn each time, and be counted."""
    are_done, left = threading.Event(), RUNS

    def count(stored: Sequence[Stored]) -> None:
        nonlocal left
        left -= sum(event.kind == "run.done" for event in stored)
        if left <= 0:
            are_done.set()

    return are_done, commit_listeners.on_committed(count)


def token_us() -> float:
    """Return the CPU of one token's path, from the model's piece to the committed segment, in µs."""
    from agents_app.worker.event_writer import RunEventWriter
    from conversations.runs.claims import Claim

    key = "tokens"
    Run.objects.filter(conversation__key=key).delete()
    claimed = Claim("no-run", 1, key, "Clerk", "agent", 1, None, None, None)
    writer = log.WriterThreads()
    writer.start()
    pen = RunEventWriter(claimed, writer)
    pen_facts = {"agent": "Clerk", "turn": 1}
    from conversations.models import Conversation

    log.append([log.from_internal(key, {"event": "conversation.opened", "id": "o"}, principals.SYSTEM)])
    payload = {"event": "run.queued", "id": "q", "run_id": "no-run", "agent": "Clerk", "input_seq": 1}
    log.append([log.from_internal(key, payload, principals.SYSTEM)])
    Run.objects.filter(id="no-run").update(status="running", attempt=1, conversation=Conversation.objects.get(key=key))
    began = time.process_time()
    for n in range(TOKENS):
        pen.token("word ", {**pen_facts, "index": n})
        if n % 50 == 0:
            time.sleep(0.005)
    writer.close()
    return (time.process_time() - began) / TOKENS * 1e6


def main() -> None:
    """Interleave and report."""
    sys.setswitchinterval(PYTHONS_OWN)
    bare("warm"), ours("warm")
    ratios, bares, oursx, served = [], [], [], []
    for round_ in range(ROUNDS):
        a, b = bare(f"bare {round_}"), ours(f"r{round_}")
        ratios.append(b / a)
        bares.append(a * 1000)
        oursx.append(b * 1000)
        sys.setswitchinterval(SWITCH_INTERVAL)
        served.append(ours(f"s{round_}") / a)
        sys.setswitchinterval(PYTHONS_OWN)
    ratio, token = common.median(ratios), token_us()
    common.report(
        "runs", ratio=ratio, target="<= 1.5 of the bare SDK, token <= 50 us", met=ratio <= 1.5 and token <= 50,
        bare_ms=round(common.median(bares), 2), ours_ms=round(common.median(oursx), 2), token_us=round(token, 1),
        in_serve=round(common.median(served), 3),
    )  # fmt: skip


if __name__ == "__main__":
    try:
        main()
    finally:
        common.tear_down()
