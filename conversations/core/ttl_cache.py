"""Cache something that is read from the database at most twice a second, such as the operators' rules."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from conversations.core.background_loop import take_error
from conversations.core.db_threads import RunInThread

FRESH = 0.5  # seconds for which what was read is good, in every process; a change binds the next call within 1 s

Value = TypeVar("Value")


class TtlCache(Generic[Value]):
    """The last value that `read` returned; `at_first` before the first read."""

    def __init__(self, read: Callable[[], Value], at_first: Value) -> None:
        self._read, self._value = read, at_first
        self._guard = threading.Lock()
        self._read_at = float("-inf")
        self._changes = 0
        self._reading: tuple[int, float, asyncio.Future[Value]] | None = None  # changes before it, its start, it

    @property
    def latest(self) -> Value:
        """Return the last value, however old."""
        return self._value

    def fresh(self) -> Value | None:
        """Return the value without a query; None if that needs one."""
        return self._value if time.monotonic() - self._read_at < FRESH else None

    def answer(self) -> Value:
        """Return the value, read again if it is too old. Synchronous."""
        if (value := self.fresh()) is not None:
            return value
        began, changes = time.monotonic(), self._changes
        value = self._read()
        with self._guard:
            if changes == self._changes:  # what changed while we read may not be in it
                self._value, self._read_at = value, began
        return value

    async def answer_in(self, do: RunInThread) -> Value:
        """Return the value; if it is too old, `do` reads it again in a thread, once for all in this event loop who need
        it within half a second, with no change between."""
        if (value := self.fresh()) is not None:
            return value
        reading = self._shared_reading()
        if reading is None:
            reading = asyncio.ensure_future(do(self.answer))
            reading.add_done_callback(take_error)
            self._reading = self._changes, time.monotonic(), reading
        return await asyncio.shield(reading)  # of a run that is cancelled, others may wait for it

    def _shared_reading(self) -> asyncio.Future[Value] | None:
        """Return the read under way, if it began in this loop, under half a second ago and after the last change."""
        if self._reading is None:
            return None
        changes, began, reading = self._reading
        is_recent = changes == self._changes and time.monotonic() - began < FRESH
        is_ours = not reading.done() and reading.get_loop() is asyncio.get_running_loop()
        return reading if is_recent and is_ours else None

    def forget(self) -> None:
        """Drop the value, because it has changed."""
        with self._guard:
            self._changes += 1
            self._read_at = float("-inf")
