"""A worker inside `serve`: a thread and a loop of its own. The SDK is imported in the thread, after the first page."""

import asyncio
import logging
import os
import signal
import sys
import threading

from conversations import log
from conversations.readiness import OK

logger = logging.getLogger(__name__)

AFTER = 3.0  # seconds: importing the SDK takes one or two of a core, and the first page is asked for now


class Embedded(threading.Thread):
    """Started by `dashboard.asgi` with the process's writer. A wrong team ends the process with its reason."""

    def __init__(self, writer: log.Writer) -> None:
        super().__init__(name="worker", daemon=True)
        self.state = "starting"
        self._writer = writer
        self._closing = threading.Event()

    def run(self) -> None:
        """Serve until `close`."""
        if self._closing.wait(0 if "agents" in sys.modules else AFTER):
            return
        from agents_app.teams import TeamError, load
        from agents_app.worker import Worker

        try:
            teams = load()
        except TeamError as error:
            self.state = str(error)
            sys.stderr.write(f"{error}\n")
            os.kill(os.getpid(), signal.SIGTERM)
            return
        try:
            asyncio.run(self._serve(Worker(self._writer, teams)))
        except Exception as error:
            self.state = f"the worker has ended: {type(error).__name__}"
            logger.exception("the worker ended")

    async def _serve(self, worker: object) -> None:
        from agents_app.worker import Worker

        assert isinstance(worker, Worker)
        serving = asyncio.create_task(worker.run())
        self.state = OK
        while not self._closing.is_set() and not serving.done():
            await asyncio.wait({serving}, timeout=0.1)
            self.state = worker.trouble() or OK
        worker.stop()
        await serving

    def close(self) -> None:
        """Let running runs end, or put them back, and end the thread."""
        self._closing.set()
        if self.is_alive():
            self.join()
