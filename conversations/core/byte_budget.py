"""A shared limit in bytes for caches whose contents can be read again: the least recently used cache is emptied."""

from typing import Protocol


class BoundedMemory(Protocol):
    """The used and the allowed bytes."""

    size: int
    limit: int


class EvictableStore(Protocol):
    """A cache of something that can be read again."""

    def clear(self) -> None:
        """Drop everything. The budget already knows."""


class ByteBudget:
    """The limit of all caches together, and of each. For one thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # bytes
        self.size = 0  # bytes
        self.dropped = 0  # how often a keeper had to let go
        self._sizes: dict[EvictableStore, int] = {}  # the least recently used first

    def keep(self, keeper: EvictableStore, size: int) -> None:
        """Set a cache's size in bytes; others are emptied if the total is too large."""
        self.size += size - self._sizes.pop(keeper, 0)
        if size:
            self._sizes[keeper] = size
        while self.size > self.limit and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.size -= self._sizes.pop(oldest)
            self.dropped += 1
            oldest.clear()

    def use(self, keeper: EvictableStore) -> None:
        """Mark a cache as used now."""
        if (size := self._sizes.pop(keeper, 0)) != 0:
            self._sizes[keeper] = size
