"""Readers for benchmarks, in a process of their own: `python -m tests.benchmarks.reader PORT PATH COUNT WANTED AFTER`.

Says READY when all are subscribed, then one JSON line: events got, frames, latencies from the `ts` in the events.
"""

import asyncio
import gc
import json
import os
import re
import sys
import time
from typing import Any

import uvloop
from picows import WSListener, WSMsgType, ws_connect

TS = re.compile(rb'"ts":([\d.]+)')
QUIET = 5.0  # seconds without a frame that end the run


class Count:
    """What all readers of this process got."""

    ready = got = frames = 0
    last = 0.0
    waits: list[float] = []


class Reader(WSListener):  # type: ignore[misc]
    """Counts events; every fifth one also measures."""

    def __init__(self, number: int, after: int) -> None:
        self.number, self.after = number, after

    def on_ws_connected(self, transport: Any) -> None:
        """Subscribe."""
        text = json.dumps({"op": "subscribe", "topic": "stream:f", "after": self.after})
        transport.send(WSMsgType.TEXT, text.encode())

    def on_ws_frame(self, transport: Any, frame: Any) -> None:
        """Count."""
        payload = frame.get_payload_as_bytes()
        if payload.startswith(b'{"t":"caught'):
            Count.ready += 1
            return
        if not payload.startswith(b'{"t":"events'):
            return
        Count.got += payload.count(b'"seq":')
        Count.frames += 1
        Count.last = time.monotonic()
        if self.number % 5 == 0:
            Count.waits += [Count.last - float(ts) for ts in TS.findall(payload)]


async def main(port: int, path: str, count: int, wanted: int, after: int) -> None:
    """Connect, say so, count until all is there or nothing comes any more."""
    url, headers = f"ws://127.0.0.1:{port}{path}", {"Authorization": "Bearer bench"}
    for number in range(count):
        await ws_connect(lambda number=number: Reader(number, after), url, extra_headers=headers)
    while count > Count.ready:
        await asyncio.sleep(0.02)
    gc.collect()
    gc.freeze()
    print("READY", flush=True)
    start = time.monotonic()
    while wanted * count > Count.got and time.monotonic() - max(Count.last, start) < QUIET:
        await asyncio.sleep(0.02)
    waits = sorted(Count.waits)[int(len(Count.waits) * 0.05) :]  # the first are warm-up

    def at(q: float) -> float | None:
        return round(waits[min(len(waits) - 1, int(len(waits) * q))] * 1000, 2) if waits else None

    print(
        json.dumps(
            {"got": Count.got, "wanted": wanted * count, "frames": Count.frames, "p50": at(0.5), "p99": at(0.99)}
        )
    )
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6])))
