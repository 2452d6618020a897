"""`runagents`: a worker in its own process, any number beside one PostgreSQL (design 9)."""

import asyncio
import contextlib
import signal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations import datadir, log, relayed
from conversations.errors import Unavailable
from conversations.management import tables


class Command(BaseCommand):
    """Run agents until told to stop."""

    help = "Run the agents of the teams in SWITCHBOARD_TEAMS. Any number of workers may share a PostgreSQL."
    requires_migrations_checks = False
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with the reason when a team is wrong, or another process holds the database."""
        from agents_app.teams import Team, TeamError, load

        try:
            teams: list[Team] = load()
        except TeamError as error:
            raise CommandError(str(error)) from None
        try:
            with datadir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else contextlib.nullcontext():
                tables.ensure()
                if settings.CONFIG.redis_url:
                    relayed.begin()
                asyncio.run(self._serve(teams))
        except Unavailable as error:
            raise CommandError(
                f"{error.message}. With SQLite one process has the database: the server that has it runs agents too."
            ) from None

    async def _serve(self, teams: list[Any]) -> None:
        from agents_app.worker import Worker

        writer = log.Writer()
        writer.start()
        worker = Worker(writer, teams)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        self.stdout.write(f"Running agents of {', '.join(team.name for team in teams)}; stop with SIGTERM.")
        self.stdout.flush()
        try:
            await worker.run()
        finally:
            await asyncio.to_thread(writer.close)
