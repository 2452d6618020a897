"""`runagents`: a worker in its own process, any number beside one PostgreSQL (§9)."""

import asyncio
import atexit
import contextlib
import logging
import os
import signal
import sys
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations.core import crash_reports, data_dir, schema_state
from conversations.core.errors import Unavailable
from conversations.events import log
from conversations.realtime import rollback_watch
from conversations.runs import leases
from conversations.transport import relay_start

EXIT_S = 5.0  # seconds that tools may still take after their runs have ended


class Command(BaseCommand):
    """Run agents until told to stop."""

    help = "Run the agents of the teams in SWITCHBOARD_TEAMS. Several workers can share one PostgreSQL database."
    requires_system_checks = ()  # they are run by the tests; a start is waited for
    _has_ended = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with the reason if a team is invalid, or another process holds the database."""
        from agents_app.teams.definition import Team, TeamError
        from agents_app.teams.loading import load

        atexit.register(self._leave_memory)  # before any other that a team or a library registers: it runs after them
        try:
            teams: list[Team] = load()
        except TeamError as error:
            raise CommandError(str(error)) from None
        with crash_reports.recording(settings.DATA_DIR, "runagents"):
            self._run_here(teams)
        self._has_ended = True
        _exit_within(EXIT_S)

    def _leave_memory(self) -> None:
        """Leave the memory of a worker that has ended to the system: the interpreter's last collection, of all that the
        agents' SDK consists of, takes seconds. Threads and everything else have ended."""
        if self._has_ended:
            logging.shutdown()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    def _run_here(self, teams: list[Any]) -> None:
        try:
            with data_dir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else contextlib.nullcontext():
                schema_state.prepare_service()
                if connection.vendor == "sqlite":  # this process alone runs agents: whoever had a run is gone
                    leases.interrupt_all()
                if settings.CONFIG.redis_url:
                    relay_start.ensure_start()
                asyncio.run(self._serve(teams))
        except Unavailable as error:
            advice = ". SQLite allows one process only; the server that uses it also runs agents."
            raise CommandError(error.message + advice * (error.code == data_dir.HELD)) from None

    async def _serve(self, teams: list[Any]) -> None:
        from agents_app.worker.worker import Worker

        writer = log.WriterThreads()
        writer.start()
        worker = Worker(writer, teams)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        self.stdout.write(f"Running agents of {', '.join(team.name for team in teams)}. Stop with Ctrl+C or SIGTERM.")
        self.stdout.flush()
        try:
            async with rollback_watch.watching():
                await worker.run()
        finally:
            writer.close()  # in this thread: tools that never return may have all others


def _exit_within(seconds: float) -> None:
    """End the process after so many seconds, even if synchronous tools have not returned: the interpreter would wait
    for their threads. Everything is stored and closed."""
    last = threading.Timer(seconds, os._exit, [0])
    last.daemon = True
    last.start()
