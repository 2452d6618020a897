"""The servers of `responses`, each a process: `python -m tests.benchmarks.response_servers KIND PORT FILE`.

`ours`: the whole application, with a stand-in for the worker that writes as the worker does; `served`: with the worker
itself, in a thread as in `serve`; `bare`: sends the recorded frames of FILE; `sdk`: runs the bare Agents SDK in each
request and sends a frame for each delta. The model of `served` and `sdk` has its DELTAS pieces ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks import common

DELTAS = int(os.environ.get("DELTAS", "200"))
WORD = "some words "
MODEL = "Stand-in"


def ours(port: int) -> None:
    """Our application and a stand-in for the worker."""
    common.set_up()
    from dashboard.asgi import application
    from tests.support import stand_in

    stand_in.register()
    StandIn(application.runtime.writer).start()
    _serve_ours(port)


def served(port: int) -> None:
    """Our application and the worker."""
    common.set_up()
    from agents_app.model_providers.providers import ModelConfig
    from agents_app.teams.definition import Team
    from agents_app.worker.worker import Worker
    from dashboard.asgi import application

    team = Team(name="bench", agents=[_agent()], entry=[MODEL])
    worker = Worker(application.runtime.writer, [team], config=ModelConfig(), per_team=100)

    def work() -> None:
        while not application.runtime.is_ready:
            time.sleep(0.05)
        asyncio.run(worker.run())

    threading.Thread(target=work, name="worker", daemon=True).start()
    _serve_ours(port, worker.registered)


def _serve_ours(port: int, is_served: threading.Event | None = None) -> None:
    """Serve, with `/bench/` in front: the CPU seconds of each thread, once agents are served."""
    from conversations.models import Token
    from dashboard.asgi import application
    from tests.benchmarks.server import _answer, _digest, serve

    Token.objects.create(name="bench", role="operator", digest=_digest("bench"), created_by="system")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") != "/bench/":
            await application(scope, receive, send)
            return
        if is_served is not None:
            await asyncio.to_thread(is_served.wait, 30)
        await _answer(send, _cpu_by_thread())

    serve(port, app)


def _cpu_by_thread() -> dict[str, float]:
    """Return the CPU seconds of the process's threads, those of a pool together."""
    seconds: Counter[str] = Counter()
    for thread in threading.enumerate():
        if thread.native_id is None:  # it begins
            continue
        stat = Path(f"/proc/self/task/{thread.native_id}/schedstat")
        seconds[thread.name.rstrip("0123456789").rstrip("_-")] += int(stat.read_text().split()[0]) / 1e9
    return dict(seconds)


class StandIn(threading.Thread):
    """Answers whatever is queued, and writes through the writer of runs as the worker does."""

    def __init__(self, writer: Any) -> None:
        super().__init__(name="worker", daemon=True)
        self._writer = writer

    def run(self) -> None:
        """Answer for ever."""
        asyncio.run(self._work())

    async def _work(self) -> None:
        from conversations.core.db_threads import DatabaseThreads
        from conversations.events import commit_listeners
        from conversations.runs import claims
        from tests.support import stand_in
        from tests.support.claiming import served_agents

        agents = served_agents(stand_in.TEAM, MODEL)
        news, threads, loop = asyncio.Event(), DatabaseThreads("runs"), asyncio.get_running_loop()

        def hear(stored: Any) -> None:
            if any(event.kind == "run.queued" for event in stored):
                loop.call_soon_threadsafe(news.set)

        commit_listeners.on_committed(hear)
        answering: set[asyncio.Task[None]] = set()
        while True:
            news.clear()
            for claim in await threads.run(partial(claims.claim, "bench", agents, at_most=32)):
                task = asyncio.create_task(self._answer(claim))
                answering.add(task)
                task.add_done_callback(answering.discard)
            await news.wait()

    async def _answer(self, claim: Any) -> None:
        from agents_app.worker.event_writer import RunEventWriter

        pen = RunEventWriter(claim, self._writer)
        pen.keeps_lengths = True
        for index in range(DELTAS):
            if not pen.add_piece(1, WORD):
                pen.token(WORD, {"agent": claim.agent, "turn": 1, "index": index})
        await pen.store({"event": "output", "turn": 1, "text": WORD * DELTAS, "final": True})
        await pen.store(_completed(claim.conversation), {"event": "run.done"})


def _completed(response: str) -> dict[str, Any]:
    """Return the end of a response that began its conversation, whose id it shares."""
    from conversations.events.response_ids import message_item_id
    from tests.support.stand_in import USAGE

    part = {"type": "output_text", "text": WORD * DELTAS, "annotations": [], "logprobs": []}
    item = {"type": "message", "id": message_item_id(response, 1), "status": "completed", "role": "assistant"}
    payload = {"event": "response.completed", "response_id": response, "status": "completed", "usage": USAGE}
    more = {"output": [item | {"content": [part]}], "error": None, "incomplete_details": None, "model": "stand-in"}
    return payload | more


def _agent() -> Any:
    """Return an agent whose model has its answer ready."""
    from agents import Agent, Model
    from openai.types import responses as types

    part = types.ResponseOutputText(type="output_text", text=WORD * DELTAS, annotations=[])
    message = types.ResponseOutputMessage(
        id="msg", type="message", role="assistant", status="completed", content=[part]
    )
    usage = {"input_tokens": 12, "output_tokens": 200, "total_tokens": 212}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole = types.Response.model_validate({
        "id": "resp", "object": "response", "created_at": 0, "model": MODEL, "output": [message], "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": True, "usage": usage | details, "status": "completed",
    })  # fmt: skip
    deltas = [
        types.ResponseTextDeltaEvent(
            type="response.output_text.delta", item_id="msg", output_index=0, content_index=0, delta=WORD,
            sequence_number=n, logprobs=[],
        )
        for n in range(DELTAS)
    ]  # fmt: skip
    end = types.ResponseCompletedEvent(type="response.completed", response=whole, sequence_number=DELTAS)

    class Ready(Model):
        async def get_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

        async def stream_response(self, *_: Any, **__: Any) -> Any:
            for delta in deltas:
                yield delta
            yield end

    return Agent(name=MODEL, model=Ready())


def sdk(port: int) -> None:
    """The bare SDK: no record, no worker."""
    from agents import RunConfig, Runner

    agent, config = _agent(), RunConfig(tracing_disabled=True)

    async def answer(send: Any) -> None:
        result = Runner.run_streamed(agent, "What is to be done on Elm Street?", run_config=config)
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                body = f"event: {event.data.type}\ndata: {event.data.model_dump_json()}\n\n".encode()
                await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})

    _serve_bare(port, answer)


def bare(port: int, frames: str) -> None:
    """Send recorded frames, whatever is asked."""
    bodies = [frame.encode() for frame in json.loads(Path(frames).read_text())]

    async def answer(send: Any) -> None:
        for body in bodies[:-1]:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": bodies[-1], "more_body": False})

    _serve_bare(port, answer)


def _serve_bare(port: int, answer: Any) -> None:
    from tests.benchmarks.server import serve

    headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await answer(send)

    serve(port, app)


if __name__ == "__main__":
    kind, port, *file = sys.argv[1:]
    {"ours": ours, "served": served, "sdk": sdk, "bare": bare}[kind](int(port), *file)
