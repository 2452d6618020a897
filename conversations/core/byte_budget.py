"""A bound in bytes for what many keepers keep together and any of them can do without: the least recently used goes."""

from typing import Protocol


class BoundedMemory(Protocol):
    """What is kept, and what may be, in bytes."""

    size: int
    limit: int


class EvictableStore(Protocol):
    """Who keeps something that can be read again."""

    def let_go(self) -> None:
        """Drop all of it. The budget knows already."""


class ByteBudget:
    """How much all keepers may keep, or one of them. Used in one thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit  # bytes
        self.size = 0  # bytes
        self.dropped = 0  # how often a keeper had to let go
        self._sizes: dict[EvictableStore, int] = {}  # the least recently used first

    def keep(self, keeper: EvictableStore, size: int) -> None:
        """A keeper has so many bytes now; others let go where that is too much."""
        self.size += size - self._sizes.pop(keeper, 0)
        if size:
            self._sizes[keeper] = size
        while self.size > self.limit and len(self._sizes) > 1:
            oldest = next(iter(self._sizes))
            self.size -= self._sizes.pop(oldest)
            self.dropped += 1
            oldest.let_go()

    def use(self, keeper: EvictableStore) -> None:
        """A keeper is of use now."""
        if (size := self._sizes.pop(keeper, 0)) != 0:
            self._sizes[keeper] = size
