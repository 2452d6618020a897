"""Group items one after another, so that no group is larger than a limit: of length, or of size in bytes."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


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
