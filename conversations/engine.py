"""What lives in a server process beside its requests: writer, hub, fleet, watch. Built by `dashboard.asgi`."""

import asyncio
from collections.abc import Sequence

from conversations import epoch, log
from conversations.hub import Hub
from conversations.log.events import NewEvent, Stored
from conversations.states import Fleet
from conversations.threads import DatabaseThreads
from conversations.watch import Watch

ERRANDS = 8  # threads


class Engine:
    """Made before the loop runs; `start` and `stop` run in it."""

    def __init__(self) -> None:
        self.hub = Hub(epoch="")
        self.writer = log.Writer()
        self.watch = Watch()
        self.fleet = Fleet()
        self.is_ready = False
        self._may_be_restored = True

    async def start(self) -> None:
        """Begin to take and to send."""
        asyncio.get_running_loop().set_default_executor(DatabaseThreads(ERRANDS, "errand"))  # of every `to_thread`
        self.hub.epoch = await asyncio.to_thread(epoch.current)
        self.hub.start()
        self.fleet.start()
        self.watch.start()
        self.writer.start()
        self.is_ready = True

    async def stop(self) -> None:
        """Take nothing more, write what is queued, end everything."""
        self.is_ready = False
        await asyncio.to_thread(self.writer.close)
        await asyncio.gather(self.hub.stop(), self.fleet.stop(), self.watch.stop())

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
