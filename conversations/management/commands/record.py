"""`record`: Redis into the record, posts onto Redis; one is active, further ones stand by (§3.8, 9)."""

import asyncio
import contextlib
import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations.core import crash_reports, data_dir, schema_state
from conversations.core.errors import Unavailable
from conversations.realtime import rollback_watch
from conversations.transport.recorder import RecorderService

SWITCH_INTERVAL = 0.0005  # seconds: reading and storing get their turns beside each other


class Command(BaseCommand):
    """Record until told to stop."""

    help = "Record messages from Redis (SWITCHBOARD_REDIS_URL). A second recorder stands by to take over."
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to begin."""
        parser.add_argument(
            "--from", dest="start", choices=["beginning", "now"], default="beginning",
            help="on first use: import existing Redis entries (default), or only new ones",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Record; exit with the reason when there is no Redis to read, or another process holds the database."""
        if not settings.CONFIG.redis_url:
            raise CommandError("SWITCHBOARD_REDIS_URL is not set")
        with crash_reports.recording(settings.DATA_DIR, "record"):
            self._record_here(from_now=options["start"] == "now")

    def _record_here(self, *, from_now: bool) -> None:
        try:
            with data_dir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else contextlib.nullcontext():
                schema_state.prepare_service()
                sys.setswitchinterval(SWITCH_INTERVAL)
                asyncio.run(self._record(from_now=from_now))
        except Unavailable as error:
            advice = (
                ". SQLite allows one process only; a server that uses it also records"
                " if it is started with SWITCHBOARD_REDIS_URL."
            )
            raise CommandError(error.message + advice * (error.code == data_dir.HELD)) from None

    async def _record(self, *, from_now: bool) -> None:
        service = RecorderService(settings.CONFIG.redis_url, from_now=from_now)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, service.stop)
        self.stdout.write("Recording. Stop with Ctrl+C or SIGTERM.")
        self.stdout.flush()
        async with rollback_watch.watching():
            await service.run()
