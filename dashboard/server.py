"""How uvicorn runs here: one place for `serve` and for the benchmarks."""

import sys
from typing import Any

import uvicorn

from dashboard.http_protocol import BoundedHttp
from dashboard.protocol import FrameProtocol


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
