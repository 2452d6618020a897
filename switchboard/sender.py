"""What publishes for `HttpBus`: one thread, one order. What waits at once goes in one request.

A message is acknowledged when the server committed it or, while the server is away, when the spool has it on disk. As
long as anything waits in the spool, newer messages queue up behind it, so the order is the order of `send`.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from switchboard.api import Api
from switchboard.errors import Closed, SpoolFull, Unreachable
from switchboard.spool import Spool

MAX_MESSAGES = 500  # messages in one request
MAX_BYTES = 512 << 10  # of them, unless one alone has more: below what proxies take by default
FIRST_PAUSE, MAX_PAUSE = 0.1, 5.0  # seconds between attempts while the server is away
_log = logging.getLogger("switchboard")


class _Outcome:
    """The outcome of a message that no caller waits for; messages are settled in order."""

    __slots__ = ("_is_done", "error")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._is_done = False

    def done(self) -> bool:
        """Tell whether it is settled."""
        return self._is_done

    def set_result(self, _: None) -> None:
        """Mark the message as stored."""
        self._is_done = True

    def set_exception(self, error: BaseException) -> None:
        """Mark the message as failed with this error."""
        self.error, self._is_done = error, True


class _Waiting(NamedTuple):
    line: bytes
    stored: Future[None] | _Outcome
    is_kept: bool = False  # in the spool, if the server rejects the whole request: nobody would send it again


class Sender:
    """A queue in memory for a server that answers, a spool for one that does not, and the thread that empties both."""

    def __init__(self, api: Api, spool: Spool | None) -> None:
        self._api, self._spool = api, spool
        self._news = threading.Condition()  # guards all below, the spool too
        self._queue: list[_Waiting] = []
        self._under_way: list[_Waiting] = []  # taken from the queue and not settled
        self._accepted = self._spooled()  # messages so far; they are settled in their order
        self._is_closing = self._is_hurried = False
        self._problem: Unreachable | None = None  # of the last try
        self._thread = threading.Thread(target=self._run, name="switchboard-sender", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many messages the server has not acknowledged yet."""
        with self._news:
            return self._waiting()

    def send(self, line: bytes) -> None:
        """Answer when a message is safe. Raises `Refused`, `SpoolFull`; without a spool `Unreachable`; `Closed`."""
        with self._news:
            if self._is_closing:
                raise Closed("this bus is closed")
            if self._spool and self._spool.messages:
                self._spool.append(line)
                self._accepted += 1
                return
            stored = Future[None]()
            self._queue.append(_Waiting(line, stored))
            self._accepted += 1
            self._news.notify_all()
        stored.result()

    def send_all(self, lines: Sequence[bytes], *, is_kept: bool = False) -> list[BaseException | None]:
        """Answer when several messages are safe, for each what it failed with, as `send` raises it. With `is_kept`,
        what rejects the whole request, such as a revoked token, is not a failure: they are spooled. Raises `Closed`."""
        with self._news:
            if self._is_closing:
                raise Closed("this bus is closed")
            if self._spool and self._spool.messages:
                outcomes = self._spool_all(lines)
                self._accepted += outcomes.count(None)
                return outcomes
            batch = [_Waiting(line, _Outcome(), is_kept) for line in lines[:-1]]
            last = Future[None]()
            self._queue += [*batch, *(_Waiting(line, last, is_kept) for line in lines[-1:])]
            self._accepted += len(lines)
            self._news.notify_all()
        ending = [last.exception()] if lines else []
        return [waiting.stored.error for waiting in batch if isinstance(waiting.stored, _Outcome)] + ending

    def save(self) -> None:
        """Put what waits in memory into the spool now, though it may be on its way: its ids keep it one. For a process
        that ends while the server hangs; without a spool it does nothing."""
        with self._news:
            if not self._spool:
                return
            batch, self._queue = self._under_way + self._queue, []
            outcomes = self._spool_all([waiting.line for waiting in batch])
            _settle(batch, outcomes)

    def flush(self, timeout_s: float) -> bool:
        """Try at once, and wait until the server has everything sent before; False when time was too short."""
        with self._news:
            self._is_hurried = True
            self._news.notify_all()
            number = self._accepted
            return self._news.wait_for(lambda: self._accepted - self._waiting() >= number, timeout_s)

    def require_delivered(self, timeout_s: float) -> None:
        """Try at once, and wait until the server has what is spooled now. Raises `Unreachable`, with what the last try
        failed with, when time was too short."""
        with self._news:
            self._is_hurried = True
            self._news.notify_all()
            number = self._accepted
            if not self._news.wait_for(
                lambda: not self._spooled() or self._accepted - self._waiting() >= number, timeout_s
            ):
                raise self._problem or Unreachable("what was published before is still on its way")

    def close(self, timeout_s: float) -> None:
        """Flush, then stop. What is not sent by then stays in the spool."""
        if self._is_closing:
            return
        self.flush(timeout_s)
        with self._news:
            self._is_closing = True
            self._news.notify_all()
        self._thread.join(timeout_s + 1)

    def _waiting(self) -> int:
        return len(self._queue) + len(self._under_way) + self._spooled()

    def _spooled(self) -> int:
        return self._spool.messages if self._spool else 0

    def _run(self) -> None:
        backoff_s = pause_s = 0.0
        try:
            while self._wait(pause_s):
                try:
                    self._from_spool() if self._spooled() else self._from_queue()
                    backoff_s = pause_s = 0.0
                    self._problem = None
                except Exception as error:
                    backoff_s = min(MAX_PAUSE, max(FIRST_PAUSE, backoff_s * 2))
                    pause_s = backoff_s * random.uniform(0.5, 1)
                    if isinstance(error, Unreachable):
                        self._problem = error
                        pause_s = max(pause_s, error.retry_after_s)
                        _log.warning("%d messages are waiting for the server: %s", self.waiting, error)
                    else:  # a full disk, or our own mistake: told, and tried again
                        _log.exception("%d messages are waiting for the server", self.waiting)
        finally:
            with self._news:
                if self._spool:
                    self._spool.close()

    def _wait(self, pause_s: float) -> bool:
        """Wait out a pause, then for work; False when it is time to end."""
        with self._news:
            if pause_s:
                self._news.wait_for(lambda: self._is_closing or self._is_hurried, pause_s)
            self._is_hurried = False
            self._news.wait_for(lambda: self._is_closing or self._queue or self._spooled())
            return bool(self._queue) or not self._is_closing

    def _from_spool(self) -> None:
        """Send the oldest of the spool; a message that is refused is set aside and holds up nothing. Where the disk
        cannot take it, it stays the oldest, and OSError is raised once nothing else was sent."""
        assert self._spool is not None
        with self._news:
            lines = self._spool.first(MAX_MESSAGES, MAX_BYTES)
        refusals = self._api.publish_kept(lines)
        with self._news:
            stuck, problem = [], None
            for line, refusal in zip(lines, refusals, strict=True):
                try:
                    if refusal:
                        self._spool.set_aside(line, refusal)
                except OSError as error:
                    problem = error
                    stuck.append(line)
            self._spool.done(lines, but=stuck)
            self._news.notify_all()
        if problem and len(stuck) == len(lines):
            raise problem

    def _from_queue(self) -> None:
        """Send what waits in memory. Raises `Unreachable` after it is in the spool, or reported to those who wait."""
        batch = self._take()
        is_kept = self._spool is not None and any(waiting.is_kept for waiting in batch)
        publish = self._api.publish_kept if is_kept else self._api.publish
        try:
            outcomes = publish([waiting.line for waiting in batch])
        except Unreachable as error:
            self._put_off(batch, error)
            if self._spool:
                raise
        except Exception as error:
            self._settle(batch, [error] * len(batch))
            raise
        else:
            self._settle(batch, outcomes)

    def _take(self) -> list[_Waiting]:
        with self._news:
            size = taken = 0
            for waiting in self._queue[:MAX_MESSAGES]:
                size += len(waiting.line)
                if taken and size > MAX_BYTES:
                    break
                taken += 1
            batch, self._queue = self._queue[:taken], self._queue[taken:]
            self._under_way = batch
            return batch

    def _put_off(self, batch: list[_Waiting], error: Unreachable) -> None:
        """Spool a batch and all that queued up behind it, in order; without a spool, tell those who wait."""
        with self._news:
            batch, self._queue = [waiting for waiting in batch + self._queue if not waiting.stored.done()], []
            lines = [waiting.line for waiting in batch]
            self._settle(batch, self._spool_all(lines) if self._spool else [error] * len(batch))

    def _spool_all(self, lines: Sequence[bytes]) -> list[BaseException | None]:
        assert self._spool is not None
        try:
            fitting = self._spool.append_all(lines)
            error = SpoolFull(f"the server is unreachable and the spool is full: {self._spool.messages:,} messages")
        except SpoolFull as full:
            fitting, error = 0, full
        return [None if n < fitting else error for n in range(len(lines))]

    def _settle(self, batch: Sequence[_Waiting], outcomes: Sequence[BaseException | None]) -> None:
        with self._news:
            self._under_way = []
            self._news.notify_all()
            _settle(batch, outcomes)


def _settle(batch: Sequence[_Waiting], outcomes: Sequence[BaseException | None]) -> None:
    """Tell those who wait; what was saved meanwhile is settled already."""
    for waiting, error in zip(batch, outcomes, strict=True):
        if not waiting.stored.done():
            waiting.stored.set_exception(error) if error else waiting.stored.set_result(None)
