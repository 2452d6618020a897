"""The streams that the recorder follows: which there are (`SCAN` is authoritative), how far each is read, which are
hot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from conversations.events import payload
from conversations.transport import entry_ids as ids
from switchboard import topics

PREFIXES = tuple(f"{prefix}:".encode() for prefix in topics.PREFIXES)
NAME = 250  # characters of RedisPosition.stream
HOT = 200  # streams in one blocking read (§6)
BATCH = 2000  # entries of a round
ROUND_BYTES = 8 << 20  # of a round, aimed at
FIRST_STRIDE = 16  # entries of a stream that nobody has read yet: they may be large


@dataclass(slots=True)
class Stream:
    """One stream, as far as it is read (stored or in progress). `stride` grows with the sizes it has shown."""

    key: bytes  # as Redis knows it
    name: str  # as the record does
    last_id: str
    entries_read: int
    found_at: int
    stride: int = FIRST_STRIDE
    is_behind: bool = False  # the last answer was full: there is more
    is_heavy: bool = False  # it had an entry over the limit: XINFO may carry such a one each time
    is_held: bool = False  # somebody holds a conversation it names (`held_streams`): it is not read meanwhile

    def take(self, items: list[Any], requested: int) -> None:
        """Advance by an answer of XREAD that asked for `requested` entries, and learn from its size."""
        size = sum(len(value) for _, fields in items for value in fields or ())
        self.last_id = items[-1][0].decode()
        if self.entries_read >= 0:
            self.entries_read += len(items)
        self.stride = max(1, min(self.stride * 4, BATCH, ROUND_BYTES * len(items) // max(size, 1)))
        self.is_behind = len(items) >= requested
        self.is_heavy = self.is_heavy or size > payload.MAX_BYTES * len(items)


def name_of(key: bytes) -> str:
    """Return a stream's name as a column can hold it: as it is, or with a digest."""
    text = key.decode("utf-8", "replace")
    if len(text) <= NAME and "\0" not in text and text.encode() == key:
        return text
    return f"{payload.clean_text(text)[: NAME - 17]}…{hashlib.sha256(key).hexdigest()[:16]}"


class Streams:
    """All followed streams, those with recent entries first."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, Stream] = {}  # in order of their last news, newest last

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: bytes) -> bool:
        return key in self._by_key

    def __getitem__(self, key: bytes) -> Stream:
        return self._by_key[key]

    def all(self) -> list[Stream]:
        """Return every stream."""
        return list(self._by_key.values())

    def put(self, streams: Iterable[Stream]) -> None:
        """Follow these streams too."""
        self._by_key |= {stream.key: stream for stream in streams}

    def drop(self, key: bytes) -> None:
        """Stop following a stream."""
        self._by_key.pop(key, None)

    def move_to_hot_end(self, stream: Stream) -> None:
        """Move a stream to the hot end."""
        self._by_key[stream.key] = self._by_key.pop(stream.key)

    def hot(self) -> list[Stream]:
        """Return the at most 200 streams with the most recent entries, without held ones."""
        newest = (stream for stream in reversed(self._by_key.values()) if not stream.is_held)
        return [stream for stream, _ in zip(newest, range(HOT), strict=False)]

    def behind(self) -> list[Stream]:
        """Return the hot streams that have more to read now."""
        return [stream for stream in self.hot() if stream.is_behind]

    def cold(self) -> list[Stream]:
        """Return the other streams, without held ones."""
        return [stream for stream in self.all()[: max(0, len(self) - HOT)] if not stream.is_held]


def read_command(streams: list[Stream], *, block_ms: int | None = None) -> tuple[list[Any], int]:
    """Return an XREAD command and its COUNT: batch ÷ streams, at most the smallest stride."""
    count = max(1, min(BATCH // max(1, len(streams)), *(s.stride for s in streams), BATCH))
    command: list[Any] = ["XREAD", "COUNT", count]
    if block_ms is not None:
        command += ["BLOCK", max(1, block_ms)]
    command += ["STREAMS", *(s.key for s in streams), *(s.last_id for s in streams)]
    return command, count


def first_seen(key: bytes, found_at: int) -> Stream:
    """Return a stream at first contact."""
    return Stream(key, name_of(key), ids.START, 0, found_at)


def is_ours(key: bytes) -> bool:
    """Return whether it is a topic of the bus."""
    return key.startswith(PREFIXES)
