"""Read events that were committed elsewhere for the hub, once for all subscribers: one query for all feeds that are
behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from conversations.core.background_loop import run_forever
from conversations.core.db_threads import DatabaseThreads
from conversations.events.log import read_many
from conversations.events.log.records import Stored

if TYPE_CHECKING:
    from conversations.realtime.feed import Feed


MAX_KEYS = 200  # conversations of one query
AGAIN = 1.0  # seconds after a query that failed


class CatchUpReader:
    """Tracks which feeds are behind the database. `take` gets their events, without gaps, after those they have."""

    def __init__(self, readers: DatabaseThreads, take: Callable[[Feed, Sequence[Stored]], None]) -> None:
        self._readers, self._take = readers, take
        self._behind: dict[Feed, None] = {}
        self._wake = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, in the hub's loop."""
        self.task = asyncio.create_task(run_forever(self._round, what="reading what others stored"), name="hub-fetch")

    def fetch(self, feed: Feed) -> None:
        """Queue a feed to be brought up to its head."""
        feed.is_fetching = True
        self._behind[feed] = None
        self._wake.set()

    def go_on(self) -> None:
        """Check again: a feed that had too many events to render has room."""
        self._wake.set()

    async def _round(self) -> None:
        await self._wake.wait()
        self._wake.clear()
        for feed in [feed for feed in self._behind if not _is_wanting(feed)]:
            self._finish(feed)
        ready = [feed for feed in self._behind if feed.has_room][:MAX_KEYS]
        if not ready:
            return
        places: dict[str, int] = {}
        for feed in ready:
            places[feed.key] = min(feed.last_taken_seq or 0, places.get(feed.key, 1 << 62))
        try:
            events_by_key, is_whole = await self._read(places)
        except Exception:
            await asyncio.sleep(AGAIN)
            self._wake.set()
            raise
        for feed in ready:
            self._give(feed, events_by_key.get(feed.key, []), is_whole=is_whole)
        if any(feed.has_room for feed in self._behind):
            self._wake.set()

    async def _read(self, places: Mapping[str, int]) -> tuple[dict[str, list[Stored]], bool]:
        return await self._readers.run(read_many.read_after_many, places)

    def _give(self, feed: Feed, events: list[Stored], *, is_whole: bool) -> None:
        taken = feed.last_taken_seq or 0
        fresh = [event for event in events if event.seq > taken]
        if fresh:
            self._take(feed, fresh)
        elif is_whole:
            feed.head = taken  # notified of more than there is
        if not _is_wanting(feed):
            self._finish(feed)
        else:
            self._behind[feed] = self._behind.pop(feed, None)  # the others first

    def _finish(self, feed: Feed) -> None:
        self._behind.pop(feed, None)
        feed.is_fetching = False
        feed.wake()


def _is_wanting(feed: Feed) -> bool:
    return bool(feed.subscribers) and feed.head > (feed.last_taken_seq or 0)
