"""How uvicorn runs here: one place for `serve` and for the benchmarks."""

import asyncio
import logging
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

from dashboard.http_protocol import BoundedHttp
from dashboard.protocol import FrameProtocol

logger = logging.getLogger(__name__)

DRAIN = 10.0  # seconds what is queued may take to be written


class Server(uvicorn.Server):
    """Stops in the order of design 9: readiness off, intake stopped, queue flushed; then sockets 1012, and the end."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain before anything is closed, so that whoever waits for an answer has it."""
        try:
            await asyncio.wait_for(self._drain(), DRAIN)
        except Exception:
            logger.exception("what was queued could not be written before the end")
        await super().shutdown(sockets)


def config(app: Any, host: str, port: int) -> uvicorn.Config:
    """Answer uvicorn's configuration (design, section 6)."""
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
