"""`live_list`: what the list costs a server while 200 conversations are live and people look at it.

Each of 200 conversations gets a message every `PERIOD` seconds, over HTTP, in turns; first nobody looks, then `VIEWERS`
windows hold the topic `fleet`. The list's share is the CPU of the server in the second part less that of the first, of
one core. (Besides, each window fetches the whole list once a minute: the page's time in `list`.)

Target: at most 5 % of a core. `SECONDS=60` and `VIEWERS=3` are the size.
"""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import time
import urllib.request
from typing import Any

from picows import WSListener, WSMsgType, ws_connect

from tests.benchmarks import common
from tests.support.live import free_port, until

CONVERSATIONS, PERIOD = 200, 10.0
SECONDS, VIEWERS = float(os.environ.get("SECONDS", "60")), int(os.environ.get("VIEWERS", "3"))
HEADERS = {"Authorization": "Bearer bench", "Content-Type": "application/json"}


class Window(WSListener):  # type: ignore[misc]
    """One list that is looked at: counts the rows it is sent."""

    rows = 0

    def on_ws_connected(self, transport: Any) -> None:
        """Follow the list."""
        transport.send(WSMsgType.TEXT, json.dumps({"op": "subscribe", "topic": "fleet", "render": "html"}).encode())

    def on_ws_frame(self, transport: Any, frame: Any) -> None:
        """Count."""
        Window.rows += frame.get_payload_as_bytes().count(b'"version":')


def publish(port: int, body: object) -> None:
    """Send one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/api/v1/publish", json.dumps(body), HEADERS)
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status < 300, (answer.status, text[:200])
    connection.close()


def is_up(port: int) -> bool:
    """Return whether the server answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def say(port: int, number: int) -> None:
    """Have one of the conversations go on."""
    key = f"live-{number % CONVERSATIONS}"
    message = {
        "type": "message",
        "sender": f"agent:A{number % 7}",
        "recipient": "user:maria",
        "content": f"Step {number}",
    }
    publish(port, {"topic": f"stream:{key}", "payload": {"conversation_id": key, **message}})


async def go_on(port: int, pid: int, *, windows: int) -> float:
    """Let all go on for a while before so many windows; return the server's share of a core."""
    for _ in range(windows):
        await ws_connect(Window, f"ws://127.0.0.1:{port}/ws/", extra_headers={"Authorization": "Bearer bench"})
    await asyncio.sleep(2)
    began, used, number = time.monotonic(), common.cpu_of(pid), 0
    while (passed := time.monotonic() - began) < SECONDS:
        if number < passed * CONVERSATIONS / PERIOD:
            await asyncio.to_thread(say, port, number)
            number += 1
        else:
            await asyncio.sleep(0.01)
    return (common.cpu_of(pid) - used) / (time.monotonic() - began)


def main() -> None:
    """Start a server, measure without and with somebody who looks."""
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.server", str(port), "ours"])
    try:
        until(lambda: is_up(port), what="the server to answer")
        for number in range(CONVERSATIONS):
            say(port, number)
        alone = asyncio.run(go_on(port, server.pid, windows=0))
        watched = asyncio.run(go_on(port, server.pid, windows=VIEWERS))
    finally:
        server.terminate()
        server.wait(30)
    share = watched - alone
    common.report(
        "live_list", ratio=share, target="at most 0.05 of a core", met=share <= 0.05, conversations=CONVERSATIONS,
        events_a_second=CONVERSATIONS / PERIOD, viewers=VIEWERS, rows_sent=Window.rows, load=os.getloadavg()[0],
        share_without_viewers=round(alone, 4), share_with_viewers=round(watched, 4),
    )  # fmt: skip


if __name__ == "__main__":
    main()
