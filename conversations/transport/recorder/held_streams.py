"""Streams that wait because a conversation they name is locked: not read until it is time to try again.

`store` says which they are and where each continues; meanwhile `read_streams` leaves them out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from conversations.transport.recorder.streams import Stream

FIRST_DELAY = 0.05  # seconds until the next try; doubled each time
MAX_DELAY = 0.5


class HeldStream(NamedTuple):
    """The position of a waiting stream: after its last stored entry. `since` is the Unix time of its first waiting
    entry."""

    name: str
    last_id: str
    entries_read: int
    since: float


@dataclass(slots=True)
class StreamHold:
    """One stream's wait; it survives a try, so that the next delay is longer."""

    stream: Stream
    since: float
    delay: float = FIRST_DELAY / 2
    retry_at: float = 0.0  # monotonic

    def begin(self, held: HeldStream) -> None:
        """Reset the stream to its stored position, and let it wait."""
        self.stream.last_id, self.stream.entries_read = held.last_id, held.entries_read
        self.stream.is_held = True
        self.since = held.since
        self.delay = min(self.delay * 2, MAX_DELAY)
        self.retry_at = time.monotonic() + self.delay


class Holds:
    """All waits of one reader."""

    def __init__(self) -> None:
        self._holds: dict[str, StreamHold] = {}

    def settle(self, stored: Mapping[str, Stream], held: Iterable[HeldStream]) -> None:
        """Note which streams of a round are held; its others no longer wait."""
        by_name = {held_stream.name: held_stream for held_stream in held}
        for name in stored.keys() - by_name.keys():
            self._holds.pop(name, None)
        for name, held_stream in by_name.items():
            hold = self._holds.setdefault(name, StreamHold(stored[name], held_stream.since))
            hold.stream = stored[name]
            hold.begin(held_stream)

    def release(self) -> list[Stream]:
        """Return the streams that are due for another try; they are read from now on."""
        now = time.monotonic()
        due = [hold.stream for hold in self._holds.values() if hold.stream.is_held and hold.retry_at <= now]
        for stream in due:
            stream.is_held = False
        return due

    def next_in(self) -> float:
        """Return the seconds until the next of them is due."""
        times = [hold.retry_at for hold in self._holds.values() if hold.stream.is_held]
        return max(0.0, min(times) - time.monotonic()) if times else float("inf")

    def oldest(self) -> float:
        """Return the Unix time of the oldest waiting entry; infinity without one."""
        return min((hold.since for hold in self._holds.values()), default=float("inf"))

    def forget(self, name: str) -> None:
        """Drop the wait of a stream that no longer exists."""
        self._holds.pop(name, None)
