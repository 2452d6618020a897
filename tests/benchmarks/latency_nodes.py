"""`latency_nodes`: from an HTTP publish at one web process to a socket at another, on PostgreSQL and Redis.

50 conversations of 200 tokens a second, published by their own clients in batches of 10. Target: p95 at most 100 ms.
Also said: the same at a tenth of it, where the machine has time.
"""

import asyncio
import json
import os
import re
import sys
import time
from typing import Any

import uvloop

from tests.benchmarks import common
from tests.support.deployment import Deployment

CONVERSATIONS = 50
RATE = 200  # tokens a second in each
BATCH = 10  # tokens of a request
SECONDS = float(os.environ.get("RUN_SECONDS", "15"))
WARM_UP = 0.2  # of the run, not counted
TS = re.compile(rb'"ts":([\d.]+)')


class Writer(asyncio.Protocol):
    """One keep-alive HTTP connection that publishes one batch after the other."""

    def __init__(self, head: bytes) -> None:
        self._head, self._answer = head, asyncio.Event()
        self.received = b""
        self.failed = 0

    def connection_made(self, transport: Any) -> None:
        """Keep it."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Wait for a whole answer."""
        self.received += data
        head, mark, body = self.received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower()) if mark else None
        if length and len(body) >= int(length[1]):
            self.failed += not self.received.startswith(b"HTTP/1.1 20") or b'"error"' in body
            self.received = b""
            self._answer.set()

    async def publish(self, messages: list[dict[str, Any]]) -> None:
        """Send one batch and wait for its answer."""
        body = json.dumps({"messages": messages}).encode()
        self._answer.clear()
        self.transport.write(self._head + b"content-length: %d\r\n\r\n" % len(body) + body)
        await self._answer.wait()


async def speak(port: int, token: str, number: int, rate: float, waits: list[float]) -> tuple[int, int]:
    """Publish tokens at a steady rate; return how many, and how many requests failed."""
    head = f"POST /api/v1/publish HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
    head += "content-type: application/json\r\n"
    loop = asyncio.get_running_loop()
    _, writer = await loop.create_connection(lambda: Writer(head.encode()), "127.0.0.1", port)
    batch = BATCH if rate >= BATCH else 1
    start, sent = loop.time() + number / CONVERSATIONS * batch / rate, 0
    while loop.time() < start + SECONDS:
        await asyncio.sleep(max(0.0, start + sent / rate - loop.time()))
        payload = {"event": "token", "conversation_id": f"c{number}", "agent": "A", "text": "word "}
        ts = time.monotonic()
        messages = [
            {"topic": f"stream:c{number}", "payload": payload | {"index": sent + i, "ts": ts}} for i in range(batch)
        ]
        await writer.publish(messages)
        sent += batch
    return sent, writer.failed


async def listen(port: int, token: str, waits: list[float]) -> Any:
    """Follow all conversations on one socket, as a page follows several."""
    from picows import WSListener, WSMsgType, ws_connect

    class Listener(WSListener):  # type: ignore[misc]
        def on_ws_connected(self, transport: Any) -> None:
            for number in range(CONVERSATIONS):
                text = json.dumps({"op": "subscribe", "topic": f"stream:c{number}"})
                transport.send(WSMsgType.TEXT, text.encode())

        def on_ws_frame(self, transport: Any, frame: Any) -> None:
            now = time.monotonic()
            waits.extend(now - float(ts) for ts in TS.findall(frame.get_payload_as_bytes()))

    headers = {"Authorization": f"Bearer {token}"}
    transport, _ = await ws_connect(Listener, f"ws://127.0.0.1:{port}/ws/", extra_headers=headers)
    return transport


async def run(ports: tuple[int, int], token: str, rate: float) -> dict[str, Any]:
    """Speak at the first node, listen at the second."""
    waits: list[float] = []
    transport = await listen(ports[1], token, waits)
    await asyncio.sleep(1)
    speakers = (speak(ports[0], token, number, rate, waits) for number in range(CONVERSATIONS))
    counts = await asyncio.gather(*speakers)
    await asyncio.sleep(2)
    transport.disconnect()
    steady = waits[int(len(waits) * WARM_UP) :]
    spoken = sum(sent for sent, _ in counts)
    at = {f"p{q}_ms": round(common.percentile(steady, q / 100) * 1000, 1) for q in (50, 95, 99)} if steady else {}
    return at | {"tokens_per_s": round(spoken / SECONDS), "segments": len(waits), "failed": sum(f for _, f in counts)}


def main() -> None:
    """Measure at the full rate and at a tenth of it."""
    deployment = Deployment().start()
    try:
        for name, rate in (("tenth", RATE / 10), ("full", RATE)):
            got = uvloop.run(run((deployment.a.port, deployment.b.port), deployment.token, rate))
            p95 = got.get("p95_ms", float("inf"))
            common.report(
                f"latency_nodes-{name}", ratio=p95 / 100, target="p95 <= 100 ms, publish to the second node's socket",
                met=p95 <= 100 and not got["failed"], conversations=CONVERSATIONS,
                asked_per_s=round(rate * CONVERSATIONS), share_of_a_core=common.share_of_a_core(), **got,
            )  # fmt: skip
    finally:
        deployment.close()
        common.tear_down()


if __name__ == "__main__":
    main()
    sys.exit(0)
