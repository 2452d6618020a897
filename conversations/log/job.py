"""What the writer is handed: events of one caller, and who waits for them."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from conversations.log.events import NewEvent, Stored

Done = asyncio.Future[list[Stored]] | Future[list[Stored]]


class Job(NamedTuple):
    """Events of one caller, stored together or not at all, and who waits for them."""

    events: Sequence[NewEvent]
    done: Done | None
    size: int
    riding: Callable[[], None] | None = None  # changes rows in the same transaction, after the events
