"""HTTP clients for `ingest`, in a process of their own: `python -m tests.benchmarks.publisher PORT TOKEN CONNECTIONS
BATCH N PATH`.

Each connection publishes one request after the other; all bodies are written before the clock starts. Says one JSON
line: seconds, events, how many failed, and the wait of a request.
"""

import asyncio
import json
import re
import sys
import time
import uuid
from typing import Any

import uvloop

from tests.benchmarks import common

CONVERSATIONS = 50
WORDS = "agent tool search file error result plan step query index " * 3


def envelope(number: int) -> dict[str, Any]:
    """Write message number n: about 380 bytes, runs of 20 in each of 50 conversations."""
    key = f"c{number // 20 % CONVERSATIONS}"
    stamp = f"{time.time_ns() // 1_000_000:012x}"
    event_id = f"{stamp[:8]}-{stamp[8:]}-7{number >> 16 & 0xFFF:03x}-8{number & 0xFFF:03x}-{uuid.uuid4().hex[:12]}"
    payload = {"sender": f"agent:A{number % 7}", "recipient": "user:maria", "content": WORDS}
    return {"id": event_id, "conversation_id": key, "type": "message", **payload, "metadata": {}}


def requests(numbers: range, batch: int) -> list[bytes]:
    """Write the bodies of one connection."""
    messages = [{"topic": f"stream:{(p := envelope(n))['conversation_id']}", "payload": p} for n in numbers]
    if batch == 1:
        return [json.dumps(message).encode() for message in messages]
    return [json.dumps({"messages": messages[at : at + batch]}).encode() for at in range(0, len(messages), batch)]


class Client(asyncio.Protocol):
    """One kept connection with one request under way."""

    def __init__(self, head: bytes, bodies: list[bytes], waits: list[float]) -> None:
        self._head, self._bodies, self._waits = head, iter(bodies), waits
        self.failed, self.received, self.done = 0, b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Keep it."""
        self._transport = transport

    def next(self) -> None:
        """Send the next request, or be done."""
        body = next(self._bodies, None)
        if body is None:
            self.done.set_result(None)
            return
        self.received, self._sent_at = b"", time.perf_counter()
        self._transport.write(self._head + b"content-length: %d\r\n\r\n" % len(body) + body)

    def data_received(self, data: bytes) -> None:
        """Go on when the answer is whole."""
        self.received += data
        head, mark, body = self.received.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower()) if mark else None
        if length and len(body) >= int(length[1]):
            self._waits.append(time.perf_counter() - self._sent_at)
            self.failed += not head.startswith(b"HTTP/1.1 20") or b'"error"' in body
            self.next()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell of a connection that ended too soon."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("closed by the server"))


async def main(port: int, token: str, connections: int, batch: int, n: int, path: str) -> None:
    """Publish n messages."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n"
    head += "content-type: application/json\r\n"
    waits: list[float] = []
    share, loop, clients = n // connections, asyncio.get_running_loop(), []
    for lane in range(connections):
        bodies = requests(range(lane * share, (lane + 1) * share), batch)
        client = Client(head.encode(), bodies, waits)
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)
        clients.append(client)
    start = time.perf_counter()
    for client in clients:
        client.next()
    await asyncio.gather(*(client.done for client in clients))
    seconds = time.perf_counter() - start
    figures = {"seconds": seconds, "events": share * connections, "failed": sum(client.failed for client in clients)}
    ms = {f"p{q}": round(common.percentile(waits, q / 100) * 1000, 2) for q in (50, 99)}
    print(json.dumps(figures | ms), flush=True)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6]))
    common.tear_down()
