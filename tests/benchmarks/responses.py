"""`responses`: streamed answers a second, and CPU an answer, against a bare ASGI app that sends the very same frames.

Ours is the whole application under `serve`'s own uvicorn, with a stand-in worker in a thread of that process: a request
is stored, queued, claimed, answered by DELTAS pieces of text and stored again, all in SQLite. `door_us` leaves the
worker and the writer of its events out. The bare app reads the request and sends the frames that ours was seen to
send, each one write. Target: at least 0.3 of the bare app's answers a second.

`served` has the worker itself instead, and `sdk` is an app that runs the bare Agents SDK in each request and sends a
frame for each delta of the same model: what of the difference is the SDK's own. All are interleaved.

`SECONDS_EACH`, `CONNECTIONS`, `DELTAS` and `ROUNDS` change a run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request

from tests.benchmarks import common
from tests.benchmarks.response_servers import DELTAS, MODEL
from tests.support.live import free_port

ROUNDS = int(os.environ.get("ROUNDS", "3"))
CONNECTIONS = int(os.environ.get("CONNECTIONS", "16"))
SECONDS_EACH = float(os.environ.get("SECONDS_EACH", "5"))
BODY = json.dumps({"model": MODEL, "input": "What is to be done on Elm Street?", "stream": True}).encode()
REQUEST = (
    b"POST /v1/responses HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer bench\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n" % len(BODY)
) + BODY
END = b"0\r\n\r\n"
NOT_THE_DOOR = ("worker", "runs", "writer")  # threads of ours


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
    """Stream answers for so long; return how many there were, and the time it took."""
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
        self._is_ours = kind in ("ours", "served")
        command = [sys.executable, "-m", "tests.benchmarks.response_servers", kind, str(self.port)]
        self.process = subprocess.Popen([*command, frames] if frames else command)
        deadline = time.monotonic() + 60
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"{kind} did not start")
            time.sleep(0.05)
        try:
            self._cpu_by_thread()
        except OSError:
            self.stop()
            raise

    def _answers(self) -> bool:
        import socket

        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _cpu_by_thread(self) -> dict[str, float]:
        """Return the CPU seconds of our threads so far, once agents are served."""
        if not self._is_ours:
            return {}
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/bench/") as answer:
            seconds: dict[str, float] = json.loads(answer.read())
            return seconds

    def measure(self) -> dict[str, float]:
        """Return answers/s and CPU µs an answer: in all, of the door, and of each thread of ours."""
        before, threads = common.cpu_of(self.process.pid), self._cpu_by_thread()
        count, took = run_clients(self.port, SECONDS_EACH)
        us = (common.cpu_of(self.process.pid) - before) / count * 1e6
        after = self._cpu_by_thread()
        by_thread = {name: (after[name] - threads.get(name, 0.0)) / count * 1e6 for name in after}
        apart = sum(by_thread.get(name, 0.0) for name in NOT_THE_DOOR)
        return {"rate": count / took, "us": us, "door_us": us - apart, **by_thread}

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(30)


def main() -> None:
    """Interleave all."""
    benches: dict[str, Bench] = {}
    try:
        benches["ours"] = mine = Bench("ours")
        frames = recorded(mine.port)
        frames_file = common.HOME / "frames.json"
        frames_file.write_text(json.dumps(frames))
        benches["bare"] = Bench("bare", str(frames_file))
        for kind in ("served", "sdk"):
            benches[kind] = Bench(kind)
        got: dict[str, list[dict[str, float]]] = {name: [] for name in benches}
        for _ in range(ROUNDS):
            for name, bench in benches.items():
                got[name].append(bench.measure())
    finally:
        for bench in benches.values():
            bench.stop()
    tell(got, len(frames))


def tell(got: dict[str, list[dict[str, float]]], frames: int) -> None:
    """Report."""
    medians = {
        who: {key: common.median([r.get(key, 0.0) for r in some]) for key in some[-1]} for who, some in got.items()
    }
    mine, theirs, served, sdk = (medians[name] for name in ("ours", "bare", "served", "sdk"))
    ratio = mine["rate"] / theirs["rate"]
    threads = {name: round(us) for name, us in mine.items() if name not in ("rate", "us", "door_us") and us >= 1}
    common.report(
        "responses", ratio=ratio, target=">= 0.3 of a bare ASGI app's answers/s", met=ratio >= 0.3,
        answers_s=round(mine["rate"], 1), bare_answers_s=round(theirs["rate"], 1), cpu_us=round(mine["us"]),
        door_us=round(mine["door_us"]), bare_cpu_us=round(theirs["us"]),
        door_cpu_ratio=round(theirs["us"] / mine["door_us"], 3), us_by_thread=threads,
        sdk_answers_s=round(sdk["rate"], 1), served_answers_s=round(served["rate"], 1), sdk_cpu_us=round(sdk["us"]),
        served_cpu_us=round(served["us"]), served_of_sdk=round(served["rate"] / sdk["rate"], 3), frames=frames,
        deltas=DELTAS, connections=CONNECTIONS, rounds=ROUNDS,
    )  # fmt: skip


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ask", port, seconds]:
            print(json.dumps(asyncio.run(_ask(int(port), CONNECTIONS, float(seconds)))))
        case _:
            main()
            common.tear_down()
