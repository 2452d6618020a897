"""The writer's unit of work: the events of one caller, and the futures that wait for them."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from conversations.events.log.open_tokens import OpenTokens
from conversations.events.log.records import NewEvent, Stored

Done = asyncio.Future[list[Stored]] | Future[list[Stored]]
Answer = list[Stored] | Exception


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


def answer(answers: Sequence[tuple[Job, Answer]]) -> None:
    """Resolve all waiting futures, with one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Done, Answer]]] = {}
    for done, result in _waiters(answers):
        if isinstance(done, asyncio.Future):
            by_loop.setdefault(done.get_loop(), []).append((done, result))
        else:
            _settle([(done, result)])
    for loop, pairs in by_loop.items():
        with contextlib.suppress(RuntimeError):  # a loop that is closed has nobody who waits
            loop.call_soon_threadsafe(_settle, pairs)


def _waiters(answers: Sequence[tuple[Job, Answer]]) -> list[tuple[Done, Answer]]:
    waiters: list[tuple[Done, Answer]] = []
    for job, result in answers:
        if job.on_done is not None:
            waiters.append((job.on_done, result))
        waiters += [(done, result if isinstance(result, Exception) else []) for done in job.joined]
    return waiters


def _settle(answers: Sequence[tuple[Done, Answer]]) -> None:
    for done, result in answers:
        if done.done():  # given up
            continue
        if isinstance(result, Exception):
            done.set_exception(result)
        else:
            done.set_result(result)
