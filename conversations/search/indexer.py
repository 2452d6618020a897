"""Keep the index up to date in the background. One thread of a serving process.

On PostgreSQL, where several processes may serve, the one that holds the lease works and the others stand by.
Transactions are short: a writer waits for one of about 20 ms at most. A crash loses nothing: `indexed_seq` says where
to continue.
"""

import logging
import time
from collections.abc import Sequence

from django.db import DatabaseError, DataError, connection

from conversations.core.db_threads import sqlstate, with_connection
from conversations.events.background_thread import ExclusiveThread
from conversations.events.log.commit_batch import be_writer
from conversations.events.log.records import Stored
from conversations.search import index_writer

logger = logging.getLogger(__name__)

POLL_EVERY_S = 1.0  # whatever is notified: on SQLite, nothing notifies of what a command commits
COALESCE = 0.2  # seconds between two rounds while events trickle in
SWEEP_EVERY = 5.0  # seconds between two rounds that pass over tokens alone
REST_WHEN_BUSY = 4  # times as long as a batch took
QUIET = 20  # events stored here during a batch
LAG_EVERY = 5.0  # seconds between two counts of what is behind
MIN_EVENTS, MAX_EVENTS = 8, 512  # events a transaction
SHORT, LONG = 0.01, 0.03  # seconds of a transaction: below the first the next may be larger, above the second smaller


class Indexer(ExclusiveThread):
    """The indexer thread, started by the server and ended by `close`."""

    ENDED = "the indexing thread has ended"
    WAITING = "indexing is waiting"

    def __init__(self) -> None:
        super().__init__("indexer", lease="indexer")
        self.lag = index_writer.Lag(0)  # as it was counted last
        self.indexed = 0  # events
        self._size, self._after = 64, 0
        self._has_begun = False
        self._counted_at = self._swept_at = float("-inf")
        self._new_events = 0  # events that were committed here since the last round

    def _run_once(self) -> None:
        began, self._new_events = time.monotonic(), 0
        if self._round():  # a long way to go: most of the time is the writers', half of it when they are quiet
            share = REST_WHEN_BUSY if self._new_events > QUIET else 1
            self._sleep(min((time.monotonic() - began) * share, POLL_EVERY_S))
        else:
            self._news.wait(POLL_EVERY_S)
            self._sleep(COALESCE)
        self._news.clear()

    def _sleep(self, seconds: float) -> None:
        if self._is_open:
            time.sleep(seconds)

    def _committed(self, stored: Sequence[Stored]) -> None:
        self._new_events += len(stored)
        if any(event.kind != "token" for event in stored):  # tokens alone wait for the sweep
            self.wake()

    def _round(self) -> bool:
        """Index one batch if this process holds the lease; return whether there is more at once."""
        try:
            is_more = with_connection(self._work)
        except index_writer.IndexSuperseded:
            return True
        except Exception as error:  # whatever it is, the thread must live
            self._note_error(error)
            return False
        self._note("")
        return is_more

    def _work(self) -> bool:
        if connection.connection is None and connection.vendor == "sqlite":
            # Within `write_transaction()`, whose turn no other thread has meanwhile: still one checkpointer at a time.
            be_writer(connection.cursor())
        now = time.monotonic()
        if now - self._counted_at > (POLL_EVERY_S if self.lag.events else LAG_EVERY):
            self.lag, self._counted_at = index_writer.lag(), now
        if not self._may_work:
            return False
        if not self._has_begun:
            index_writer.begin()
            self._has_begun = True
        return self.step()

    def step(self) -> bool:
        """Index one batch; return whether there may be more at once."""
        after, now = self._after, time.monotonic()
        is_sweep = now - self._swept_at > SWEEP_EVERY
        batch = index_writer.read(after, self._size, passes_tokens=is_sweep)
        began = time.monotonic()
        try:
            index_writer.store(batch)
        except DatabaseError as error:
            if not _is_a_rows_fault(error):
                raise
            if len(batch.rows) > 1:  # find out which one
                self._size = 1
                return True
            logger.error("event %s cannot be searched", batch.rows[0].id, exc_info=error)
            index_writer.store(batch.bare())
        elapsed_s = time.monotonic() - began
        if elapsed_s > LONG:
            self._size = max(MIN_EVENTS, self._size // 2)
        elif elapsed_s < SHORT and len(batch.rows) >= self._size:
            self._size = min(MAX_EVENTS, self._size * 2)
        self._after = batch.last
        if is_sweep and not batch.last:
            self._swept_at = now
        self.indexed += len(batch.rows)
        return batch.last > 0 or after > 0


def _is_a_rows_fault(error: DatabaseError) -> bool:
    """Return whether an error is about one value rather than a database that cannot be written."""
    return isinstance(error, DataError) or sqlstate(error).startswith(("22", "54"))
