"""Keeps the index up to date, beside whoever writes and after them. One thread of a serving process.

On PostgreSQL, where many may serve, the one that holds the lease works; the others stand by. Its transactions are
short: a writer waits for one of some 20 ms at most. A crash costs nothing: `indexed_seq` says where to go on.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sized

from django.db import DatabaseError, DataError, connection

from conversations import doorbell
from conversations.errors import Unavailable
from conversations.lease import Lease
from conversations.log.writer import CHECKPOINT
from conversations.search import index
from conversations.threads import lent, sqlstate

logger = logging.getLogger(__name__)

LOOK_EVERY = 1.0  # seconds, whatever the doorbell says
COALESCE = 0.2  # seconds between two rounds while events trickle in
SWEEP_EVERY = 5.0  # seconds between two rounds that pass over tokens alone
REST_WHEN_BUSY = 4  # times as long as a batch took
QUIET = 20  # events stored here during a batch
LAG_EVERY = 5.0  # seconds between two counts of what is behind
LEAST, MOST = 8, 512  # events a transaction
SHORT, LONG = 0.01, 0.03  # seconds of a transaction: below the first the next may be larger, above the second smaller


class Indexer(threading.Thread):
    """Started by the server, ended by `close`."""

    def __init__(self) -> None:
        super().__init__(name="indexer", daemon=True)
        self.lag = index.Lag(0)  # as it was counted last
        self.indexed = 0  # events
        self._lease = Lease("indexer") if connection.vendor == "postgresql" else None
        self._news, self._is_open = threading.Event(), True
        self._size, self._after = 64, 0
        self._has_begun = False
        self._trouble = ""
        self._counted_at = self._swept_at = float("-inf")
        self._rung = 0  # events that were committed here since the last round

    @property
    def state(self) -> str:
        """`ok`, or why nothing can be found that was recorded since."""
        return (self._trouble or "ok") if self.is_alive() else "the indexing thread has ended"

    def run(self) -> None:
        """Index until `close`. Trouble is waited out."""
        stop_listening = [doorbell.on_ring(self._rings), doorbell.on_heard(self._wake)]
        while self._is_open:
            began, self._rung = time.monotonic(), 0
            is_more = self._round()
            if is_more:  # a long way to go: most of the time is the writers', half of it when they are quiet
                share = REST_WHEN_BUSY if self._rung > QUIET else 1
                self._sleep(min((time.monotonic() - began) * share, LOOK_EVERY))
            else:
                self._news.wait(LOOK_EVERY)
                self._sleep(COALESCE)
            self._news.clear()
        for stop in stop_listening:
            stop()
        if self._lease is not None:
            with contextlib.suppress(Unavailable):  # then it ends in its time
                lent(self._lease.release)
        connection.close()

    def close(self) -> None:
        """End the thread after what it has begun."""
        self._is_open = False
        self._news.set()
        if self.is_alive():
            self.join()

    def _sleep(self, seconds: float) -> None:
        if self._is_open:
            time.sleep(seconds)

    def _wake(self, _: object) -> None:
        self._news.set()

    def _rings(self, stored: Sized) -> None:
        self._rung += len(stored)
        self._news.set()

    def _round(self) -> bool:
        """Do one batch if it is ours to do; answer whether there is more at once."""
        before = self._trouble
        try:
            is_more = lent(self._work)
            self._trouble = ""
            return is_more
        except index.Superseded:
            return True
        except (Unavailable, DatabaseError) as error:
            self._trouble = (str(error).splitlines() or [""])[0][:200]
            if self._trouble != before:
                logger.warning("the index waits: %s", self._trouble)
        except Exception as error:  # whatever it is, the thread must live
            self._trouble = f"a mistake: {error}"[:200]
            if self._trouble != before:
                logger.exception("events could not be indexed")
        return False

    def _work(self) -> bool:
        if connection.connection is None and connection.vendor == "sqlite":
            # Within `writing()`, whose turn no other thread has meanwhile: still one checkpointer at a time.
            connection.cursor().execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT}")
        now = time.monotonic()
        if now - self._counted_at > (LOOK_EVERY if self.lag.events else LAG_EVERY):
            self.lag, self._counted_at = index.lag(), now
        if self._lease is not None and not self._lease.hold():
            return False
        if not self._has_begun:
            index.begin()
            self._has_begun = True
        return self.step()

    def step(self) -> bool:
        """Index one batch; answer whether there may be more at once."""
        after, now = self._after, time.monotonic()
        is_sweep = now - self._swept_at > SWEEP_EVERY
        found = index.read(after, self._size, passes_tokens=is_sweep)
        began = time.monotonic()
        try:
            index.store(found)
        except DatabaseError as error:
            if not _is_a_rows_fault(error):
                raise
            if len(found.rows) > 1:  # find out which one
                self._size = 1
                return True
            logger.error("event %s cannot be searched", found.rows[0].id, exc_info=error)
            index.store(found.bare())
        took = time.monotonic() - began
        if took > LONG:
            self._size = max(LEAST, self._size // 2)
        elif took < SHORT and len(found.rows) >= self._size:
            self._size = min(MOST, self._size * 2)
        self._after = found.last
        if is_sweep and not found.last:
            self._swept_at = now
        self.indexed += len(found.rows)
        return found.last > 0 or after > 0


def _is_a_rows_fault(error: DatabaseError) -> bool:
    """Tell a value that no index takes from a database that cannot write now."""
    return isinstance(error, DataError) or sqlstate(error).startswith(("22", "54"))
