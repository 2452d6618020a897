"""A server whose event loop is watched: how long each of its turns takes of its own thread's CPU."""

import os
from typing import Any

from tests.support.live import Server

# The loop's thread is asked for its own CPU time between two turns: another process beside it changes that little.
SERVE = """
import asyncio, time
from django.conf import settings
from django.core.management import call_command
from conversations.realtime.server_runtime import ServerRuntime

start = ServerRuntime.start

async def watched(engine, **options):
    await start(engine, **options)
    engine.beating = asyncio.create_task(beat())

async def beat():
    with (settings.DATA_DIR / "turns").open("a", buffering=1) as turns:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            if (took := time.thread_time() - before) > 0.002:
                turns.write(f"{took}\\n")

ServerRuntime.start = watched
call_command("serve", "--no-demo", port=%s)
"""


class WatchedServer(Server):
    """A server that writes down how long its loop was busy at a time."""

    def spawn(self, arguments: Any, stdout: Any, stderr: Any, stdin: Any = os.devnull) -> Any:
        """Start a command; `serve` with its loop watched."""
        if arguments[0] == "serve":
            arguments = ["shell", "--no-imports", "-c", SERVE % self.port]
        return super().spawn(arguments, stdout, stderr, stdin)

    def longest(self) -> float:
        """Return the longest turn since it was asked before, in seconds of CPU."""
        return max(self.turns(), default=0.0)

    def turns(self) -> list[float]:
        """Return the turns of more than 2 ms since it was asked before, in seconds of CPU."""
        turns = self.data_dir / "turns"
        seconds = [float(line) for line in turns.read_text().splitlines()]
        turns.write_text("")
        return seconds
