"""What is read from the database at most every half a second, for whoever asks very often: the operators' rules."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

FRESH = 0.5  # seconds for which what was read is good, in every process; a change binds the next call within 1 s

Value = TypeVar("Value")


class TtlCache(Generic[Value]):
    """What `read` answered last; `at_first` before it was ever asked."""

    def __init__(self, read: Callable[[], Value], at_first: Value) -> None:
        self._read, self._value = read, at_first
        self._guard = threading.Lock()
        self._read_at = float("-inf")
        self._changes = 0

    @property
    def latest(self) -> Value:
        """What was read last, however old."""
        return self._value

    def fresh(self) -> Value | None:
        """Return it without a query, or None when that takes one."""
        return self._value if time.monotonic() - self._read_at < FRESH else None

    def answer(self) -> Value:
        """Return it, read anew when it is older. Sync."""
        if (value := self.fresh()) is not None:
            return value
        began, changes = time.monotonic(), self._changes
        value = self._read()
        with self._guard:
            if changes == self._changes:  # what changed while we read may not be in it
                self._value, self._read_at = value, began
        return value

    def forget(self) -> None:
        """It has changed: read it anew."""
        with self._guard:
            self._changes += 1
            self._read_at = float("-inf")
