"""One conversation in one mode while it has subscribers: its renderer, its ring of frames, and who gets them.

Created by the hub, which has the events rendered in a thread and pushes the frames in the event loop. `_hand_over`
writes each to the sockets that are up to date, where `static/js/subscription.js` receives it; a socket that is behind
reads what it lacks (`catch_up_subscription.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, get_args

from conversations.core.byte_budget import ByteBudget
from conversations.realtime.frames import Frame
from conversations.realtime.live_renderer import LiveRenderer
from conversations.realtime.send_gate import SendGate

Mode = Literal["data", "html", "lanes"]

MODES: tuple[Mode, ...] = get_args(Mode)

RING_FRAMES = 1024
RING_BYTES = 8 << 20  # of one ring
MAX_RENDERING = 4000  # events of one feed that wait to be rendered; beyond, its readers go to the database
TURN_BYTES = 512 * 1024  # of large frames that are written in one turn of the loop, or one of them
RENDERING_BYTES = 16 << 20  # of the bodies of all events that wait to be rendered, or one batch of them


class Subscriber(Protocol):
    """A subscriber of a feed: a `CatchUpSubscription`. While `is_up_to_date`, it has what the ring has and gets
    frames through `write` as they come."""

    is_up_to_date: bool
    last: int
    write: Callable[[bytes], bool]  # to the connection: `write_frame` of `dashboard/server/websocket_protocol.py`

    def wake(self) -> None:
        """Check for new events. Called in the loop; must not block."""

    def say_moved(self, to: str) -> None:
        """Tell that the conversation has another id. Called in the loop; must not block."""


class Feed:
    """One conversation in one mode, while it has subscribers."""

    def __init__(self, key: str, mode: Mode, send_gate: SendGate, budget: ByteBudget | None = None) -> None:
        self.key, self.mode, self.send_gate = key, mode, send_gate
        self._budget = budget or ByteBudget(RING_BYTES)
        self.topic = f"stream:{key}"
        self.row = 0  # the conversation's; 0: not looked up yet
        self.head = 0  # the newest known seq
        self.last_taken_seq: int | None = None  # newest in the ring or at the renderer; None: nobody was up to date
        self.is_fetching = False  # what comes after `last_taken_seq` is being read
        self.ring: deque[Frame] = deque()
        self.size = 0  # bytes of the ring
        self.rendering = 0  # events that are with the renderer
        self.renderer = LiveRenderer(key, mode)
        self.subscribers: set[Subscriber] = set()

    def push(self, ready: Sequence[Frame]) -> None:
        """Append frames; a gap before them empties the ring, and subscribers then read from the database."""
        is_held = self.send_gate.is_held
        for frame in ready:
            self._keep(frame)
            if is_held:
                self.wake()  # who is woken waits until frames may go out
            else:
                self._hand_over(frame)

    def _keep(self, frame: Frame) -> None:
        if self.ring and self.ring[-1].last + 1 != frame.first:
            self.clear()
        self.ring.append(frame)
        self.size += frame.size
        self.head = max(self.head, frame.last)
        while len(self.ring) > RING_FRAMES or (self.size > RING_BYTES and len(self.ring) > 1):
            self.size -= self.ring.popleft().size
        self._budget.keep(self, self.size)

    def clear(self) -> None:
        """Empty the ring; subscribers that are behind read from the database."""
        self.ring.clear()
        self.size = 0

    def forget(self) -> None:
        """Release all memory: the feed has no subscribers left."""
        self.clear()
        self._budget.keep(self, 0)

    def _hand_over(self, frame: Frame) -> None:
        """Write a frame to all subscribers that are up to date, without a task switch (the hot loop); wake the others.
        Large frames are written directly up to `TURN_BYTES`; further subscribers get theirs in turns of their own."""
        before, last, encoded = frame.first - 1, frame.last, frame.encoded
        cost, left = len(encoded) if frame.is_large else 0, TURN_BYTES
        for subscriber in tuple(self.subscribers):
            if left > 0 and subscriber.is_up_to_date and subscriber.last == before and subscriber.write(encoded):
                subscriber.last = last
                self.send_gate.sent_bytes += len(encoded)
                left -= cost
            elif subscriber.last < last:
                subscriber.wake()

    def after(self, last: int) -> list[Frame] | None:
        """Return the frames right after `last`, or None if they must be read from the database."""
        if not self.ring or self.ring[0].first > last + 1:
            return None
        i = len(self.ring)
        while i and self.ring[i - 1].first > last:
            i -= 1
        if i < len(self.ring) and self.ring[i].first == last + 1:
            self._budget.use(self)
            return [self.ring[j] for j in range(i, len(self.ring))]
        return None

    def is_coming_after(self, last: int) -> bool:
        """Return whether the events after `last` are already being read or rendered for all, so that waiting is
        worthwhile."""
        if self.is_fetching and last >= (self.last_taken_seq or 0):
            return True
        return self.rendering > 0 and (not self.ring or self.ring[-1].last <= last)

    @property
    def has_room(self) -> bool:
        """Return whether the renderer can accept more events."""
        return self.rendering <= MAX_RENDERING // 2

    def go_back(self) -> None:
        """Discard everything: the database has fewer events than were sent, so it was replaced by an older copy."""
        self.forget()
        self.head = 0
        self.last_taken_seq = None

    def wake(self) -> None:
        """Wake all subscribers that are behind."""
        for subscriber in tuple(self.subscribers):
            if subscriber.last < self.head:
                subscriber.wake()
