"""The load of `cluster`, in processes of their own: `python -m tests.benchmarks.cluster_load sockets|publishers`.

Each reads one JSON object per line and prints one for it. Both keep what they need for a figure and no more: a number
per socket, and a sample of the latencies.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import resource
import sys
import time
from array import array
from collections import Counter
from typing import Any

import uvloop

from tests.benchmarks import common
from tests.benchmarks.latency_nodes import Writer
from tests.benchmarks.publisher import WORDS

EVENT = re.compile(rb'"seq":(\d+),.*?"n": ?(\d+), ?"ts": ?([\d.]+)')
SAMPLE = 50_000  # latencies that are kept of a phase, of each kind
HANDSHAKE_WITHIN = 60.0  # seconds
AT_ONCE = 32  # sockets that connect at the same time

Line = dict[str, Any]


class Sample:
    """A bounded sample of latencies, each as likely to be in it as any other."""

    def __init__(self) -> None:
        self.count, self._sample = 0, array("d")

    def add(self, seconds: float) -> None:
        """Add one latency."""
        self.count += 1
        if len(self._sample) < SAMPLE:
            self._sample.append(seconds)
        elif (place := int(random.random() * self.count)) < SAMPLE:
            self._sample[place] = seconds

    def figures(self) -> Line:
        """Return p50 and p99 in milliseconds; empty without any."""
        return {f"p{q}_ms": round(common.percentile(self._sample, q / 100) * 1000, 1) for q in (50, 99) if self.count}


class Tally:
    """What all sockets got in one phase."""

    def __init__(self) -> None:
        self.events = self.frames = self.lost = self.doubled = self.foreign = 0
        self.near, self.far = Sample(), Sample()  # published at the socket's own node, at another
        self.first = self.last = 0.0  # monotonic, of the frames


class Sockets:
    """All subscribers. Each follows one conversation and knows the number of the last event it got."""

    def __init__(self) -> None:
        self.tally, self.closed = Tally(), Counter[int]()
        self.caught_up = 0
        self.slowest_s = 0.0  # the longest handshake
        self.lasts: dict[str, list[int]] = {}  # of each conversation, the last seq of each of its sockets
        self._transports: list[Any] = []

    async def connect(self, ports: list[int], tokens: list[str], keys: list[str], each: int) -> None:
        """Open `each` sockets for every conversation, one after the other at the nodes from the conversation's own on;
        return when all have caught up."""
        self.lasts = {key: [0] * each for key in keys}
        room = asyncio.Semaphore(AT_ONCE)
        places = [(i, key, j) for i, key in enumerate(keys) for j in range(each)]

        async def connect(number: int, i: int, key: str, j: int) -> None:
            async with room:
                home, node = i % len(ports), (i + j) % len(ports)
                headers = {"Authorization": f"Bearer {tokens[number % len(tokens)]}"}
                self._transports.append(await self._open(ports[node], headers, key, j, is_near=home == node))

        await asyncio.gather(*(connect(number, *place) for number, place in enumerate(places)))
        while self.caught_up < len(places):
            self.check()
            await asyncio.sleep(0.02)

    async def _open(self, port: int, headers: dict[str, str], key: str, place: int, *, is_near: bool) -> Any:
        from picows import WSListener, WSMsgType, ws_connect

        sockets, lasts = self, self.lasts[key]

        class Listener(WSListener):  # type: ignore[misc]
            def on_ws_connected(self, transport: Any) -> None:
                text = json.dumps({"op": "subscribe", "topic": f"stream:{key}", "after": 0})
                transport.send(WSMsgType.TEXT, text.encode())

            def on_ws_frame(self, transport: Any, frame: Any) -> None:
                payload = frame.get_payload_as_bytes()
                if frame.msg_type == WSMsgType.CLOSE:
                    sockets.closed[int.from_bytes(payload[:2], "big")] += 1
                elif payload.startswith(b'{"t":"events'):
                    sockets.take(payload, lasts, place, is_near=is_near)
                elif payload.startswith(b'{"t":"caught_up'):
                    sockets.caught_up += 1

        url, start = f"ws://127.0.0.1:{port}/ws/", time.monotonic()
        transport, _ = await ws_connect(
            Listener, url, extra_headers=headers, websocket_handshake_timeout=HANDSHAKE_WITHIN
        )
        self.slowest_s = max(self.slowest_s, time.monotonic() - start)
        return transport

    def take(self, payload: bytes, lasts: list[int], place: int, *, is_near: bool) -> None:
        """Count the events of one frame and check that they follow the last one."""
        tally, now = self.tally, time.monotonic()
        sample = tally.near if is_near else tally.far
        tally.first = tally.first or now
        tally.last = now
        tally.frames += 1
        for seq_text, n_text, ts_text in EVENT.findall(payload):
            seq, last = int(seq_text), lasts[place]
            tally.events += 1
            tally.lost += max(0, seq - last - 1)
            tally.doubled += seq <= last
            tally.foreign += seq != int(n_text)  # the publisher numbers them as the record has to
            lasts[place] = max(last, seq)
            sample.add(now - float(ts_text))

    def check(self) -> None:
        """Raise AssertionError if the server has closed a socket."""
        assert not self.closed, f"sockets were closed by the server, by code: {dict(self.closed)}"

    async def collect(self, heads: dict[str, int], within: float) -> Line:
        """Wait until every socket is at the head of its conversation; return the figures of the phase that ends."""
        behind = self._behind(heads)
        deadline = time.monotonic() + within
        while behind and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
            behind = self._behind(heads)
        tally, self.tally = self.tally, Tally()
        return {
            "behind": behind, "closed": dict(self.closed), "events": tally.events, "frames": tally.frames,
            "lost": tally.lost, "doubled": tally.doubled, "foreign": tally.foreign, "first": tally.first,
            "last": tally.last, "near": tally.near.figures(), "far": tally.far.figures(),
        }  # fmt: skip

    def _behind(self, heads: dict[str, int]) -> int:
        return sum(last != heads.get(key, 0) for key, lasts in self.lasts.items() for last in lasts)

    def disconnect(self) -> None:
        """Close all sockets."""
        for transport in self._transports:
            transport.disconnect()


async def sockets() -> None:
    """Serve one line after the other: `connect` and its arguments, or `collect`; end with the input."""
    everyone: Sockets | None = None
    while line := await _next_line():
        if "connect" in line:
            if everyone is not None:
                everyone.disconnect()
            everyone = Sockets()
            await everyone.connect(**line["connect"])
            _print({"connected": everyone.caught_up, "slowest_s": everyone.slowest_s})
        elif everyone is not None:
            _print(await everyone.collect(**line["collect"]))


async def publish(
    ports: list[int], tokens: list[str], heads: dict[str, int], *, lanes: int, batch: int, rate: float, seconds: float
) -> Line:
    """Publish over `lanes` connections, each with conversations of its own, at the node of each conversation.

    `rate`: events/s of all lanes together; 0: each lane sends its next batch as soon as the last is acknowledged. The
    first `len(ports)` conversations belong to the nodes in their order, and so on.
    """
    keys, loop = list(heads), asyncio.get_running_loop()
    writers = []
    for lane in range(lanes):
        port, token = ports[lane % len(ports)], tokens[lane % len(tokens)]
        head = f"POST /api/v1/publish HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
        head += "content-type: application/json\r\n"
        _, writer = await loop.create_connection(lambda head=head: Writer(head.encode()), "127.0.0.1", port)
        writers.append(writer)
    start = loop.time()
    speakers = (
        _speak(writer, keys[lane::lanes], heads, start=start + lane * batch * bool(rate) / max(rate, 1), batch=batch,
               rate=rate / lanes, until=start + seconds)
        for lane, writer in enumerate(writers)
    )  # fmt: skip
    events = sum(await asyncio.gather(*speakers))
    took = loop.time() - start
    for writer in writers:
        writer.transport.close()
    return {"events": events, "failed": sum(w.failed for w in writers), "seconds": took, "began": start}


async def _speak(
    writer: Writer, keys: list[str], heads: dict[str, int], *, start: float, batch: int, rate: float, until: float
) -> int:
    """Publish to some conversations in turn, on one connection, at least once to each; return the number of events."""
    loop, sent = asyncio.get_running_loop(), 0
    while loop.time() < until or sent < len(keys) * batch:
        if rate:
            await asyncio.sleep(max(0.0, start + sent / rate - loop.time()))
        key = keys[sent // batch % len(keys)]
        first = heads[key] + 1
        heads[key] += batch
        ts = time.monotonic()
        await writer.publish([_message(key, first + i, ts) for i in range(batch)])
        sent += batch
    return sent


def _message(key: str, n: int, ts: float) -> Line:
    payload = {"conversation_id": key, "type": "message", "sender": "agent:A", "recipient": "user:maria"}
    return {"topic": f"stream:{key}", "payload": payload | {"content": WORDS, "metadata": {"n": n, "ts": ts}}}


async def publishers() -> None:
    """Publish as each line says."""
    while line := await _next_line():
        _print(await publish(**line))


async def _next_line() -> Line | None:
    text = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return json.loads(text) if text else None


def _print(line: Line) -> None:
    peak_mb = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    print(json.dumps(line | {"peak_mb": peak_mb}), flush=True)


if __name__ == "__main__":
    uvloop.run({"sockets": sockets, "publishers": publishers}[sys.argv[1]]())
