"""A server of ours in a thread, for an app that a test wrote."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from dashboard.server.draining_server import config
from tests.support.live import free_port, until


async def answer_lifespan(receive: Any, send: Any) -> None:
    """Confirm a server's start and its end, for an app that has nothing to do at either."""
    while (message := await receive())["type"] != "lifespan.shutdown":
        await send({"type": f"{message['type']}.complete"})
    await send({"type": "lifespan.shutdown.complete"})


@contextmanager
def threaded_server(app: Any) -> Iterator[uvicorn.Server]:
    """Serve an ASGI app on a free port of loopback (`server.config.port`) until the end."""
    server = uvicorn.Server(config(app, "127.0.0.1", free_port()))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield server
    finally:
        server.should_exit = True
        thread.join(60)
