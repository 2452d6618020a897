"""Follows the record for the door: what is committed to a conversation after a seq, in order, nothing left out.

What this process commits comes by the doorbell with its events; what others commit is read, and so is what came too
fast for a reader to keep up with: a follower holds at most 1,000 events or 4 MiB. One query a second heals a lost ring.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from conversations import doorbell, log
from conversations.failpoints import should_drop
from conversations.lasting import repeat
from conversations.log.events import Stored
from conversations.threads import DatabaseThreads

logger = logging.getLogger(__name__)

MAX_EVENTS, MAX_SIZE = 1000, 4 << 20  # events, and characters, that a follower holds
HEAL_EVERY = 1.0  # seconds


class Follower:
    """One reader of one conversation, from after `last` on. Its methods belong to the loop."""

    def __init__(self, key: str, last: int) -> None:
        self.key, self.last = key, last
        self.head = 0  # the newest seq anybody told us of
        self._ready: deque[Stored] = deque()
        self._size = 0
        self._news = asyncio.Event()

    def offer(self, events: Sequence[Stored]) -> None:
        """Take what follows what is here; anything else is read later."""
        self.head = max(self.head, events[-1].seq)
        for event in events:
            newest = self._ready[-1].seq if self._ready else self.last
            if event.seq == newest + 1 and len(self._ready) < MAX_EVENTS and self._size < MAX_SIZE:
                self._ready.append(event)
                self._size += len(event.body)
        self._news.set()

    def told(self, seq: int) -> None:
        """The conversation is at this seq."""
        if seq > self.head:
            self.head = seq
            self._news.set()

    def wake(self) -> None:
        """Look up: something else than the record has changed."""
        self._news.set()

    def take(self) -> list[Stored]:
        """Answer what is here and follows `last`: a read may have overtaken some of it, or left a hole before it."""
        taken, self._size = [event for event in self._ready if event.seq > self.last], 0
        self._ready.clear()
        if not taken or taken[0].seq != self.last + 1:
            return []
        self.last = taken[-1].seq
        return taken

    @property
    def is_behind(self) -> bool:
        """Tell whether there is more than what is here."""
        return self.head > (self._ready[-1].seq if self._ready else self.last)

    async def news(self, seconds: float) -> None:
        """Wait until there is something, or for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()


class Followers:
    """All followers of one process. It listens from the first one on, in the loop it is asked in."""

    def __init__(self) -> None:
        self.readers = DatabaseThreads("responses")
        self._by_key: dict[str, tuple[Follower, ...]] = {}
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._healing: asyncio.Task[None] | None = None
        self._deaf: list[Callable[[], None]] = []

    def listen(self) -> None:
        """Begin to listen. Called in the loop, before anything is followed."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._deaf = [doorbell.on_ring(self._rung), doorbell.on_heard(self._heard)]
            self._healing = asyncio.create_task(repeat(self._heal, what="following responses"), name="responses-heal")

    async def stop(self) -> None:
        """Listen no more."""
        for end in self._deaf:
            end()
        if self._healing is not None:
            self._healing.cancel()
            await asyncio.gather(self._healing, return_exceptions=True)
        self._loop, self._healing, self._deaf = None, None, []

    def follow(self, key: str, after: int) -> Follower:
        """Follow from after a seq. Sync and from any thread with a database: it looks once for what came meanwhile."""
        follower = Follower(key, after)
        with self._guard:
            self._by_key[key] = (*self._by_key.get(key, ()), follower)
        follower.head = log.head(key)
        return follower

    def leave(self, follower: Follower) -> None:
        """Follow no more."""
        with self._guard:
            rest = tuple(one for one in self._by_key.get(follower.key, ()) if one is not follower)
            if rest:
                self._by_key[follower.key] = rest
            else:
                self._by_key.pop(follower.key, None)

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self._by_key.values()))

    async def next(self, follower: Follower, seconds: float) -> list[Stored]:
        """Answer what came after the last that was answered, in order; nothing when the time has passed."""
        if not (taken := follower.take()) and not follower.is_behind:
            await follower.news(seconds)
            taken = follower.take()
        if not taken and follower.is_behind:
            loop = asyncio.get_running_loop()
            taken = await loop.run_in_executor(self.readers, log.read_after, follower.key, follower.last)
            if taken:
                follower.last = taken[-1].seq
            else:
                follower.head = follower.last  # told of more than there is
        return taken

    def _rung(self, stored: Sequence[Stored]) -> None:
        """In the thread that committed: pass on what somebody follows."""
        if not self._by_key or self._loop is None or should_drop("doorbell"):
            return
        wanted: dict[str, list[Stored]] = {}
        for event in stored:
            if event.conversation in self._by_key:
                wanted.setdefault(event.conversation, []).append(event)
        if wanted:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody who follows
                self._loop.call_soon_threadsafe(self._give, wanted)

    def _give(self, wanted: Mapping[str, Sequence[Stored]]) -> None:
        for key, events in wanted.items():
            for follower in self._by_key.get(key, ()):
                follower.offer(events)

    def _heard(self, heads: Mapping[str, int]) -> None:
        """In the loop: another process has committed."""
        if self._by_key and not should_drop("doorbell"):
            self._tell(heads)

    def _tell(self, heads: Mapping[str, int]) -> None:
        for key, seq in heads.items():
            for follower in self._by_key.get(key, ()):
                follower.told(seq)

    async def _heal(self) -> None:
        await asyncio.sleep(HEAL_EVERY)
        if keys := list(self._by_key):
            loop = asyncio.get_running_loop()
            self._tell(await loop.run_in_executor(self.readers, log.heads, keys))
