"""`streaming_runs`: from the making of an event to 100 readers, quiet and beside 300 runs that stream in the process.

Each of the runs says a piece of its answer every 50 ms, through the worker and the writer of the server. Target: p99 at
most twice that of the quiet server.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any

from tests.benchmarks import common

RUNS = 300
LOAD = (300, 100.0, 1)  # events, a second, a batch
ROUNDS = int(os.environ.get("ROUNDS", "4"))
EVERY = 0.05  # seconds between two pieces of an answer
WORD = "some words "


class StreamingRuns(threading.Thread):
    """A worker whose runs stream a piece every 50 ms until `close`."""

    def __init__(self, writer: Any) -> None:
        from agents import Agent, Model
        from openai.types.responses import ResponseTextDeltaEvent

        from agents_app.model_providers.providers import ModelConfig
        from agents_app.teams.definition import Team
        from agents_app.worker.worker import Worker

        super().__init__(name="worker", daemon=True)
        self.streaming = 0
        load = self

        class Endless(Model):
            async def get_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

            async def stream_response(self, *_: Any, **__: Any) -> Any:
                load.streaming += 1
                number = 0
                while True:
                    await asyncio.sleep(EVERY)
                    yield ResponseTextDeltaEvent(
                        type="response.output_text.delta", item_id="m", output_index=0, content_index=0, delta=WORD,
                        sequence_number=number, logprobs=[],
                    )  # fmt: skip
                    number += 1

        team = Team(name="bench", agents=[Agent(name="Clerk", model=Endless())], entry=["Clerk"])
        self._worker = Worker(writer, [team], config=ModelConfig(), per_team=RUNS, stop_s=1)

    def run(self) -> None:
        """Queue the runs, then work."""
        from agents_app.teams import agent_registry
        from tests.benchmarks.waiting_runs import queue

        agent_registry.register(self._worker.served_teams)
        queue(range(RUNS))
        asyncio.run(self._worker.run())

    def close(self) -> None:
        """End them all."""
        self._worker.stop()
        self.join(60)


def main() -> None:
    """Interleave quiet with streaming."""
    from tests.benchmarks.fanout import Bench

    bench = Bench("ours")
    got: dict[str, list[dict[str, float]]] = {"quiet": [], "runs": []}
    try:
        bench.deliver(*LOAD)  # warm-up
        for _ in range(ROUNDS):
            got["quiet"].append(bench.deliver(*LOAD))
            bench.ask(load="runs", on=1)
            got["runs"].append(bench.deliver(*LOAD))
            bench.ask(load="runs", on=0)
    finally:
        bench.stop()
    p50, p99 = ({name: common.median([r[q] for r in some]) for name, some in got.items()} for q in ("p50", "p99"))
    ratio = p99["runs"] / p99["quiet"]
    common.report(
        "streaming_runs", ratio=ratio, target="p99 <= 2 of quiet", met=ratio <= 2, p99_ms=p99["runs"],
        quiet_p99_ms=p99["quiet"], p50_ms=p50["runs"], quiet_p50_ms=p50["quiet"], runs=RUNS,
        pieces_s=round(RUNS / EVERY), readers=100, rounds=ROUNDS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
    common.tear_down()
