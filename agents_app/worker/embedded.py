"""A worker inside `serve`: its teams are loaded while pages are already served, and its runs have a separate thread.

No request finds an agent unknown because it is still being imported: those for agents wait (`dashboard.asgi`).
"""

import asyncio
import logging
import threading

from django.db import connection

from agents_app.teams.definition import TeamError
from agents_app.teams.loading import load
from agents_app.worker.worker import Worker
from conversations.core.errors import Unavailable
from conversations.core.status import OK
from conversations.events import log
from conversations.runs import leases

logger = logging.getLogger(__name__)

PATIENCE = 30.0  # seconds a start waits for the rows of what is served here


class EmbeddedWorker(threading.Thread):
    """The embedded worker, created by `dashboard.asgi` (`settings.WORKER`) with the process's writer. Raises
    Unavailable for an invalid team, with the reason."""

    def __init__(self, writer: log.WriterThreads) -> None:
        super().__init__(name="worker", daemon=True)
        self._ending = ""  # why it runs no more
        try:
            self._worker = Worker(writer, load())
        except TeamError as error:
            raise Unavailable(str(error)) from None

    @property
    def state(self) -> str:
        """Return `ok`, or what is wrong with its agents."""
        if self._ending or not self._worker.registered.is_set():
            return self._ending or "starting"
        return self._worker.trouble() or OK

    def wait_until_registered(self) -> None:
        """Wait until the agents served here are registered, or the worker has ended."""
        self._worker.registered.wait(PATIENCE)

    def run(self) -> None:
        """Serve until `close`."""
        try:
            if connection.vendor == "sqlite":  # this process alone runs agents: whoever had a run is gone
                leases.interrupt_all()
            asyncio.run(self._worker.run())
        except Exception as error:
            self._ending = f"the worker has ended: {type(error).__name__}"
            logger.exception("the worker ended")
        finally:
            self._worker.registered.set()

    def close(self) -> None:
        """Let active runs end or return them to the queue, and end the thread."""
        self._worker.stop()
        if self.is_alive():
            self.join()
