"""Cut items into groups of limited length, or of limited size in bytes."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def blocks(items: list[T], size: int) -> Iterator[list[T]]:
    """Return a list in pieces of this many items, the last one perhaps of fewer."""
    return (items[at : at + size] for at in range(0, len(items), size))


def bounded_groups(
    items: Iterable[T], size_of: Callable[[T], int], *, most_bytes: int, most_items: float = math.inf
) -> Iterator[list[T]]:
    """Yield the items in lists that end with the item that reaches either limit."""
    group: list[T] = []
    size = 0
    for item in items:
        group.append(item)
        size += size_of(item)
        if len(group) >= most_items or size >= most_bytes:
            yield group
            group, size = [], 0
    if group:
        yield group
