"""`serve`: one process with everything in it; holds the data directory while it lives (design 3.8, 9)."""

import hashlib
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from conversations import datadir
from conversations.errors import Unavailable
from conversations.management import tables
from dashboard.server import config


class Command(BaseCommand):
    """Prepare the data directory, print how to sign in, serve until told to stop."""

    help = "Serve the dashboard on this machine."
    requires_migrations_checks = False
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take an address, a port, and whether to show the demo."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
        parser.add_argument("--no-demo", action="store_true", help="do not play the demo conversation")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with the reason when the directory is held or the port is taken."""
        try:
            with datadir.hold(settings.DATA_DIR):
                self._serve(options["host"], options["port"], with_demo=not options["no_demo"])
        except Unavailable as error:
            raise CommandError(error.message) from None

    def _serve(self, host: str, port: int, *, with_demo: bool) -> None:
        tables.bring_up_to_date()
        self._collect_static()
        from conversations import log
        from conversations.epoch import HighWater
        from dashboard.asgi import application, with_static

        log.discard_staged()
        if HighWater(settings.DATA_DIR).check():
            self.stderr.write("The record is older than what was served before: a new epoch begins.")
        shown = f"[{host}]" if ":" in host else host
        application.url = f"http://{shown}:{port}"
        application.with_demo = with_demo
        self._greet(application.url)
        uvicorn.Server(config(with_static(application), host, port)).run()

    def _greet(self, url: str) -> None:
        from conversations.actions.people import first_owner

        self.stdout.write(f"Switchboard serves on {url}")
        if secret := first_owner():
            self.stdout.write(f"Sign in once with: {url}/sign-in/link/?t={secret}")
        self.stdout.flush()

    def _collect_static(self) -> None:
        """Collect static files when they changed since last time."""
        stamp = hashlib.sha256()
        for root in settings.STATICFILES_DIRS:
            for path in sorted(p for p in Path(root).rglob("*") if p.is_file()):
                stamp.update(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}\n".encode())
        mark = Path(settings.STATIC_ROOT).with_suffix(".stamp")
        if mark.exists() and mark.read_text() == stamp.hexdigest():
            return
        call_command("collectstatic", verbosity=0, interactive=False, clear=True)
        mark.write_text(stamp.hexdigest())
