"""What lives in a server process beside its requests: writer, hub, states, watch, presence, ear. Built by `asgi`."""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence

from django.conf import settings
from django.db import DatabaseError

from conversations import epoch, log, relayed
from conversations.errors import Unavailable
from conversations.hearing import Ear
from conversations.hub import Hub
from conversations.lasting import repeat
from conversations.log.events import NewEvent, Stored
from conversations.management import tables
from conversations.nodes import Pulse
from conversations.presence import Presence
from conversations.search import Indexer
from conversations.states import Approvals, Fleet, State
from conversations.threads import DatabaseThreads, unavailable
from conversations.vitals import Vitals
from conversations.watch import TRY_AGAIN, Watch

logger = logging.getLogger(__name__)

FOLLOW_EVERY = 1.0  # seconds between two looks at the epoch
LOOK_AGAIN = 0.5  # seconds between two looks for tables that are not there yet


class Engine:
    """Made before the loop runs; `start` and `stop` run in it."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.hub = Hub(epoch="", hold=self.watch.hold)
        self.writer = log.Writer()
        self.fleet = Fleet()
        self.states: dict[str, State] = {"fleet": self.fleet, "approvals": Approvals()}
        self.presence = Presence()
        self.ear = Ear()
        self.state = "starting"  # else `ok` or `stopping`; while starting, what it waits for
        self.url = ""
        self.publishes: Counter[int] = Counter()  # HTTP answers by status
        self.responses: Counter[str] = Counter()  # of `/v1/responses`: how each came out, or the status of a refusal
        self.indexer: Indexer | None = None  # where this process keeps the search index
        self.further_parts: dict[str, Callable[[], str]] = {}  # what else this process runs: `ok` or why not
        self._pulse: Pulse | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._may_be_restored = True

    @property
    def is_ready(self) -> bool:
        """Tell whether it takes and sends."""
        return self.state == "ok"

    async def start(self, *, waits: bool = False) -> None:
        """Begin to take and to send. `waits`: first for a database that others bring up to date."""
        asyncio.get_running_loop().set_default_executor(DatabaseThreads("errand"))  # of every `to_thread`
        if waits:
            await self._until_migrated()
        self.hub.epoch = await asyncio.to_thread(epoch.current)
        if settings.CONFIG.redis_url:
            await asyncio.to_thread(relayed.begin)
        self.hub.start()
        for state in self.states.values():
            state.start()
        self.watch.start()
        self.presence.start()
        self.ear.start()
        self.writer.start()
        self._pulse = Pulse("web", Vitals(self).facts)
        self._tasks = [
            asyncio.create_task(repeat(self._pulse.beat_in_thread, what="the pulse"), name="pulse"),
            asyncio.create_task(repeat(self._follow_epoch, what="following the epoch"), name="epoch"),
        ]
        self.state = "ok"

    async def drain(self) -> None:
        """Be no longer ready, take nothing more, write what is queued."""
        self.state = "stopping"
        await asyncio.to_thread(self.writer.close)

    async def stop(self) -> None:
        """Drain and end everything."""
        await self.drain()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._pulse is not None:
            with contextlib.suppress(Unavailable):  # then the row is forgotten in its time
                await asyncio.to_thread(self._pulse.stop)
        await asyncio.gather(
            self.ear.stop(),
            self.presence.stop(),
            self.hub.stop(),
            *(state.stop() for state in self.states.values()),
            self.watch.stop(),
        )

    async def _until_migrated(self) -> None:
        """Look until the tables are up to date, and say once what there is to wait for."""
        while reason := await asyncio.to_thread(_missing):
            if reason != self.state:
                logger.warning("%s", reason)
                self.state = reason
            await asyncio.sleep(LOOK_AGAIN)

    async def store(self, events: Sequence[NewEvent]) -> list[Stored]:
        """Store events together; return after the commit. Raises Busy, Unavailable, or what made them unfit."""
        done: asyncio.Future[list[Stored]] = asyncio.get_running_loop().create_future()
        self.writer.submit(events, done)
        return await done

    def head(self, key: str) -> int:
        """Answer a conversation's head. Sync; call it in a thread."""
        return log.head(key)

    def change_epoch(self, old: str) -> None:
        """History went back under an open client: start a new epoch, once. Sync; call it in a thread.

        Only a stopped server's file can be swapped, and after the first change nobody's epoch is from before the start:
        whoever claims it again is mistaken, or means to have every open page load anew.
        """
        if self._may_be_restored:
            self._may_be_restored = False
            self.hub.epoch = epoch.change(old)

    async def _follow_epoch(self) -> None:
        """PostgreSQL may be restored under running servers, and another one found it out: clients start afresh."""
        await asyncio.sleep(FOLLOW_EVERY)
        now = await asyncio.to_thread(epoch.current)
        if now != self.hub.epoch:
            self.hub.epoch = now
            for socket in list(self.watch.sockets):
                socket.dismiss(TRY_AGAIN)


def _missing() -> str:
    try:
        return "waiting for migrations: run `switchboard migrate`" if tables.is_behind() else ""
    except DatabaseError as error:
        return str(unavailable(error))
