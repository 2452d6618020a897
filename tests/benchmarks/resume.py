"""`resume`: 10,000 random disconnects under load. Target: 0 events lost, 0 doubled, 0 out of order.

200 readers at a real server; each is cut at random and resumes after the last seq it has.
"""

import asyncio
import json
import os
import random
import sys
import time
from typing import Any

import uvloop

from tests.benchmarks import common
from tests.benchmarks.fanout import Bench

READERS = 200
DISCONNECTS = int(os.environ.get("DISCONNECTS", "10000"))
RATE = 400.0  # events a second
LIMIT = 600.0  # seconds


class Tally:
    """What went wrong, and how often the line was cut."""

    cuts = lost = doubled = read = 0
    done = False


async def reader(port: int, number: int) -> int:
    """Read, get cut, resume; return the last seq."""
    from picows import WSListener, WSMsgType, ws_connect

    dice, last, connections = random.Random(number), 0, 0

    class Listener(WSListener):  # type: ignore[misc]
        def on_ws_connected(self, transport: Any) -> None:
            text = json.dumps({"op": "subscribe", "topic": "stream:f", "after": last})
            transport.send(WSMsgType.TEXT, text.encode())

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            nonlocal last
            message = json.loads(frame.get_payload_as_bytes())
            for event in message.get("events", ()):
                Tally.lost += event["seq"] > last + 1
                Tally.doubled += event["seq"] <= last
                last = max(last, event["seq"])
                Tally.read += 1

    while not Tally.done or last < Tally.head:  # type: ignore[attr-defined]
        headers = {"Authorization": "Bearer bench"}
        transport, _ = await ws_connect(Listener, f"ws://127.0.0.1:{port}/ws/", extra_headers=headers)
        connections += 1
        if Tally.done:
            while last < Tally.head:  # type: ignore[attr-defined]
                await asyncio.sleep(0.02)
            transport.disconnect()
            break
        await asyncio.sleep(dice.expovariate(4))
        transport.disconnect()
        Tally.cuts += 1
        Tally.done = Tally.done or Tally.cuts >= DISCONNECTS
    return last


async def run(bench: Bench) -> None:
    """Keep events coming until the line was cut often enough, then let everybody catch up."""
    loop = asyncio.get_running_loop()
    Tally.head = 1 << 60  # type: ignore[attr-defined]
    readers = [asyncio.create_task(reader(bench.port, i)) for i in range(READERS)]
    while not Tally.done:
        await loop.run_in_executor(None, lambda: bench.ask(n=int(RATE * 2), rate=RATE, batch=4))
    Tally.head = (await loop.run_in_executor(None, bench.ask))["head"]  # type: ignore[attr-defined]
    lasts = await asyncio.wait_for(asyncio.gather(*readers), LIMIT)
    assert set(lasts) == {Tally.head}, f"some readers ended at {set(lasts)}"  # type: ignore[attr-defined]


def main() -> None:
    """Run it and say what was found."""
    bench, start = Bench("ours"), time.monotonic()
    try:
        uvloop.run(run(bench))
    finally:
        bench.stop()
    bad = Tally.lost + Tally.doubled
    common.report(
        "resume", ratio=float(bad), target="0 lost, 0 doubled", met=bad == 0 and Tally.cuts >= DISCONNECTS,
        disconnects=Tally.cuts, lost=Tally.lost, doubled=Tally.doubled, events=Tally.head,  # type: ignore[attr-defined]
        delivered=Tally.read, seconds=round(time.monotonic() - start, 1), readers=READERS,
    )  # fmt: skip
    sys.exit(bad)


if __name__ == "__main__":
    main()
