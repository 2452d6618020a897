"""A bounded cache of the most recently used values, by key. For one thread, or one event loop."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from typing import Generic, TypeVar

from conversations.core.errors import Busy

Value = TypeVar("Value")


class RecentlyUsed(Generic[Value]):
    """At most `limit` values, each dropped `idle_s` seconds after its last use, unless it is held."""

    def __init__(self, limit: int, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit, self._idle_s, self._clock = limit, idle_s, clock
        self._values: dict[str, tuple[Value, float]] = {}  # with the time of the last use; the oldest use first
        self._holds: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: str) -> Value | None:
        """Return the value of a key and mark it as used; None without one."""
        self._drop_idle()
        if key not in self._values:
            return None
        value, _ = self._values.pop(key)
        self._values[key] = value, self._clock()
        return value

    def put(self, key: str, value: Value) -> None:
        """Store a value, in place of the least recently used if full. Raises Busy if all are held."""
        self._drop_idle()
        self._values.pop(key, None)
        if len(self._values) >= self._limit:
            least = next((key for key in self._values if not self._holds[key]), None)
            if least is None:
                raise Busy(f"{self._limit:,} are in use: try again", code="too_many")
            del self._values[least]
        self._values[key] = value, self._clock()

    def drop(self, key: str) -> None:
        """Remove a key."""
        self._values.pop(key, None)

    @contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Keep a key's value during the block; its end counts as the last use."""
        self._holds[key] += 1
        try:
            yield
        finally:
            self._holds[key] -= 1
            if key in self._values:
                self._values[key] = self._values.pop(key)[0], self._clock()
            if not self._holds[key]:
                del self._holds[key]

    def _drop_idle(self) -> None:
        border = self._clock() - self._idle_s
        idle = takewhile(lambda used: used[1][1] <= border, self._values.items())
        for key in [key for key, _ in idle if key not in self._holds]:
            del self._values[key]
