"""The hub: takes each committed event to the feeds of its conversation (§6). It has the event drawn once
(`live_renderer.py`) and packed into a frame (`frames.py`, the wire form), and pushes that to the feed (`feed.py`),
which writes it to many subscribers. A feed has a ring of prepared frames; a subscriber is one integer and a wake-up.

It runs in the event loop and only moves bytes. HTML, and large frames, are prepared in order in a separate thread and
written in short turns of the loop. Events committed by this process arrive with their notification; events committed
elsewhere are read once for all subscribers (`CatchUpReader`). Events that the ring no longer holds are read by each
subscriber from the database, in a small pool. One query per second makes up for lost notifications.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence

from conversations.core.background_loop import cancel_all, run_forever
from conversations.core.byte_budget import ByteBudget
from conversations.core.db_threads import DatabaseThreads
from conversations.core.failpoints import should_drop
from conversations.events import commit_listeners, log
from conversations.events.log.records import Stored
from conversations.events.types.redaction import REDACTED
from conversations.realtime import frames
from conversations.realtime.catch_up_reader import CatchUpReader
from conversations.realtime.feed import MAX_RENDERING, MODES, RENDERING_BYTES, TURN_BYTES, Feed, Mode, Subscriber
from conversations.realtime.frames import Frame
from conversations.realtime.live_renderer import LiveRenderer
from conversations.realtime.send_gate import SendGate

logger = logging.getLogger(__name__)

ALL_RINGS_BYTES = 48 << 20  # of all rings together
HEAL_EVERY = 1.0  # seconds


class Hub:
    """All feeds of this process. Call `start` in the loop that it runs in."""

    def __init__(self, epoch: str, send_gate: SendGate | None = None, ring_bytes: int = ALL_RINGS_BYTES) -> None:
        self.epoch, self.send_gate = epoch, send_gate or SendGate()
        self.rings = ByteBudget(ring_bytes)
        self.rendering_bytes = 0  # of the bodies of events that wait to be rendered
        # Frames to push, with the number and the bytes of the events that they are of.
        self._rendered_frames: deque[tuple[Feed, deque[Frame] | None, int, int]] = deque()
        self.feeds: dict[tuple[str, Mode], Feed] = {}
        self.readers = DatabaseThreads("reader")
        self._render_thread = DatabaseThreads("renderer")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_listening: list[Callable[[], None]] = []
        self._catch_up_reader = CatchUpReader(self.readers, self._ingest)

    def start(self) -> None:
        """Listen for commits, and start the task that makes up for lost notifications."""
        self._loop = asyncio.get_running_loop()
        self._catch_up_reader.start()
        self._stop_listening = [
            commit_listeners.on_committed(self._on_committed),
            commit_listeners.on_remote_heads(self._on_heads),
        ]
        self._tasks = [asyncio.create_task(run_forever(self._heal, what="looking at the heads"), name="hub-heal")]

    async def stop(self) -> None:
        """Stop the tasks and the threads."""
        for stop in self._stop_listening:
            stop()
        await cancel_all([*self._tasks, self._catch_up_reader.task])
        self.readers.shutdown(wait=False, cancel_futures=True)
        self._render_thread.shutdown(wait=False, cancel_futures=True)

    def follow(self, key: str, mode: Mode, subscriber: Subscriber) -> Feed:
        """Add a subscriber. Follow first, then read: events committed in between are in the ring."""
        feed = self.feeds.setdefault((key, mode), Feed(key, mode, self.send_gate, self.rings))
        feed.subscribers.add(subscriber)
        return feed

    def leave(self, feed: Feed, subscriber: Subscriber) -> None:
        """Remove a subscriber; a feed without subscribers is discarded."""
        feed.subscribers.discard(subscriber)
        if not feed.subscribers and self.feeds.get((feed.key, feed.mode)) is feed:
            del self.feeds[feed.key, feed.mode]
            feed.forget()

    def advance(self, feed: Feed, seq: int) -> None:
        """Record that a conversation is at this seq, and read its events unless they have already arrived."""
        feed.head = max(feed.head, seq)
        if feed.last_taken_seq is None:
            feed.wake()
        elif feed.head > feed.last_taken_seq and not feed.is_fetching:
            self._catch_up_reader.fetch(feed)

    def mark_caught_up(self, feed: Feed, seq: int) -> None:
        """Record that a subscriber has read up to this seq and found no more: later events go to all."""
        if feed.last_taken_seq is None:
            feed.last_taken_seq = seq
        self.advance(feed, seq)

    def _on_committed(self, stored: Sequence[Stored]) -> None:
        """Handle a commit of this process. Called in the thread that committed: the loop is not woken for what nobody
        follows. Whoever begins to follow after this look reads what was committed before it."""
        if self._loop is None or should_drop("notification"):
            return
        followed = {key for key in {event.conversation for event in stored} if self._is_followed(key)}
        if followed:
            self._loop.call_soon_threadsafe(self._dispatch, [e for e in stored if e.conversation in followed])

    def _on_heads(self, heads: Mapping[str, int]) -> None:
        """Handle heads from other processes, or of conversations that became visible here. Called in any thread."""
        if self._loop is None or should_drop("notification"):
            return
        self._loop.call_soon_threadsafe(self._advance_feeds, heads)

    def _advance_feeds(self, heads: Mapping[str, int]) -> None:
        for key, seq in heads.items():
            for feed in self._feeds_of(key):
                self.advance(feed, seq)

    def _is_followed(self, key: str) -> bool:
        return any((key, mode) in self.feeds for mode in MODES)

    def _feeds_of(self, key: str) -> list[Feed]:
        return [feed for mode in MODES if (feed := self.feeds.get((key, mode))) is not None]

    def _dispatch(self, stored: Sequence[Stored]) -> None:
        if not self.feeds:
            return
        for key, events in _by_conversation(stored).items():
            for feed in self._feeds_of(key):
                self._ingest(feed, events)

    def _ingest(self, feed: Feed, events: Sequence[Stored]) -> None:
        """Send events that directly follow those already sent; if some are missing in between, read all of them."""
        if feed.last_taken_seq is not None and events[0].seq > feed.last_taken_seq + 1:
            self.advance(feed, events[-1].seq)
            return
        taken = feed.last_taken_seq or 0
        fresh = [event for event in events if event.seq > taken]
        if not fresh:
            return
        feed.last_taken_seq = fresh[-1].seq
        if any(event.kind == REDACTED for event in fresh):
            feed.clear()  # frames of what was said before
        if feed.mode == "data" and not feed.rendering and _bytes(fresh) <= frames.LARGE:
            feed.push(frames.events(feed.topic, self.epoch, frames.data(fresh)))
        else:
            self._queue_render(feed, fresh)

    def _queue_render(self, feed: Feed, events: list[Stored]) -> None:
        feed.head = max(feed.head, events[-1].seq)
        if feed.rendering > MAX_RENDERING or self.rendering_bytes > RENDERING_BYTES:
            if not feed.rendering:
                feed.wake()  # else they are woken when that is rendered
            return  # the next frame leaves a hole in the ring, and readers go to the database
        feed.rendering += len(events)
        self.rendering_bytes += _bytes(events)
        assert self._loop is not None
        self._render_thread.submit(self._render_in_thread, feed, events)

    def _render_in_thread(self, feed: Feed, events: list[Stored]) -> None:
        """Render the events part by part and pass the frames to the loop. Runs in the renderer's thread."""
        assert self._loop is not None
        while events:
            ready: list[Frame] = []
            count, rendered = len(events), events
            try:
                items = _items(feed.mode, feed.renderer, events)
                ready, count, rendered = frames.events(feed.topic, self.epoch, items), len(items), events[: len(items)]
            except Exception:
                seqs = [event.seq for event in events][:5]
                logger.exception("events %s could not be rendered", seqs, extra={"conversation": feed.key})
            if any(event.kind == REDACTED for event in rendered):  # earlier frames may have been pushed since `_ingest`
                self._loop.call_soon_threadsafe(self._on_rendered, feed, None, 0, 0)
            self._loop.call_soon_threadsafe(self._on_rendered, feed, ready, count, _bytes(rendered))
            events = events[count:]

    def _on_rendered(self, feed: Feed, ready: list[Frame] | None, n: int, size: int) -> None:
        """Push frames in their turn; None: let go of those pushed before, which have redacted words."""
        self._rendered_frames.append((feed, None if ready is None else deque(ready), n, size))
        if len(self._rendered_frames) == 1:
            self._push_rendered_frames()

    def _push_rendered_frames(self) -> None:
        """Push rendered frames in order; leave those that exceed one turn of the loop for the next."""
        left = TURN_BYTES
        while self._rendered_frames and left > 0:
            feed, ready, n, size = self._rendered_frames[0]
            if ready is None:
                feed.clear()
            while ready and left > 0:
                frame = ready.popleft()
                left -= frame.size
                if feed.subscribers:  # else it is forgotten, and gives nothing back anymore
                    feed.push([frame])
            if not ready:
                self._rendered_frames.popleft()
                self._finish_render(feed, n, size)
        if self._rendered_frames:
            assert self._loop is not None
            self._loop.call_soon(self._push_rendered_frames)

    def _finish_render(self, feed: Feed, n: int, size: int) -> None:
        """Count events as rendered once their frames are pushed; go on with what waited for that."""
        feed.rendering -= n
        self.rendering_bytes -= size
        if feed.is_fetching and feed.has_room:
            self._catch_up_reader.go_on()
        if not feed.rendering:
            feed.wake()  # what was too much to render, or failed, comes in no frame: who is behind reads the database

    async def read_frames(self, feed: Feed, after: int) -> list[Frame]:
        """Read the events after a seq from the database, as frames."""
        return await self.readers.run(self._read_frames, feed, after)

    def _read_frames(self, feed: Feed, after: int) -> list[Frame]:
        if not feed.row:
            feed.row = log.rows_and_heads([feed.key]).get(feed.key, (0, 0))[0]
        events = log.read_after(feed.key, after)
        items = _items(feed.mode, LiveRenderer(feed.key, feed.mode), events)
        return frames.events(feed.topic, self.epoch, items)

    async def _heal(self) -> None:
        """Query the heads once a second, and update feeds whose notification was lost."""
        await asyncio.sleep(HEAL_EVERY)
        before = {feed: feed.last_taken_seq for feed in self.feeds.values()}
        if not before:
            return
        by_key = await self.readers.run(log.rows_and_heads, sorted({feed.key for feed in before}))
        await self._tell_moved([feed for feed in before if feed.row not in (0, by_key.get(feed.key, (-1, 0))[0])])
        for feed, taken in before.items():
            row, head = by_key.get(feed.key, (0, 0))
            feed.row = feed.row or row
            if taken is not None and head < taken:
                feed.go_back()
            elif feed.subscribers:
                self.advance(feed, head)

    async def _tell_moved(self, feeds: Sequence[Feed]) -> None:
        """Tell whoever follows a conversation whose id was erased where it is now, until they have gone there."""
        keys = await self.readers.run(log.keys_of, sorted({feed.row for feed in feeds})) if feeds else {}
        for feed in feeds:
            for subscriber in tuple(feed.subscribers if feed.row in keys else ()):
                subscriber.say_moved(keys[feed.row])


def _items(mode: Mode, renderer: LiveRenderer, events: Sequence[Stored]) -> list[tuple[int, str]]:
    return frames.data(events) if mode == "data" else renderer.draw(events)


def _bytes(events: Sequence[Stored]) -> int:
    return sum(len(event.body) for event in events)


def _by_conversation(stored: Sequence[Stored]) -> dict[str, list[Stored]]:
    """Group a batch by conversation; within each, `append` announces events in the order of seq."""
    groups: defaultdict[str, list[Stored]] = defaultdict(list)
    for event in stored:
        groups[event.conversation].append(event)
    return groups
