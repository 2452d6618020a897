"""The process: doors and the socket beside Django, and the engine in the lifespan. It alone knows them all."""

import asyncio
import gc
import logging
import os
import sys
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import django

django.setup(set_prefix=False)

from django.conf import settings
from servestatic import ServeStaticASGI

from conversations import refusals
from conversations.consumers import Socket
from conversations.doors.bearers import Bearers
from conversations.doors.health import HealthDoor
from conversations.doors.http import Door, Receive, Scope, Send
from conversations.doors.imports import ImportDoor
from conversations.doors.key import KeyDoor
from conversations.doors.publish import PublishDoor
from conversations.doors.topics import PREFIX as TOPICS
from conversations.doors.topics import TopicDoor
from conversations.engine import Engine
from conversations.epoch import HighWater
from conversations.lasting import repeat
from dashboard.demo import Demo
from dashboard.handler import PageHandler

logger = logging.getLogger(__name__)

SWITCH_INTERVAL = 0.0001  # seconds: the loop and the writer get their turn beside busy threads
HIGH_WATER_EVERY = 1.0  # seconds
REFUSALS_EVERY = 20.0  # seconds between two looks at what was counted


class Application:
    """Routes by path; owns the engine's life."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.bearers = Bearers()
        self.key = KeyDoor(settings.DATA_DIR, self.bearers)
        self.demo = Demo(self.engine)
        self.url = ""  # set by `serve`: where the door is
        self.with_demo = False
        health = HealthDoor(self.engine)
        self._doors: dict[str, Door] = {
            "/api/v1/publish": PublishDoor(self.engine, self.bearers),
            "/api/v1/import": ImportDoor(self.bearers),
            "/api/v1/door": self.key,
            "/healthz": health,
            "/readyz": health,
        }
        self._doors_below: dict[str, Door] = {TOPICS: TopicDoor(self.bearers)}
        self._socket = Socket.as_asgi(engine=self.engine)
        self._pages = PageHandler()
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "websocket":
            await (self._socket if scope["path"] == "/ws/" else _no_such_socket)(scope, receive, send)
        else:
            await self._door(scope["path"])(scope, receive, send)

    def _door(self, path: str) -> Door:
        if door := self._doors.get(path):
            return door
        return next((door for prefix, door in self._doors_below.items() if path.startswith(prefix)), self._pages)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _start(self) -> None:
        sys.setswitchinterval(SWITCH_INTERVAL)
        await self.engine.start()
        if self.url:
            self.key.open(self.url)
            self._tasks.append(asyncio.create_task(repeat(_keep_high_water, what="high-water"), name="high-water"))
        if self.with_demo:
            self._tasks.append(asyncio.create_task(self.demo.run(), name="demo"))
        self._tasks.append(asyncio.create_task(repeat(_write_refusals, what="counting refusals"), name="refusals"))
        for task in self._tasks:
            task.add_done_callback(_log_failure)
        gc.collect()
        gc.freeze()

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(refusals.flush, everything=True)
        await self.engine.stop()
        if self.url:
            await asyncio.to_thread(HighWater(settings.DATA_DIR).write)


async def _keep_high_water() -> None:
    await asyncio.sleep(HIGH_WATER_EVERY)
    await asyncio.to_thread(HighWater(settings.DATA_DIR).write)


async def _write_refusals() -> None:
    await asyncio.sleep(REFUSALS_EVERY)
    await asyncio.to_thread(refusals.flush)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("task %s ended", task.get_name(), exc_info=task.exception())


async def _no_such_socket(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1000})


application = Application()


def with_static(app: Door) -> Any:
    """Serve collected static files in front, hashed names for a year."""
    return ServeStaticASGI(
        app, root=settings.STATIC_ROOT, prefix="static", allow_all_origins=False, add_headers_function=_guard_file
    )


def _guard_file(headers: Any, path: str, url: str) -> None:
    headers["X-Content-Type-Options"] = "nosniff"
    headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
