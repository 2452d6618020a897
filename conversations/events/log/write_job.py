"""The writer's unit of work: the events of one caller, or the pieces of an answer that are not stored yet."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from conversations.events.log.records import NewEvent, Stored

FULL = 1024  # characters of one stored part

Done = asyncio.Future[list[Stored]] | Future[list[Stored]]


class OpenTokens:
    """Pieces of one turn, made by a run's event writer. The run's thread adds to them until the writer's thread takes
    them all, so only the first piece of a stored part passes the queue."""

    __slots__ = ("_guard", "_is_open", "_pieces", "keeps_lengths", "size")

    def __init__(self, first: str, *, keeps_lengths: bool = False) -> None:
        """Start with a piece. `keeps_lengths`: where one piece ends and the next begins is stored."""
        self.keeps_lengths = keeps_lengths
        self.size = len(first)  # characters
        self._pieces = [first]
        self._is_open = True
        self._guard = threading.Lock()

    def add(self, piece: str) -> bool:
        """Add a piece; return False if they are full or taken."""
        with self._guard:
            if not self._is_open or self.size >= FULL:
                return False
            self._pieces.append(piece)
            self.size += len(piece)
            return True

    def take(self) -> list[str]:
        """Return the pieces; none can be added any more."""
        with self._guard:
            self._is_open = False
        return self._pieces


class Job(NamedTuple):
    """The events of one caller, stored together or not at all, and the futures that wait for them."""

    events: Sequence[NewEvent]
    on_done: Done | None
    size: int
    in_same_transaction: Callable[[], None] | None = None  # changes rows in the same transaction, after the events
    joined: Sequence[Done] = ()  # who waits for tokens that became part of this one's event: answered with it
    open_tokens: OpenTokens | None = None  # of the one token in it: the first of these pieces

    @property
    def key(self) -> str | None:
        """The conversation whose order it must keep; None for a job with several conversations or none."""
        keys = {event.conversation for event in self.events}
        return keys.pop() if len(keys) == 1 else None
