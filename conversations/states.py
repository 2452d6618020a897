"""The state topic `fleet`: rows of conversations that changed, latest version wins, coalesced (design 3.5)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from conversations import doorbell, fleet, frames
from conversations.failpoints import should_drop
from conversations.log.events import Stored
from conversations.subscription import Wire, tell_failure
from conversations.threads import DatabaseThreads

logger = logging.getLogger(__name__)

COALESCE = 0.25  # seconds between two frames
HEAL_EVERY = 1.0  # seconds
SNAPSHOT = 100  # rows

Row = dict[str, Any]


class Fleet:
    """What changed among the conversations, for everybody who looks at the list. `start` in the loop."""

    def __init__(self) -> None:
        self.subscribers: set[FleetSubscription] = set()
        self.waiting = 0  # questions that wait for a person
        self._changed: dict[str, None] = {}
        self._versions: dict[str, int] = {}
        self._pool = DatabaseThreads("fleet")
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: list[Callable[[], None]] = []

    def start(self) -> None:
        """Listen to the doorbell."""
        loop = asyncio.get_running_loop()

        def rung(stored: Sequence[Stored]) -> None:
            if self.subscribers and not should_drop("doorbell"):
                loop.call_soon_threadsafe(self._note, {e.conversation for e in stored})

        def heard(heads: Mapping[str, int]) -> None:
            if self.subscribers and not should_drop("doorbell"):
                loop.call_soon_threadsafe(self._note, set(heads))

        self._stop_listening = [doorbell.on_ring(rung), doorbell.on_heard(heard)]
        self._tasks = [
            asyncio.create_task(self._tell(), name="fleet-tell"),
            asyncio.create_task(self._heal(), name="fleet-heal"),
        ]

    async def stop(self) -> None:
        """End it."""
        for stop in self._stop_listening:
            stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown(wait=False)

    async def snapshot(self) -> list[Row]:
        """Answer the newest rows."""
        loop = asyncio.get_running_loop()
        self.waiting = await loop.run_in_executor(self._pool, fleet.waiting)
        return await loop.run_in_executor(self._pool, fleet.newest_rows, SNAPSHOT)

    def _note(self, keys: Iterable[str]) -> None:
        self._changed.update(dict.fromkeys(keys))
        self._wake.set()

    async def _tell(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            keys, self._changed = list(self._changed), {}
            try:
                rows = await loop.run_in_executor(self._pool, fleet.rows, keys) if self.subscribers else []
                self.waiting = await loop.run_in_executor(self._pool, fleet.waiting) if rows else self.waiting
            except Exception:
                logger.exception("the list of conversations could not be read")
                rows = []
            for row in rows:
                self._versions[row["key"]] = row["version"]
            for subscriber in list(self.subscribers):
                subscriber.offer(rows)
            await asyncio.sleep(COALESCE)

    async def _heal(self) -> None:
        """Each second, one query: a conversation that changed unheard is told."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(HEAL_EVERY)
            if not self.subscribers:
                self._versions.clear()
                continue
            try:
                versions = await loop.run_in_executor(self._pool, fleet.versions, SNAPSHOT)
            except Exception:
                logger.exception("the list of conversations could not be looked at")
                continue
            self._versions = {key: self._versions[key] for key in versions if key in self._versions}
            if missed := [key for key, version in versions.items() if self._versions.get(key) != version]:
                self._note(missed)


class FleetSubscription:
    """One socket's view of the list: the rows it has not been sent, by key."""

    def __init__(self, state: Fleet, wire: Wire, *, failed: Callable[[BaseException], None]) -> None:
        self._state, self._wire = state, wire
        self._waiting: dict[str, Row] = {}
        self._event = asyncio.Event()
        state.subscribers.add(self)
        self._task = asyncio.create_task(self._run(), name="subscription fleet")
        self._task.add_done_callback(partial(tell_failure, failed))

    def offer(self, rows: Sequence[Row]) -> None:
        """Keep the latest version of each row until it can be sent."""
        for row in rows:
            kept = self._waiting.get(row["key"])
            if kept is None or kept["version"] <= row["version"]:
                self._waiting[row["key"]] = row
        if rows:
            self._event.set()

    def head(self) -> None:
        """A state topic has no seq; the frame only shows that the connection lives."""
        self._wire.hint(frames.control("head", topic="fleet", seq=0))

    async def _run(self) -> None:
        await self._send(await self._state.snapshot())
        while True:
            await self._event.wait()
            self._event.clear()
            rows, self._waiting = list(self._waiting.values()), {}
            await self._send(rows)

    async def _send(self, rows: list[Row]) -> None:
        frame = {"t": "rows", "topic": "fleet", "rows": rows, "waiting": self._state.waiting}
        text = json.dumps(frame, separators=(",", ":"), ensure_ascii=False)
        await self._wire.frame(frames.Frame(0, 0, text))

    def close(self) -> None:
        """End it."""
        self._state.subscribers.discard(self)
        self._task.cancel()
