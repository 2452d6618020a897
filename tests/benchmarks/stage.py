"""A server process for `render`: our whole application with its pages, and a control route that makes its load.

`python -m tests.benchmarks.stage PORT`. The load is four agents that write at once: of 376 events 360 are tokens of
four turns, then each turn's output, a tool call in two steps, and a message.
"""

import asyncio
import sys
import time
from typing import Any
from urllib.parse import parse_qsl

LANES = ("Triage", "Dialogue", "Files", "Search")
TOKENS = 90  # of a turn
CYCLE = len(LANES) * (TOKENS + 4)  # events
WORDS = ("agents ", "speak ", "while ", "tools ", "answer; ", "a person ", "reads ", "along. ")


def payload(i: int, key: str = "") -> dict[str, Any]:
    """Write event number i of the load; a run belongs to one conversation."""
    cycle, at = divmod(i, CYCLE)
    step, lane = divmod(at, len(LANES))
    agent, run = LANES[lane], {"run_id": f"{key}-{lane}", "turn": cycle, "agent": LANES[lane]}
    if step < TOKENS:
        return {"event": "token", "index": step, "text": token(cycle, step), **run}
    call = {"event": "tool_step", "name": "look_up", "tool_call_id": f"{lane}-{cycle}", **run}
    return [
        {"event": "output", "text": words(cycle), **run},
        {**call, "status": "start", "args": {"page": cycle, "of": agent}},
        {**call, "status": "success", "result_summary": f"{cycle} pages", "duration_ms": 12},
        {"type": "message", "sender": f"agent:{agent}", "recipient": "user:maria", "content": f"Done with {cycle}."},
    ][step - TOKENS]


def token(cycle: int, step: int) -> str:
    """Write a token's text."""
    return WORDS[(cycle + step) % len(WORDS)]


def words(cycle: int) -> str:
    """Write a whole turn's text."""
    return "".join(token(cycle, step) for step in range(TOKENS))


def rows(n: int) -> int:
    """Return how many rows n events make: one each turn begun, each call begun, each message."""
    payloads = [payload(i) for i in range(n)]
    begun = {(body["run_id"], body["turn"]) for body in payloads if body.get("event") == "token"}
    return len(begun) + sum(body.get("status") == "start" or body.get("type") == "message" for body in payloads)


async def serve(port: int, secret: str) -> None:
    """Serve until told to stop; `secret` signs the owner in."""
    import uvicorn

    from conversations.core import principals
    from conversations.events import log
    from conversations.events.log.records import from_internal
    from dashboard.asgi import application, with_static
    from dashboard.server.draining_server import config
    from tests.benchmarks import seed
    from tests.benchmarks.server import _answer
    from tests.support import large_talks

    async def play(key: str, n: int, rate: float) -> None:
        """Commit what is due every 16 ms, each event a row of its own."""
        start, sent, waiting = time.monotonic(), 0, []
        while sent < n:
            due = min(n, int((time.monotonic() - start) * rate))
            batch = [from_internal(key, payload(i, key), principals.SYSTEM) for i in range(sent, due)]
            if batch:
                waiting.append(asyncio.create_task(application.runtime.writer.store(batch)))
            sent = due
            await asyncio.sleep(0.016)
        await asyncio.gather(*waiting)

    async def control(scope: Any, receive: Any, send: Any) -> None:
        parameters, start = dict(parse_qsl(scope["query_string"].decode())), time.monotonic()
        if "fill" in parameters:
            some = (seed.message(parameters["key"], i) for i in range(int(parameters["fill"])))
            await asyncio.to_thread(seed.fill, some)
        if "talk" in parameters:
            await asyncio.to_thread(large_talks.write, parameters["key"], int(parameters["talk"]))
        if "rate" in parameters:
            await play(parameters["key"], int(parameters["n"]), float(parameters["rate"]))
        head = await asyncio.to_thread(log.head, parameters.get("key", ""))
        figures = {"secret": secret, "cpu": time.process_time(), "head": head, "seconds": time.monotonic() - start}
        await _answer(send, figures)

    app = with_static(application)

    async def both(scope: Any, receive: Any, send: Any) -> None:
        await (control if scope.get("path") == "/bench/" else app)(scope, receive, send)

    await uvicorn.Server(config(both, "127.0.0.1", port)).serve()


def main() -> None:
    """Prepare the data directory as `serve` does, and serve."""
    from tests.benchmarks import common

    common.set_up()
    import uvloop
    from django.core.management import call_command

    from conversations.access.accounts.people import first_owner

    call_command("collectstatic", verbosity=0, interactive=False)
    try:
        uvloop.run(serve(int(sys.argv[1]), first_owner() or ""))
    finally:
        common.tear_down()


if __name__ == "__main__":
    main()
