"""The long-lived parts of a server process that its endpoints use: writer, hub, live lists, socket registry, presence,
broadcast listener. Created by `asgi`, which starts and stops them.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable
from functools import partial

from django.conf import settings
from django.db import DatabaseError

from conversations.access.authentication import RECONNECT
from conversations.core import schema_state
from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.byte_budget import BoundedMemory
from conversations.core.db_threads import DatabaseThreads, unavailable
from conversations.core.errors import Unavailable
from conversations.core.node_heartbeat import Heartbeat
from conversations.core.status import OK
from conversations.events import epoch, log
from conversations.realtime.broadcast_listener import BroadcastListener
from conversations.realtime.hub import Hub
from conversations.realtime.node_facts import NodeMetrics
from conversations.realtime.presence import Presence
from conversations.realtime.rollback_watch import RollbackWatch
from conversations.realtime.socket_registry import GuardedSocket, SocketRegistry
from conversations.realtime.state_topics import ApprovalsTopic, AuditTopic, ConversationListTopic, StateTopic
from conversations.search import Indexer
from conversations.transport import relay_start

logger = logging.getLogger(__name__)


class ServerRuntime:
    """The runtime of a server process. Created before the loop runs; `start` and `stop` run in it."""

    def __init__(self) -> None:
        self.socket_registry = SocketRegistry()
        self.hub = Hub(epoch="", send_gate=self.socket_registry.send_gate, ring_bytes=settings.CONFIG.rings_mib << 20)
        self.budgets: dict[str, BoundedMemory] = {"rings": self.hub.rings}  # of what is held for readers, by what
        self.writer = log.WriterThreads()
        self.fleet = ConversationListTopic()
        self.state_topics: dict[str, StateTopic] = {
            state.topic: state for state in (self.fleet, ApprovalsTopic(), AuditTopic())
        }
        self.presence = Presence()
        self.broadcast_listener = BroadcastListener()
        self.state = "starting"  # else `ok` or `stopping`; while starting, what it waits for
        self.url = ""
        self.publishes: Counter[int] = Counter()  # HTTP answers by status
        self.responses: Counter[str] = Counter()  # of `/v1/responses`: how each came out, or the status of a refusal
        self.indexer: Indexer | None = None  # where this process keeps the search index
        self.further_parts: dict[str, Callable[[], str]] = {}  # what else this process runs: `ok` or why not
        self._pulse: Heartbeat | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._may_be_restored = True

    @property
    def is_ready(self) -> bool:
        """Return whether it accepts and sends events."""
        return self.state == OK

    async def start(self, *, waits: bool = False) -> None:
        """Start accepting and sending. With `waits`, first wait for a database that others migrate."""
        asyncio.get_running_loop().set_default_executor(DatabaseThreads("errand"))  # of every `to_thread`
        rollback = RollbackWatch(settings.DATA_DIR)
        await (self._until_prepared(rollback) if waits else self._prepare(rollback))
        self.hub.start()
        for state in self.state_topics.values():
            state.start()
        self.socket_registry.start()
        self.presence.start()
        self.broadcast_listener.start()
        self.writer.start()
        self._pulse = Heartbeat("web", NodeMetrics(self).facts)
        self._tasks = [
            asyncio.create_task(run_forever(self._pulse.beat_in_thread, what="the pulse"), name="pulse"),
            asyncio.create_task(
                run_forever(partial(self._follow_epoch, rollback), what="following the epoch"), name="epoch"
            ),
        ]
        self.state = OK

    async def drain(self) -> None:
        """Become not ready, accept nothing more, and write what is queued."""
        self.state = "stopping"
        await asyncio.to_thread(self.writer.close)

    async def stop(self) -> None:
        """Drain and end everything."""
        await self.drain()
        await cancel_all(self._tasks)
        if self._pulse is not None:
            with contextlib.suppress(Unavailable):  # then the row is forgotten in its time
                await asyncio.to_thread(self._pulse.stop)
                await asyncio.to_thread(RollbackWatch(settings.DATA_DIR).write)
        await asyncio.gather(
            self.broadcast_listener.stop(),
            self.presence.stop(),
            self.hub.stop(),
            *(state.stop() for state in self.state_topics.values()),
            self.socket_registry.stop(),
        )

    async def _prepare(self, rollback: RollbackWatch) -> None:
        """Check the state of the database before anything is served. Repeating it has no further effect."""
        await asyncio.to_thread(rollback.look)
        self.hub.epoch = await asyncio.to_thread(epoch.current)
        if settings.CONFIG.redis_url:
            await asyncio.to_thread(relay_start.ensure_start)

    async def _until_prepared(self, rollback: RollbackWatch) -> None:
        """Wait until the tables are up to date; start again if the database becomes unavailable after that."""
        while True:
            await self._until_migrated()
            try:
                await self._prepare(rollback)
            except (Unavailable, DatabaseError) as error:
                self.state = error.message if isinstance(error, Unavailable) else unavailable(error).message
                logger.warning("%s (%s)", self.state, error)
                await asyncio.sleep(schema_state.POLL_S)
            else:
                return

    async def _until_migrated(self) -> None:
        """Poll until the tables are up to date, and log once what it is waiting for."""
        while reason := await asyncio.to_thread(_missing):
            if reason != self.state:
                logger.warning("%s", reason)
                self.state = reason
            await asyncio.sleep(schema_state.POLL_S)

    async def change_epoch(self, old: str, *, spared: GuardedSocket) -> bool:
        """Start a new epoch, once, because a client has seen a later history than the database has. Return whether this
        process is in a new epoch.

        Every socket except `spared`, the client's own, is closed, because it follows the previous epoch.

        Only a stopped server's file can be replaced, and after the first change no client has an epoch from before the
        start: a client that claims so again is mistaken, or wants to make every open page reload.
        """
        if not self._may_be_restored:
            return False
        change = self.hub.readers.run(epoch.change, old)
        change.add_done_callback(self._note_change)
        return self._begin_epoch(await asyncio.shield(change), spared=spared)  # it goes on if this socket closes

    def _note_change(self, change: asyncio.Future[str]) -> None:
        """Believe no further client, once the epoch has changed: if the database was away, the next one is needed."""
        if not change.cancelled() and change.exception() is None:
            self._may_be_restored = False

    async def _follow_epoch(self, rollback: RollbackWatch) -> None:
        """Follow an epoch change that this process or another one detected: PostgreSQL may be restored under running
        servers. Clients start again, even if the high-water mark cannot be written to a file."""
        before = self.hub.epoch
        try:
            await rollback.again()
        finally:
            if rollback.epoch and self.hub.epoch == before:  # else a client has begun a new one meanwhile
                self._begin_epoch(rollback.epoch)

    def _begin_epoch(self, now: str, *, spared: GuardedSocket | None = None) -> bool:
        """Close everything that follows the previous history. Return whether the epoch has changed."""
        if now == self.hub.epoch:
            return False
        self.hub.epoch = now
        for socket in self.socket_registry.guarded:
            if socket is not spared:
                socket.dismiss(RECONNECT)
        return True


def _missing() -> str:
    try:
        return schema_state.WAITING if schema_state.is_behind() else ""
    except DatabaseError as error:
        return str(unavailable(error))
