"""`record`: Redis into the record, posts onto Redis; one is active, further ones stand by (design 3.8, 9)."""

import asyncio
import contextlib
import signal
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations import datadir
from conversations.errors import Unavailable
from conversations.management import tables
from conversations.recorder import Service

SWITCH_INTERVAL = 0.0005  # seconds: reading and storing get their turns beside each other


class Command(BaseCommand):
    """Record until told to stop."""

    help = "Record what agents say on Redis (SWITCHBOARD_REDIS_URL). A second one stands by and takes over."
    requires_migrations_checks = False
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to begin."""
        parser.add_argument(
            "--from", dest="start", choices=["beginning", "now"], default="beginning",
            help="at the very first contact: import what is on Redis already (default), or begin with what comes now",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Record; exit with the reason when there is no Redis to read, or another process holds the database."""
        if not settings.CONFIG.redis_url:
            raise CommandError("there is no Redis to record: set SWITCHBOARD_REDIS_URL")
        try:
            with datadir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else contextlib.nullcontext():
                tables.ensure()
                sys.setswitchinterval(SWITCH_INTERVAL)
                asyncio.run(self._record(from_now=options["start"] == "now"))
        except Unavailable as error:
            raise CommandError(
                f"{error.message}. With SQLite one process has the database: a server that has it records by itself,"
                " when SWITCHBOARD_REDIS_URL is set where it starts."
            ) from None

    async def _record(self, *, from_now: bool) -> None:
        service = Service(settings.CONFIG.redis_url, from_now=from_now)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, service.stop)
        self.stdout.write("Recording; stop with SIGTERM.")
        self.stdout.flush()
        await service.run()
