"""Uvicorn with an orderly stop, on SIGTERM and SIGINT, and its configuration. Used by `serve`; the benchmarks share
`config`."""

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

import uvicorn
from django.conf import settings

from dashboard.server.http_protocol import BoundedHttp
from dashboard.server.websocket_protocol import FrameProtocol

logger = logging.getLogger(__name__)

TICK_EVERY = 1.0  # seconds
MIN_DRAIN = 10.0  # seconds that runs, and then what is queued, have at the least
AFTER_DRAIN = 20.0  # seconds for all else: threads that wait for a database cannot be ended otherwise


class DrainingServer(uvicorn.Server):
    """Stops in the order of §9: not ready, no new requests, queues flushed; then sockets closed with 1012, then the
    end. `on_listening` is awaited once the port answers; if it fails, the server ends with its exception."""

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Callable[[], Awaitable[None]],
        on_listening: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self._drain, self._on_listening = drain, on_listening
        self._wake: Callable[[], object] = lambda: None
        self.failure: Exception | None = None  # what `on_listening` raised

    def end(self) -> None:
        """Stop in order. For any thread."""
        self.should_exit = True
        self._wake()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, open the port, then say so, which may take as long as it wants."""
        await super().startup(sockets)
        if self.started:
            self._greeting = asyncio.create_task(self._greet())

    async def _greet(self) -> None:
        try:
            await self._on_listening()
        except Exception as error:
            self.failure = error
            self.end()

    async def main_loop(self) -> None:
        """Wait for the stop, and update the Date header once a second; uvicorn's own loop wakes ten times a second."""
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(stopped.set)
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TICK_EVERY):
                    await stopped.wait()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the stop now rather than at the next tick; `shutdown` drains. Called by uvicorn for a signal."""
        super().handle_exit(sig, frame)
        self._wake()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain before anything is closed, so that every waiting client gets its response."""
        limit = drain_limit(settings.CONFIG.stop_s)
        last = threading.Timer(limit + AFTER_DRAIN, _end, [limit + AFTER_DRAIN])
        last.daemon = True  # an orderly end comes before it
        last.start()
        try:
            await asyncio.wait_for(self._drain(), limit)
        except Exception:
            logger.exception("what was queued could not be written before the end")
        await super().shutdown(sockets)


def drain_limit(stop_s: float) -> float:
    """Return how many seconds a drain may take: runs may continue for `stop_s`, half as long again if one has to be
    aborted, and then their last events are written."""
    return max(MIN_DRAIN, 1.5 * stop_s + 2.5)


def _end(after: float) -> None:
    """End the process without clean-up, `after` seconds from now. Nothing acknowledged is lost: it is in the
    database."""
    logger.error("the shutdown took longer than %.0f s: something still waits for the database", after)
    logging.shutdown()
    os._exit(1)


def config(app: Any, host: str, port: int) -> uvicorn.Config:
    """Return uvicorn's configuration (§6)."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        http=BoundedHttp,
        proxy_headers=False,  # else a client on this machine names its own address, and the throttle counts nothing
        ws=FrameProtocol,
        lifespan="on",
        log_config=None,  # ours: one format, secrets masked
        log_level="warning",
        access_log=False,
        backlog=4096,
        ws_max_size=64 * 1024,
        ws_ping_interval=20,
        ws_ping_timeout=40,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=5,
        server_header=False,
    )
