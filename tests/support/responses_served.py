"""The responses door behind the real server protocols, on a port, in the test's own process and database."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from conversations.asgi.responses.routes import ResponsesRoutes
from conversations.asgi.responses.websocket import ResponsesSocket
from dashboard.server.draining_server import config
from tests.support.live import free_port, until
from tests.support.response_desk import Desk, desk_open


class Served(threading.Thread):
    """uvicorn with our protocols around the routes of a desk."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(name="served", daemon=True)
        self.desk, self.port = desk, free_port()
        door = ResponsesRoutes(desk.context)
        upgrade = ResponsesSocket(desk.context)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "lifespan":
                return
            await (upgrade if scope["type"] == "websocket" else door)(scope, receive, send)

        settings = config(app, "127.0.0.1", self.port)
        settings.lifespan = "off"
        self.server = uvicorn.Server(settings)

    @property
    def url(self) -> str:
        """What a client's `base_url` is."""
        return f"http://127.0.0.1:{self.port}/v1"

    def run(self) -> None:
        """Serve until it is told to exit."""
        with asyncio.Runner(loop_factory=self.server.config.get_loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self.desk.runtime.socket_registry.start()
        await self.server.serve()
        await self.desk.runtime.socket_registry.stop()
        await self.desk.context.followers.stop()

    def connect(self) -> socket.socket:
        """Open a connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def close(self) -> None:
        """Stop it."""
        self.server.should_exit = True
        self.join(60)


@contextmanager
def served_desk() -> Iterator[Served]:
    """Serve a desk with a stand-in behind it."""
    with desk_open() as desk:
        served = Served(desk)
        served.start()
        try:
            until(lambda: served.server.started, what="the door to be served")
            yield served
        finally:
            served.close()
            assert not served.is_alive()
