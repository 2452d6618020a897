"""`otlp`: spans a second through `POST /v1/traces` in batches of 512, beside `ingest` by 1,000 and beside a bare ASGI
app that decodes the same bodies and stores nothing, as a collector does. All three are interleaved.

A batch is of traces as an agent framework exports them: a run, three answers of its model with a growing history, three
tool calls, one span of an HTTP client. Target: at least 0.5 spans for an event of `ingest`; `by_cpu`:
the same by the server's CPU, which other work on the machine changes less.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from typing import Any

import uvloop

from tests.benchmarks import common
from tests.benchmarks.ingest import CASES, Place, published
from tests.benchmarks.publisher import WORDS, Client
from tests.support.live import free_port, until
from tests.support.otlp import span, traces

ROUNDS = int(os.environ.get("ROUNDS", "3"))
CONNECTIONS, BATCH, N = 4, 512, 40_960
IN_A_TRACE = 8


def trace(number: int) -> list[Any]:
    """Make the spans of one trace."""
    conversation = {"gen_ai.conversation.id": f"c{number % 50}"}
    history, made = [history_message("user", f"{number} {WORDS}")], []
    model = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5-mini"}
    model |= {"gen_ai.usage.input_tokens": 97, "gen_ai.usage.output_tokens": 52, "gen_ai.request.temperature": 0.5}
    for turn in range(3):
        answer = history_message("assistant", f"{number} {turn} {WORDS}")
        messages = {"gen_ai.input.messages": json.dumps(history), "gen_ai.output.messages": json.dumps([answer])}
        made.append(span("chat", {**model, **messages, **conversation}, trace=number, number=turn + 2, parent=1))
        history = [*history, answer]
        tool = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look_up",
            "gen_ai.tool.call.result": WORDS,
        }
        tool |= {"gen_ai.tool.call.id": f"call_{number:012}_{turn}", "gen_ai.tool.call.arguments": '{"city": "Paris"}'}
        made.append(span("execute_tool", {**tool, **conversation}, trace=number, number=turn + 5, parent=1))
    made.append(span("GET", {"http.request.method": "GET", "server.address": "x"}, trace=number, number=8, parent=1))
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"A{number % 7}"}
    return [*made, span("invoke_agent", {**agent, **conversation}, trace=number, number=1)]


def history_message(role: str, text: str) -> dict[str, Any]:
    """Make a message of a history."""
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def bodies(first: int, n: int) -> list[bytes]:
    """Write the requests of one connection."""
    per_batch = BATCH // IN_A_TRACE
    numbers = range(first, first + n // IN_A_TRACE)
    return [
        traces(*(s for number in numbers[at : at + per_batch] for s in trace(number)), scope="pydantic-ai")
        for at in range(0, len(numbers), per_batch)
    ]


async def send(port: int, token: str, n: int, first: int) -> None:
    """Send so many spans over all connections; say how long it took."""
    head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
    head += "content-type: application/x-protobuf\r\n"
    share = n // CONNECTIONS
    waits: list[float] = []
    some = [bodies(first + c * share, share) for c in range(CONNECTIONS)]
    clients = [Client(head.encode(), each, waits) for each in some]
    loop = asyncio.get_running_loop()
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)
    start = time.perf_counter()
    for client in clients:
        client.next()
    await asyncio.gather(*(client.done for client in clients))
    figures = {"seconds": time.perf_counter() - start, "failed": sum(client.failed for client in clients)}
    print(json.dumps(figures))


def sent(port: int, token: str, pid: int) -> tuple[float, float]:
    """Send from a process of its own, after a warm-up; answer spans/s, and the receiver's CPU µs a span."""
    before = 0.0
    for n, first in ((CONNECTIONS * BATCH, 1 << 30), (N, 1)):
        before = common.cpu_of(pid)
        command = [sys.executable, "-m", "tests.benchmarks.otlp", "send", str(port), token, str(n), str(first)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        body = json.loads(done.stdout)
        assert not body["failed"], body
    return N / body["seconds"], (common.cpu_of(pid) - before) / N * 1e6


async def bare(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Decode what comes, and store nothing."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    request = ExportTraceServiceRequest.FromString(body)
    for part in request.resource_spans[0].scope_spans if request.resource_spans else ():
        for each in part.spans:
            {pair.key: pair.value.string_value for pair in each.attributes}
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def of_bare() -> float:
    """Measure the bare app."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.otlp", "bare", str(port)])
    try:
        until(lambda: _answers(port), within=60)
        return sent(port, "x", process.pid)[0]
    finally:
        process.terminate()
        process.wait()


def _answers(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main() -> None:
    """Interleave the three."""
    ours, events, bares, span_us, event_us = [], [], [], [], []
    for _ in range(ROUNDS):
        with Place(None).server() as server:
            assert server.process is not None
            rate, us = sent(server.port, server.token(), server.process.pid)
            ours.append(rate)
            span_us.append(us)
        with Place(None).server() as server:
            figures = published(server, CASES["batch-1000"])
            events.append(figures["rate"])
            event_us.append(figures["us"])
        bares.append(of_bare())
    rate, ingest, collector = map(common.median, (ours, events, bares))
    common.report(
        "otlp", ratio=rate / ingest, target=">= 0.5 of ingest by 1,000", met=rate / ingest >= 0.5, spans_s=round(rate),
        ingest_events_s=round(ingest), bare_spans_s=round(collector), of_bare=round(rate / collector, 3), rounds=ROUNDS,
        cpu_us_per_span=round(common.median(span_us)), cpu_us_per_event=round(common.median(event_us)),
        by_cpu=round(common.median(event_us) / common.median(span_us), 3),
    )  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send", port, token, n, first]:
            uvloop.run(send(int(port), token, int(n), int(first)))
        case ["bare", port]:
            import uvicorn

            uvicorn.run(bare, host="127.0.0.1", port=int(port), log_level="error", loop="uvloop", http="httptools")
        case _:
            main()
            common.tear_down()
