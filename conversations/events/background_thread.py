"""Threads of a serving process beside its event loop: the search index, the export of telemetry, alerts, retention."""

import contextlib
import logging
import threading
from collections.abc import Sequence

from django.db import DatabaseError, connection

from conversations.core.db_threads import with_connection
from conversations.core.errors import Unavailable
from conversations.core.single_process_lease import SingleProcessLease
from conversations.core.status import OK
from conversations.events import commit_listeners
from conversations.events.log.records import Stored


class BackgroundThread(threading.Thread):
    """Started by the server, ended by `close`. What goes wrong is waited out, and reported by `state`."""

    ENDED = ""  # what `state` says once the thread is over
    WAITING = ""  # what the log says of trouble, before its reason

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self._is_open = True
        self._trouble = ""
        self._logger = logging.getLogger(type(self).__module__)

    @property
    def state(self) -> str:
        """`ok`, or why nothing is done."""
        return (self._trouble or OK) if self.is_alive() else self.ENDED

    def wake(self) -> None:
        """Look at once. From any thread."""
        raise NotImplementedError

    def close(self) -> None:
        """End the thread after what it has begun."""
        self._is_open = False
        self.wake()
        if self.is_alive():
            self.join()

    def _note_error(self, error: Exception) -> None:
        if isinstance(error, Unavailable | DatabaseError):
            self._note((str(error).splitlines() or [""])[0][:200])
        else:
            self._note(f"internal error: {error}"[:200], error)

    def _note(self, trouble: str, cause: Exception | None = None) -> None:
        """Note what is wrong, or "". It is logged when it changes; of a bug of ours with its `cause`."""
        if trouble and trouble != self._trouble:
            level = logging.WARNING if cause is None else logging.ERROR
            self._logger.log(level, "%s: %s", self.WAITING, trouble, exc_info=cause)
        self._trouble = trouble


class ExclusiveThread(BackgroundThread):
    """One that works in rounds where many may serve a database: the one that holds the lease works, the others
    stand by."""

    def __init__(self, name: str, lease: str) -> None:
        super().__init__(name)
        self._lease = SingleProcessLease(lease) if connection.vendor == "postgresql" else None
        self._news = threading.Event()

    def run(self) -> None:
        """Work until `close`."""
        stop_listening = [
            commit_listeners.on_committed(self._committed),
            commit_listeners.on_remote_heads(lambda _: self.wake()),
        ]
        while self._is_open:
            self._run_once()
        for stop in stop_listening:
            stop()
        if self._lease is not None:
            with contextlib.suppress(Unavailable):  # then it ends in its time
                with_connection(self._lease.release)
        connection.close()

    def wake(self) -> None:
        """Look at once. From any thread."""
        self._news.set()

    def _committed(self, stored: Sequence[Stored]) -> None:
        """Take note of what this process committed."""
        raise NotImplementedError

    def _run_once(self) -> None:
        """Work once, and wait for as long as there is nothing to do."""
        raise NotImplementedError

    @property
    def _may_work(self) -> bool:
        return self._lease is None or self._lease.hold()
