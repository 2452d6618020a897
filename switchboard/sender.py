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
from switchboard.errors import BusError, Closed, SpoolFull, Unreachable
from switchboard.spool import Spool

MOST = 500  # messages in one request
MOST_BYTES = 512 << 10  # of them, unless one alone has more: below what proxies take by default
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds between attempts while the server is away
_log = logging.getLogger("switchboard")


class _Waiting(NamedTuple):
    line: bytes
    stored: Future[None]


class Sender:
    """A queue in memory for a server that answers, a spool for one that does not, and the thread that empties both."""

    def __init__(self, api: Api, spool: Spool | None) -> None:
        self._api, self._spool = api, spool
        self._news = threading.Condition()  # guards all below, the spool too
        self._queue: list[_Waiting] = []
        self._under_way = 0  # messages taken from the queue and not settled
        self._is_closing = self._is_hurried = False
        self._thread = threading.Thread(target=self._run, name="switchboard-sender", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many messages the server has not acknowledged yet."""
        with self._news:
            return len(self._queue) + self._under_way + self._spooled()

    def send(self, line: bytes) -> None:
        """Answer when a message is safe. Raises `Refused`, `SpoolFull`; without a spool `Unreachable`; `Closed`."""
        with self._news:
            if self._is_closing:
                raise Closed("this bus is closed")
            if self._spool and self._spool.messages:
                self._spool.append(line)
                return
            waiting = _Waiting(line, Future())
            self._queue.append(waiting)
            self._news.notify_all()
        waiting.stored.result()

    def flush(self, timeout_s: float) -> bool:
        """Try at once, and wait until the server has everything; False when time was too short."""
        with self._news:
            self._is_hurried = True
            self._news.notify_all()
            return self._news.wait_for(
                lambda: not self._queue and not self._under_way and not self._spooled(), timeout_s
            )

    def close(self, timeout_s: float) -> None:
        """Flush, then stop. What is not sent by then stays in the spool."""
        if self._is_closing:
            return
        self.flush(timeout_s)
        with self._news:
            self._is_closing = True
            self._news.notify_all()
        self._thread.join(timeout_s + 1)

    def _spooled(self) -> int:
        return self._spool.messages if self._spool else 0

    def _run(self) -> None:
        backoff_s = pause_s = 0.0
        try:
            while self._wait(pause_s):
                try:
                    self._from_spool() if self._spooled() else self._from_queue()
                    backoff_s = pause_s = 0.0
                except Exception as error:
                    backoff_s = min(LONGEST_PAUSE, max(FIRST_PAUSE, backoff_s * 2))
                    pause_s = backoff_s * random.uniform(0.5, 1)
                    if isinstance(error, Unreachable):
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
        """Send the oldest of the spool; what is refused is set aside and holds up nothing."""
        assert self._spool is not None
        with self._news:
            lines = self._spool.first(MOST, MOST_BYTES)
        refusals = self._api.publish(lines)
        with self._news:
            for line, refusal in zip(lines, refusals, strict=True):
                if refusal:
                    self._spool.set_aside(line, refusal)
            self._spool.done(lines)
            self._news.notify_all()

    def _from_queue(self) -> None:
        """Send what waits in memory. Raises `Unreachable` after it is in the spool, or told to those who wait."""
        batch = self._take()
        try:
            outcomes = self._api.publish([waiting.line for waiting in batch])
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
            for waiting in self._queue[:MOST]:
                size += len(waiting.line)
                if taken and size > MOST_BYTES:
                    break
                taken += 1
            batch, self._queue = self._queue[:taken], self._queue[taken:]
            self._under_way = len(batch)
            return batch

    def _put_off(self, batch: list[_Waiting], error: Unreachable) -> None:
        """Spool a batch and all that queued up behind it, in order; without a spool, tell those who wait."""
        with self._news:
            batch, self._queue = batch + self._queue, []
            self._settle(batch, [self._spool_line(waiting.line) if self._spool else error for waiting in batch])

    def _spool_line(self, line: bytes) -> BusError | None:
        assert self._spool is not None
        try:
            self._spool.append(line)
        except SpoolFull as error:
            return error
        return None

    def _settle(self, batch: Sequence[_Waiting], outcomes: Sequence[Exception | None]) -> None:
        with self._news:
            self._under_way = 0
            self._news.notify_all()
        for waiting, error in zip(batch, outcomes, strict=True):
            if error:
                waiting.stored.set_exception(error)
            else:
                waiting.stored.set_result(None)
