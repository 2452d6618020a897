"""The hub: one row out to many. A ring of ready frames per feed; a subscriber is one integer and a wake-up (design 6).

Runs in the event loop and moves bytes only. HTML is drawn in one thread of its own, in order. What this process commits
comes with the ring; what others commit is read once for all subscribers (`Fetcher`). What the ring of frames no longer
holds each subscriber reads from the database, in a small pool. A lost doorbell is healed by one query a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Literal, Protocol, get_args

from conversations import doorbell, frames, log
from conversations.drawn import Artist
from conversations.failpoints import should_drop
from conversations.fetcher import Fetcher
from conversations.frames import Frame
from conversations.holding import Hold
from conversations.lasting import repeat
from conversations.log.events import Stored
from conversations.threads import DatabaseThreads

logger = logging.getLogger(__name__)

Mode = Literal["data", "html", "lanes"]
MODES: tuple[Mode, ...] = get_args(Mode)
RING_FRAMES = 1024
RING_CHARACTERS = 8 << 20
MAX_DRAWING = 4000  # events of one feed that wait to be drawn; beyond, its readers go to the database
HEAL_EVERY = 1.0  # seconds


class Subscriber(Protocol):
    """Who follows a feed. While `is_live`, it is level with the ring and takes frames by `write` as they come."""

    is_live: bool
    last: int
    write: Callable[[bytes], bool]

    def wake(self) -> None:
        """There may be more: look. Called in the loop, must not block."""


class Feed:
    """One conversation in one mode, while somebody follows it."""

    def __init__(self, key: str, mode: Mode, hold: Hold) -> None:
        self.key, self.mode, self.hold = key, mode, hold
        self.topic = f"stream:{key}"
        self.head = 0  # the newest seq anybody told us of
        self.taken: int | None = None  # the newest seq handed to the ring or the artist; None: nobody was level yet
        self.is_fetching = False  # what comes after `taken` is being read
        self.sent = 0  # bytes handed to subscribers
        self.ring: deque[Frame] = deque()
        self.characters = 0
        self.drawing = 0  # events that are with the artist
        self.artist = Artist(key, mode)
        self.subscribers: set[Subscriber] = set()

    def push(self, ready: Sequence[Frame]) -> None:
        """Add frames at the end; a hole before them empties the ring, and readers go to the database."""
        is_held = self.hold.is_held
        for frame in ready:
            self._keep(frame)
            if is_held:
                self.wake()  # who is woken waits until frames may go out
            else:
                self._hand_over(frame)

    def _keep(self, frame: Frame) -> None:
        if self.ring and self.ring[-1].last + 1 != frame.first:
            self.ring.clear()
            self.characters = 0
        self.ring.append(frame)
        self.characters += len(frame.wire)
        self.head = max(self.head, frame.last)
        while len(self.ring) > RING_FRAMES or (self.characters > RING_CHARACTERS and len(self.ring) > 1):
            self.characters -= len(self.ring.popleft().wire)

    def _hand_over(self, frame: Frame) -> None:
        """The hot loop: whoever is level takes the ready bytes here, without a task switch; the others are woken."""
        before, last, wire = frame.first - 1, frame.last, frame.wire
        for subscriber in tuple(self.subscribers):
            if subscriber.is_live and subscriber.last == before and subscriber.write(wire):
                subscriber.last = last
                self.sent += len(wire)
            elif subscriber.last < last:
                subscriber.wake()

    def after(self, last: int) -> list[Frame] | None:
        """Answer the frames right after `last`, or None: read the database."""
        if not self.ring or self.ring[0].first > last + 1:
            return None
        i = len(self.ring)
        while i and self.ring[i - 1].first > last:
            i -= 1
        if i < len(self.ring) and self.ring[i].first == last + 1:
            return [self.ring[j] for j in range(i, len(self.ring))]
        return None

    def is_coming_after(self, last: int) -> bool:
        """Tell whether what comes after `last` is being read or drawn for everybody, and so worth waiting for."""
        if self.is_fetching and last >= (self.taken or 0):
            return True
        return self.drawing > 0 and (not self.ring or self.ring[-1].last <= last)

    @property
    def has_room(self) -> bool:
        """Tell whether the artist can take more of what was read."""
        return self.drawing <= MAX_DRAWING // 2

    def go_back(self) -> None:
        """Forget everything: the database has less than was sent, so an older copy was put in its place."""
        self.ring.clear()
        self.characters = self.head = 0
        self.taken = None

    def wake(self) -> None:
        """Tell everybody who is behind."""
        for subscriber in tuple(self.subscribers):
            if subscriber.last < self.head:
                subscriber.wake()


class Hub:
    """All feeds of this process. `start` in the loop it shall live in."""

    def __init__(self, epoch: str, hold: Hold | None = None) -> None:
        self.epoch, self.hold = epoch, hold or Hold()
        self.feeds: dict[tuple[str, Mode], Feed] = {}
        self.readers = DatabaseThreads("reader")
        self._drawer = DatabaseThreads("drawer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: list[Callable[[], None]] = []
        self._fetcher = Fetcher(self.readers, self._take)
        self._sent = 0  # bytes, of feeds that are gone

    def start(self) -> None:
        """Listen to the doorbell and heal what it loses."""
        self._loop = asyncio.get_running_loop()
        self._fetcher.start()
        self._stop_listening = [doorbell.on_ring(self._rung), doorbell.on_heard(self._heard)]
        self._tasks = [asyncio.create_task(repeat(self._heal, what="looking at the heads"), name="hub-heal")]

    async def stop(self) -> None:
        """End the tasks and the threads."""
        for stop in self._stop_listening:
            stop()
        tasks = [*self._tasks, *filter(None, [self._fetcher.task])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.readers.shutdown(wait=False, cancel_futures=True)
        self._drawer.shutdown(wait=False, cancel_futures=True)

    def follow(self, key: str, mode: Mode, subscriber: Subscriber) -> Feed:
        """Add a subscriber. First follow, then read: what is committed meanwhile is in the ring."""
        feed = self.feeds.setdefault((key, mode), Feed(key, mode, self.hold))
        feed.subscribers.add(subscriber)
        return feed

    def leave(self, feed: Feed, subscriber: Subscriber) -> None:
        """Remove a subscriber; a feed that nobody follows is forgotten."""
        feed.subscribers.discard(subscriber)
        if not feed.subscribers and self.feeds.get((feed.key, feed.mode)) is feed:
            del self.feeds[feed.key, feed.mode]
            self._sent += feed.sent

    @property
    def sent(self) -> int:
        """How many bytes were handed straight to level subscribers, since the start."""
        return self._sent + sum(feed.sent for feed in self.feeds.values())

    def told(self, feed: Feed, seq: int) -> None:
        """A conversation is at this seq: have it read, unless its events came already."""
        feed.head = max(feed.head, seq)
        if feed.taken is None:
            feed.wake()
        elif feed.head > feed.taken and not feed.is_fetching:
            self._fetcher.fetch(feed)

    def level(self, feed: Feed, seq: int) -> None:
        """A subscriber has read up to this seq and found no more: what follows is for all."""
        if feed.taken is None:
            feed.taken = seq
        self.told(feed, seq)

    def _rung(self, stored: Sequence[Stored]) -> None:
        """Called by whoever committed, in their thread."""
        if self._loop is None or should_drop("doorbell"):
            return
        self._loop.call_soon_threadsafe(self._publish, stored)

    def _heard(self, heads: Mapping[str, int]) -> None:
        """Called with what other processes committed, or what came to be seen here; in any thread."""
        if self._loop is None or should_drop("doorbell"):
            return
        self._loop.call_soon_threadsafe(self._tell, heads)

    def _tell(self, heads: Mapping[str, int]) -> None:
        for key, seq in heads.items():
            for feed in self._feeds_of(key):
                self.told(feed, seq)

    def _feeds_of(self, key: str) -> list[Feed]:
        return [feed for mode in MODES if (feed := self.feeds.get((key, mode))) is not None]

    def _publish(self, stored: Sequence[Stored]) -> None:
        for key, events in _by_conversation(stored):
            for feed in self._feeds_of(key):
                self._take(feed, events)

    def _take(self, feed: Feed, events: Sequence[Stored]) -> None:
        """Send events that follow what was sent; where something is missing before them, have all of it read."""
        if feed.taken is not None and events[0].seq > feed.taken + 1:
            self.told(feed, events[-1].seq)
            return
        taken = feed.taken or 0
        fresh = [event for event in events if event.seq > taken]
        if not fresh:
            return
        feed.taken = fresh[-1].seq
        if feed.mode == "data":
            feed.push(frames.events(feed.topic, self.epoch, frames.data(fresh)))
        else:
            self._draw(feed, fresh)

    def _draw(self, feed: Feed, events: list[Stored]) -> None:
        feed.head = max(feed.head, events[-1].seq)
        if feed.drawing > MAX_DRAWING:
            return  # the next frame leaves a hole in the ring, and readers go to the database
        feed.drawing += len(events)
        assert self._loop is not None
        self._drawer.submit(self._drawn, feed, events)

    def _drawn(self, feed: Feed, events: list[Stored]) -> None:
        """In the drawer's thread: draw, and hand the frames back to the loop."""
        assert self._loop is not None
        ready: list[Frame] = []
        try:
            ready = frames.events(feed.topic, self.epoch, feed.artist.draw(events))
        except Exception:
            seqs = [event.seq for event in events][:5]
            logger.exception("events %s could not be drawn", seqs, extra={"conversation": feed.key})
        self._loop.call_soon_threadsafe(self._take_drawn, feed, ready, len(events))

    def _take_drawn(self, feed: Feed, ready: list[Frame], n: int) -> None:
        feed.drawing -= n
        feed.push(ready)
        if feed.is_fetching and feed.has_room:
            self._fetcher.go_on()
        if not feed.drawing:
            feed.wake()  # what was too much to draw, or failed, comes in no frame: who is behind reads the database

    async def read(self, feed: Feed, after: int) -> list[Frame]:
        """Read from the database what comes after a seq, as frames."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.readers, self._read, feed, after)

    def _read(self, feed: Feed, after: int) -> list[Frame]:
        events = log.read_after(feed.key, after)
        items = frames.data(events) if feed.mode == "data" else Artist(feed.key, feed.mode).draw(events)
        return frames.events(feed.topic, self.epoch, items)

    async def _heal(self) -> None:
        """Each second, one query: a feed whose conversation went on without a ring is told."""
        await asyncio.sleep(HEAL_EVERY)
        before = {feed: feed.taken for feed in self.feeds.values()}
        if not before:
            return
        loop = asyncio.get_running_loop()
        keys = sorted({feed.key for feed in before})
        heads = await loop.run_in_executor(self.readers, log.heads, keys)
        for feed, taken in before.items():
            head = heads.get(feed.key, 0)
            if taken is not None and head < taken:
                feed.go_back()
            elif feed.subscribers:
                self.told(feed, head)


def _by_conversation(stored: Sequence[Stored]) -> Iterable[tuple[str, list[Stored]]]:
    """Group a batch; within a conversation it is in seq order already."""
    ordered = sorted(stored, key=lambda e: e.conversation)
    return ((key, list(events)) for key, events in groupby(ordered, key=lambda e: e.conversation))
