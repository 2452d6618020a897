"""`responses`: streamed answers a second, and CPU an answer, against a bare ASGI app that sends the very same frames.

Ours is the whole application under `serve`'s own uvicorn, with a stand-in worker in a thread of that process: a request
is stored, queued, claimed, answered by DELTAS pieces of text and stored again, all in SQLite. `door_us` leaves the
worker's and the writing of its events out. The bare app reads the request and sends the frames that ours was seen to
send, each one write. Ours and bare are interleaved. Target: at least 0.3 of the bare app's answers a second.

`SECONDS_EACH`, `CONNECTIONS`, `DELTAS` and `ROUNDS` change a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.benchmarks import common
from tests.support.live import free_port

ROUNDS = int(os.environ.get("ROUNDS", "3"))
CONNECTIONS = int(os.environ.get("CONNECTIONS", "16"))
DELTAS = int(os.environ.get("DELTAS", "200"))
SECONDS_EACH = float(os.environ.get("SECONDS_EACH", "5"))
WORD = "some words "
BODY = json.dumps({"model": "Stand-in", "input": "What is to be done on Elm Street?", "stream": True}).encode()
REQUEST = (
    b"POST /v1/responses HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(BODY)
) + BODY
END = b"0\r\n\r\n"


# The servers.


def ours(port: int, _: str) -> None:
    """Our application and a worker, with `/bench/` in front: the CPU seconds of the worker's thread."""
    common.set_up()
    from conversations.models import Token
    from dashboard.asgi import application
    from tests.benchmarks.server import _answer, _digest, serve
    from tests.support import stand_in

    Token.objects.create(name="bench", role="operator", digest=_digest("bench"), created_by="system")
    stand_in.register()
    worker = Worker()
    worker.start()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope.get("path") == "/bench/":
            await _answer(send, {"worker_cpu": worker.cpu})
            return
        await application(scope, receive, send)

    serve(port, app)


class Worker(threading.Thread):
    """Answers whatever is queued, all runs of one claim in one transaction each for their words and their ends."""

    cpu = 0.0  # seconds, of this thread

    def __init__(self) -> None:
        super().__init__(daemon=True)

    def run(self) -> None:
        """Answer for ever."""
        from conversations.core.write_transaction import write_transaction
        from conversations.events import commit_listeners, log
        from conversations.runs import claims

        news = threading.Event()
        commit_listeners.on_committed(
            lambda stored: news.set() if any(e.kind == "run.queued" for e in stored) else None
        )
        while True:
            taken = claims.claim("bench", ["Stand-in"], at_most=32)
            if not taken:
                self.cpu = time.thread_time()
                news.wait(0.1)
                news.clear()
                continue
            log.append([event for claim in taken for event in _words(claim)])
            with write_transaction():
                for claim in taken:
                    claims.finish(claim, {"event": "run.done"}, _completed(claim))


def _words(claim: Any) -> list[Any]:
    tokens = [{"event": "token", "turn": 1, "text": WORD, "index": index} for index in range(DELTAS)]
    output = {"event": "output", "turn": 1, "text": WORD * DELTAS, "final": True}
    return [claim.event(payload) for payload in (*tokens, output)]


def _completed(claim: Any) -> dict[str, Any]:
    from conversations.events.response_ids import message_item_id
    from conversations.models import Response
    from tests.support.stand_in import USAGE

    response = Response.objects.values_list("id", flat=True).get(conversation__key=claim.conversation)
    part = {"type": "output_text", "text": WORD * DELTAS, "annotations": [], "logprobs": []}
    item = {"type": "message", "id": message_item_id(response, 1), "status": "completed", "role": "assistant"}
    payload = {"event": "response.completed", "response_id": response, "status": "completed", "usage": USAGE}
    return payload | {
        "output": [item | {"content": [part]}],
        "error": None,
        "incomplete_details": None,
        "model": "stand-in",
    }


def bare(port: int, frames: str) -> None:
    """Send recorded frames, whatever is asked."""
    from tests.benchmarks.server import serve

    bodies = [frame.encode() for frame in json.loads(Path(frames).read_text())]
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
        for body in bodies[:-1]:
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": bodies[-1], "more_body": False})

    serve(port, app)


# The clients.


class Client(asyncio.Protocol):
    """Asks again and again over one connection until it is told to stop; counts whole answers."""

    def __init__(self, tally: list[int], keep: list[bytes] | None) -> None:
        self._tally, self._keep, self._tail = tally, keep, b""
        self.is_done = asyncio.get_running_loop().create_future()
        self.is_last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """Look for the end of an answer."""
        if self._keep is not None:
            self._keep.append(data)
        self._tail = (self._tail + data)[-len(END) :]
        if self._tail != END:
            return
        self._tail = b""
        self._tally[0] += 1
        if self.is_last:
            self.is_done.set_result(None)
            self._transport.close()
        else:
            self._transport.write(REQUEST)


async def _ask(port: int, connections: int, seconds: float, keep: list[bytes] | None = None) -> tuple[int, float]:
    """Stream answers for so long; answer how many there were, and the time it took."""
    tally, loop = [0], asyncio.get_running_loop()
    started = time.perf_counter()
    made = [await loop.create_connection(lambda: Client(tally, keep), "127.0.0.1", port) for _ in range(connections)]
    await asyncio.sleep(seconds)
    for _, client in made:
        client.is_last = True
    await asyncio.gather(*(client.is_done for _, client in made))
    return tally[0], time.perf_counter() - started


def run_clients(port: int, seconds: float) -> tuple[int, float]:
    """Run the clients in a process of their own."""
    command = [sys.executable, "-m", "tests.benchmarks.responses", "ask", str(port), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds * 4 + 60)
    count, took = json.loads(done.stdout)
    return int(count), float(took)


def recorded(port: int) -> list[str]:
    """Return the writes of one answer of ours, chunk by chunk."""
    written_frames: list[bytes] = []
    asyncio.run(_ask(port, 1, 0.0, written_frames))
    body, frames = b"".join(written_frames).partition(b"\r\n\r\n")[2], []
    while body != END:
        size, _, rest = body.partition(b"\r\n")
        frames.append(rest[: int(size, 16)].decode())
        body = rest[int(size, 16) + 2 :]
    return frames


class Bench:
    """One server process."""

    def __init__(self, kind: str, frames: str = "") -> None:
        self.port = free_port()
        command = [sys.executable, "-m", "tests.benchmarks.responses", kind, str(self.port), frames]
        self.process = subprocess.Popen(command)
        deadline = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{kind} did not start")
            time.sleep(0.05)

    def _answers(self) -> bool:
        import socket

        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def worker_cpu(self) -> float:
        """Return the worker's CPU seconds so far."""
        import urllib.request

        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/bench/") as answer:
            return float(json.loads(answer.read())["worker_cpu"])

    def measure(self, *, has_worker: bool) -> dict[str, float]:
        """Return answers/s and CPU µs an answer, with and without the worker's."""
        before, worker = common.cpu_of(self.process.pid), self.worker_cpu() if has_worker else 0.0
        count, took = run_clients(self.port, SECONDS_EACH)
        cpu = common.cpu_of(self.process.pid) - before
        worker = self.worker_cpu() - worker if has_worker else 0.0
        return {"rate": count / took, "us": cpu / count * 1e6, "door_us": (cpu - worker) / count * 1e6}

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(30)


def main() -> None:
    """Interleave ours and bare."""
    benches: list[Bench] = []
    try:
        benches.append(mine := Bench("ours"))
        frames = recorded(mine.port)
        frames_file = common.HOME / "frames.json"
        frames_file.write_text(json.dumps(frames))
        benches.append(theirs := Bench("bare", str(frames_file)))
        got: dict[str, list[dict[str, float]]] = {"ours": [], "bare": []}
        for _ in range(ROUNDS):
            got["ours"].append(mine.measure(has_worker=True))
            got["bare"].append(theirs.measure(has_worker=False))
    finally:
        for bench in benches:
            bench.stop()
    tell(got, len(frames))


def tell(got: dict[str, list[dict[str, float]]], frames: int) -> None:
    """Report."""
    medians = {who: {key: common.median([r[key] for r in some]) for key in some[0]} for who, some in got.items()}
    mine, theirs = medians["ours"], medians["bare"]
    ratio = mine["rate"] / theirs["rate"]
    common.report(
        "responses", ratio=ratio, target=">= 0.3 of a bare ASGI app's answers/s", met=ratio >= 0.3,
        answers_s=round(mine["rate"], 1), bare_answers_s=round(theirs["rate"], 1), cpu_us=round(mine["us"]),
        door_us=round(mine["door_us"]), bare_cpu_us=round(theirs["us"]),
        door_cpu_ratio=round(theirs["us"] / mine["door_us"], 3), frames=frames, deltas=DELTAS,
        connections=CONNECTIONS, rounds=ROUNDS,
    )  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ours", port, frames]:
            ours(int(port), frames)
        case ["bare", port, frames]:
            bare(int(port), frames)
        case ["ask", port, seconds]:
            print(json.dumps(asyncio.run(_ask(int(port), CONNECTIONS, float(seconds)))))
        case _:
            main()
            common.tear_down()
