"""Follow the record: the events committed to a conversation after a seq, in order and without gaps.

Events committed by this process arrive with their notification. Those committed elsewhere are read from the database,
and so are events that arrived faster than a reader could process them: a follower holds at most 1,000 events or 4 MiB,
all followers of a process 64 MiB. Beyond that, the least recently active follower discards its events and reads them
later. One query per second makes up for lost notifications.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.db_threads import DatabaseThreads
from conversations.core.failpoints import should_drop
from conversations.events import commit_listeners, log
from conversations.events.log.records import Stored

MAX_EVENTS, MAX_SIZE = 1000, 4 << 20  # events, and bytes of them in memory, that a follower holds
MAX_HELD = 64 << 20  # bytes that all followers of a process hold
HEAL_EVERY = 1.0  # seconds
T = TypeVar("T")


class Budget:
    """The memory that all followers of a process use, and its limit, in bytes."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = MAX_HELD if limit is None else limit
        self.size = 0
        self._holders: dict[Follower, None] = {}  # who took something longest ago first

    def touch(self, follower: Follower) -> None:
        """Record that a follower took its events, or starts to hold some."""
        self._holders.pop(follower, None)
        self._holders[follower] = None

    def leave(self, follower: Follower) -> None:
        """Remove a follower that holds nothing."""
        self._holders.pop(follower, None)

    def make_room(self, follower: Follower) -> None:
        """Make the least recently active followers discard their events until there is room."""
        while self.size >= self.limit:
            longest_ago = next(iter(self._holders), follower)
            if longest_ago is follower:
                return
            longest_ago.drop()


class Follower:
    """A reader of one conversation, from after `last` on. Its methods must be called in the loop.

    It starts behind: events committed before it existed, or of which nobody told it, are read once.
    """

    def __init__(self, key: str, last: int, budget: Budget | None = None) -> None:
        self.key, self.last = key, last
        self.head = last + 1  # the newest seq anybody told us of
        self._ready: deque[Stored] = deque()
        self._size = 0
        self._budget = budget or Budget()
        self._news = asyncio.Event()

    def offer(self, events: Sequence[Stored]) -> None:
        """Accept events that directly follow those already held; all others are read later."""
        self.head = max(self.head, events[-1].seq)
        for event in events:
            newest = self._ready[-1].seq if self._ready else self.last
            if event.seq == newest + 1 and self._has_room:
                if not self._ready:
                    self._budget.touch(self)
                self._ready.append(event)
                self._hold(sys.getsizeof(event.body))
        self._news.set()

    def advance(self, seq: int) -> None:
        """Record that the conversation is at this seq."""
        if seq > self.head:
            self.head = seq
            self._news.set()

    def wake(self) -> None:
        """Wake the reader: something other than the record has changed."""
        self._news.set()

    def take(self) -> list[Stored]:
        """Return the held events that follow `last`: a read may have passed some of them, or left a gap before them."""
        taken = [event for event in self._ready if event.seq > self.last]
        self.drop()
        if not taken or taken[0].seq != self.last + 1:
            return []
        self.last = taken[-1].seq
        return taken

    def drop(self) -> None:
        """Discard all held events."""
        self._ready.clear()
        self._hold(-self._size)
        self._budget.leave(self)

    @property
    def _has_room(self) -> bool:
        self._budget.make_room(self)
        return len(self._ready) < MAX_EVENTS and self._size < MAX_SIZE and self._budget.size < self._budget.limit

    def _hold(self, size: int) -> None:
        self._size += size
        self._budget.size += size

    @property
    def is_behind(self) -> bool:
        """Return whether there are more events than those held."""
        return self.head > (self._ready[-1].seq if self._ready else self.last)

    async def news(self, seconds: float) -> None:
        """Wait until there are events, or for this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()


class Followers:
    """All followers of one process. It starts listening with the first one, in that one's loop, and is used only
    there."""

    def __init__(self, limit: int | None = None) -> None:
        """Set the limit in bytes for all of them, 64 MiB by default."""
        self.readers = DatabaseThreads("responses")
        self._by_key: dict[str, tuple[Follower, ...]] = {}
        self._expected: dict[str, Follower] = {}
        self.budget = Budget(limit)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._healing: asyncio.Task[None] | None = None
        self._stop_listening: list[Callable[[], None]] = []

    def listen(self) -> None:
        """Start listening. Called in the loop, before anything is followed."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._stop_listening = [
                commit_listeners.on_committed(self._on_committed),
                commit_listeners.on_remote_heads(self._on_heads),
            ]
            self._healing = asyncio.create_task(
                run_forever(self._heal, what="following responses"), name="responses-heal"
            )

    async def stop(self) -> None:
        """Stop listening."""
        for stop in self._stop_listening:
            stop()
        await cancel_all([self._healing])
        self._loop, self._healing, self._stop_listening = None, None, []

    def follow(self, key: str, after: int) -> Follower:
        """Follow a conversation from after a seq; call `leave` at the end. The first to follow one that was expected
        gets its events from the first on."""
        return self._expected.pop(key, None) or self._add(Follower(key, after, self.budget))

    def expect(self, key: str) -> Follower:
        """Follow a conversation that is about to be created: nothing of it is committed yet. Call `follow` once it
        exists, or `leave`."""
        follower = self._expected[key] = self._add(Follower(key, 0, self.budget))
        return follower

    def _add(self, follower: Follower) -> Follower:
        self._by_key[follower.key] = (*self._by_key.get(follower.key, ()), follower)
        return follower

    def leave(self, follower: Follower) -> None:
        """Stop following."""
        if self._expected.get(follower.key) is follower:
            del self._expected[follower.key]
        rest = tuple(other for other in self._by_key.get(follower.key, ()) if other is not follower)
        if rest:
            self._by_key[follower.key] = rest
        else:
            self._by_key.pop(follower.key, None)
        follower.drop()

    @property
    def count(self) -> int:
        """The number of followers."""
        return sum(map(len, self._by_key.values()))

    async def next(self, follower: Follower, seconds: float) -> list[Stored]:
        """Return the events after the last returned one, in order; nothing if the time has passed.

        Raises Unavailable, or the error of a failed read; the next call reads again.
        """
        if not (taken := follower.take()) and not follower.is_behind:
            await follower.news(seconds)
            taken = follower.take()
        if not taken and follower.is_behind:
            head = follower.head
            taken = await self.readers.run(log.read_after, follower.key, follower.last)
            if taken:
                follower.last = taken[-1].seq
            elif follower.head == head:
                follower.head = follower.last  # notified of more than there is
        return taken

    def _on_committed(self, stored: Sequence[Stored]) -> None:
        """Pass committed events on to their followers. Called in the thread that committed."""
        if not self._by_key or self._loop is None or should_drop("notification"):
            return
        events_by_key: dict[str, list[Stored]] = {}
        for event in stored:
            if event.conversation in self._by_key:
                events_by_key.setdefault(event.conversation, []).append(event)
        if events_by_key:
            self._in_loop(self._give, events_by_key)

    def _give(self, events_by_key: Mapping[str, Sequence[Stored]]) -> None:
        for key, events in events_by_key.items():
            for follower in self._by_key.get(key, ()):
                follower.offer(events)

    def _on_heads(self, heads: Mapping[str, int]) -> None:
        """Handle heads of other processes, or of conversations that became visible. Called in any thread."""
        if self._by_key and not should_drop("notification"):
            self._in_loop(self._advance_followers, heads)

    def _in_loop(self, work: Callable[[T], None], value: T) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # a closed loop has nobody who follows
                self._loop.call_soon_threadsafe(work, value)

    def _advance_followers(self, heads: Mapping[str, int]) -> None:
        for key, seq in heads.items():
            for follower in self._by_key.get(key, ()):
                follower.advance(seq)

    async def _heal(self) -> None:
        await asyncio.sleep(HEAL_EVERY)
        if keys := list(self._by_key):
            self._advance_followers(await self.readers.run(log.heads, keys))
