"""The recorder's life: standby until the lease is free, then reading and relaying until told to stop (law C, 9).

`manage.py record` runs one; with SQLite `serve` runs one in a thread of its own (`EmbeddedRecorder`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any

import redis
from django.db import Error as DatabaseError

from conversations.core.node_heartbeat import BEAT_EVERY, Heartbeat
from conversations.core.single_process_lease import RENEW_EVERY_S
from conversations.core.status import OK
from conversations.events import commit_listeners
from conversations.transport.recorder.active_recorder import ActiveRecorderLease
from conversations.transport.recorder.database import RecorderDatabase
from conversations.transport.recorder.read_streams import StreamsReader
from conversations.transport.recorder.redis_client import connect
from conversations.transport.recorder.relay import Echoes, Relay
from conversations.transport.recorder.store import EntryStore, RecorderSuperseded

logger = logging.getLogger(__name__)

STANDBY_LOOKS_EVERY = 0.5  # seconds
RELAY_LOOKS_EVERY = 1.0
BACKOFF = (0.1, 0.2, 0.4, 0.8, 1.0)  # seconds before each new try; the last one stays

_EXPECTED = (redis.RedisError, OSError, DatabaseError)  # said in a line; anything else is a bug of ours


class RecorderService:
    """One recorder. `run` returns after `stop`."""

    def __init__(self, url: str, *, from_now: bool = False) -> None:
        self.filing = EntryStore()
        self.is_active = False
        self.redis = "not tried yet"
        self._url, self._from_now = url, from_now
        self._database = RecorderDatabase()
        self._lease = ActiveRecorderLease()
        self._reader: StreamsReader | None = None
        self._relay = Relay(Echoes())
        self._reported_facts: dict[str, Any] = {}
        self._trouble: dict[str, str] = {}  # what cannot be done at this moment, and why
        self._pulse = Heartbeat("recorder", lambda: self._reported_facts)
        self._pulse.name = f"{self._pulse.name[:91]}-recorder"  # a process that serves has a row of its own
        self._rate = EntryRate()
        self._stopped = asyncio.Event()
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        """Record whenever this is the active one. Trouble with Redis or the database is waited out."""
        self._loop = asyncio.get_running_loop()
        forget = commit_listeners.on_posted(self._posted)
        work = [asyncio.create_task(self._lead(), name="lead"), asyncio.create_task(self._beat(), name="beat")]
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait([*work, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            forget()
            self._stopped.set()
            for task in (*work, stopped):
                task.cancel()
            await asyncio.wait(work)
            await self._end()
        for task in work:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def stop(self) -> None:
        """End `run`; from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)

    @property
    def trouble(self) -> str:
        """What keeps this recorder from its work at this moment; empty when nothing does."""
        return "; ".join(f"{what}: {why}" for what, why in self._trouble.copy().items())

    def facts(self) -> dict[str, Any]:
        """Return how it goes: what the ops page and the metrics show of a recorder."""
        reader = self._reader
        return {
            "active": self.is_active,
            "lag_s": round(reader.lag_s, 3) if reader else 0.0,
            "streams": len(reader.streams) if reader else 0,
            "hot": len(reader.streams.hot()) if reader else 0,
            "events": self.filing.events,
            "events_per_s": self._rate.of(self.filing.events),
            "gaps": self.filing.gaps,
            "quarantined": self.filing.quarantined,
            "unsent_posts": self._relay.waiting,
            "redis": self.redis,
            "warnings": [self.trouble] if self.trouble and self.redis == OK else [],
        }

    async def _end(self) -> None:
        """Let the standby go on, and leave no row behind, as far as the database can be had."""
        for last in (self._lease.release, self._pulse.stop):
            try:
                await self._database(last)
            except Exception as error:
                self._note("ending", error)
        await self._database.close()

    async def _lead(self) -> None:
        while not self._stopped.is_set():
            try:
                is_mine = await self._database(self._lease.take)
                self._note_end("lease")
                if is_mine:
                    await self._lead_once()
            except RecorderSuperseded as reason:
                logger.warning("recorder: standing by: %s", reason)
            except Exception as error:
                self._note("lease", error)
            await asyncio.sleep(STANDBY_LOOKS_EVERY)

    def _note(self, what: str, error: Exception, *, is_old: bool = False) -> None:
        """Keep why something cannot be done, and log what is new of it: a bug of ours with where it was made."""
        why = (str(error).splitlines() or [""])[0] or type(error).__name__
        before, self._trouble[what] = self._trouble.get(what), why
        if not isinstance(error, _EXPECTED):
            if why != before:
                logger.error("recorder: %s", what, exc_info=error)
        elif before is None and not is_old:
            logger.warning("recorder: %s: %s", what, error)

    def _note_end(self, what: str) -> None:
        """Log that something can be done again."""
        if self._trouble.pop(what, None) is not None:
            logger.info("recorder: %s works again", what)

    async def _lead_once(self) -> None:
        """Be the active recorder until another one is. Raises Superseded, or why the lease cannot be kept."""
        self.is_active = True
        loops = (self._keep_lease(), self._wait_out(self._record, "reading"), self._wait_out(self._send, "relay"))
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            self.is_active = False  # every loop looks at it: on its way through libraries a cancellation may get lost
            await _cancel(tasks)
            self._reader = None
            for what in ("reading", "relay"):
                self._trouble.pop(what, None)

    async def _keep_lease(self) -> None:
        while self.is_active:
            await asyncio.sleep(RENEW_EVERY_S)
            if self._reader is not None:
                self._lease.looked_at = self._reader.looked_at
            if not await self._database(self._lease.renew):
                raise RecorderSuperseded("another recorder took over")

    async def _wait_out(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        """Do it again and again, every second at least: what Redis or the database cannot do now, it can later, and
        a bug of ours with one thing is not a reason to leave all the others."""
        tries = 0
        while self.is_active:
            began = time.monotonic()
            try:
                await work()
            except RecorderSuperseded:
                raise
            except Exception as error:
                tries = 1 if time.monotonic() - began > 5 * BACKOFF[-1] else tries + 1
                if what == "reading" and isinstance(error, redis.RedisError | OSError):
                    self.redis = str(error) or type(error).__name__
                self._note(what, error, is_old=tries > 1)
                await asyncio.sleep(BACKOFF[min(tries, len(BACKOFF) - 1)])

    async def _record(self) -> None:
        """Read until something fails. Nothing that was read is lost by it: positions say what is stored."""
        client = connect(self._url)
        echoes = self._relay.echoes
        reader = StreamsReader(
            client, self._database, self.filing, echoes, looked_at=self._lease.looked_at, from_now=self._from_now
        )
        try:
            await reader.resume()
            self.redis, self._reader = OK, reader
            while self.is_active:
                await reader.round()
                self._note_end("reading")
        finally:
            self._lease.looked_at = reader.looked_at
            await _quietly(client.aclose())

    async def _send(self) -> None:
        """Relay until something fails."""
        client = connect(self._url)
        self._relay.begin_anew()
        try:
            while self.is_active:
                self._news.clear()
                while posts := await self._database(self._relay.unsent):
                    sent, error = await self._relay.send(client, posts)
                    await self._database(self._relay.mark, posts, sent)
                    if error is not None:
                        raise error
                self._note_end("relay")
                await _wait(self._news, RELAY_LOOKS_EVERY)
        finally:
            await _quietly(client.aclose())

    async def _beat(self) -> None:
        while not self._stopped.is_set():
            try:
                self._reported_facts = self.facts()  # here, in the loop: the reader's streams change in it
                await self._database(self._pulse.beat)
            except Exception as error:
                self._note("telling of itself", error)
            else:
                self._note_end("telling of itself")
            await asyncio.sleep(BEAT_EVERY)

    def _posted(self, _: Collection[str]) -> None:
        if self._loop is not None and self.is_active and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)


class EntryRate:
    """Events per second between two calls."""

    def __init__(self) -> None:
        self._at, self._count = time.monotonic(), 0

    def of(self, count: int) -> float:
        """Return the rate since the last call."""
        now = time.monotonic()
        rate = (count - self._count) / max(now - self._at, 0.001)
        self._at, self._count = now, count
        return round(rate, 1)


class EmbeddedRecorder(threading.Thread):
    """A recorder inside another process, in a thread and event loop of its own: reading never delays the sockets'
    loop."""

    def __init__(self, url: str) -> None:
        super().__init__(name="recorder", daemon=True)
        self.service = RecorderService(url)

    def run(self) -> None:
        """Record until `close`."""
        try:
            asyncio.run(self.service.run())
        except Exception:
            logger.exception("the recorder ended")

    @property
    def state(self) -> str:
        """Return `ok`, or why nothing is recorded now."""
        return (self.service.trouble or OK) if self.is_alive() else "the recording thread has ended"

    def close(self) -> None:
        """Finish the work in progress and end."""
        self.service.stop()
        if self.is_alive():
            self.join()


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, repeatedly if needed: before Python 3.12 `wait_for` may lose a cancellation."""
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=0.2)


async def _quietly(closing: Awaitable[None]) -> None:
    with contextlib.suppress(redis.RedisError, OSError):  # it is gone already
        await closing


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
