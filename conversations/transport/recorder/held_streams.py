"""Streams that wait because somebody holds a conversation they name: not read until it is time to try again.

`store` says which they are and where each goes on; `read_streams` leaves them out meanwhile.
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
    """Where a stream stays: behind its last stored entry. `since` is the Unix time of the first entry that waits."""

    name: str
    last_id: str
    entries_read: int
    since: float


@dataclass(slots=True)
class StreamHold:
    """One stream's wait; it outlives a try, so that the next delay is longer."""

    stream: Stream
    since: float
    delay: float = FIRST_DELAY / 2
    retry_at: float = 0.0  # monotonic

    def begin(self, held: HeldStream) -> None:
        """Put the stream back to where it is stored, and have it wait."""
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
        """Take up which streams of a round are held; the round's others wait no more."""
        by_name = {held_stream.name: held_stream for held_stream in held}
        for name in stored.keys() - by_name.keys():
            self._holds.pop(name, None)
        for name, held_stream in by_name.items():
            hold = self._holds.setdefault(name, StreamHold(stored[name], held_stream.since))
            hold.stream = stored[name]
            hold.begin(held_stream)

    def release(self) -> list[Stream]:
        """Return the streams that it is time to try again; they are read from now on."""
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
        """Return the Unix time of the oldest entry that waits; infinity when none does."""
        return min((hold.since for hold in self._holds.values()), default=float("inf"))

    def forget(self, name: str) -> None:
        """Drop the wait of a stream that is gone."""
        self._holds.pop(name, None)
