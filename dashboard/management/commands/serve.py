"""`serve`: one process with everything in it, holding the data directory, or one web node of many (design 3.8, 9)."""

import hashlib
from argparse import ArgumentParser
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from conversations import datadir
from conversations.errors import Unavailable
from conversations.management import tables
from dashboard.server import Server, config

ONE_PROCESS = "SQLite is one process's; with PostgreSQL there may be many"


class Command(BaseCommand):
    """Prepare the data directory, print how to sign in, serve until told to stop."""

    help = "Serve the dashboard on this machine."
    requires_migrations_checks = False
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take an address, a port, whether to show the demo, and whether to be a plain web node."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default 8000)")
        parser.add_argument("--no-demo", action="store_true", help="do not play the demo conversation")
        parser.add_argument(
            "--web-only", action="store_true", help="one web process of several on PostgreSQL: no demo, no migrations"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with the reason when the directory is held or the port is taken."""
        host, port = options["host"], options["port"]
        if options["web_only"]:
            if not settings.CONFIG.database_url:
                raise CommandError(f"--web-only needs SWITCHBOARD_DATABASE_URL. {ONE_PROCESS}")
            self._serve_web_only(host, port)
            return
        with ExitStack() as held:
            try:
                held.enter_context(datadir.hold(settings.DATA_DIR))
            except Unavailable as error:
                if not settings.CONFIG.database_url:
                    raise CommandError(f"{error.message}. {ONE_PROCESS}") from None
                self.stdout.write(f"{error.message}: this one is a plain web node.")
                self._serve_web_only(host, port)
                return
            try:
                self._serve(host, port, with_demo=not options["no_demo"])
            except Unavailable as error:
                raise CommandError(error.message) from None

    def _serve(self, host: str, port: int, *, with_demo: bool) -> None:
        tables.bring_up_to_date()
        self._collect_static(is_alone=True)
        from conversations import log
        from conversations.epoch import HighWater
        from dashboard.asgi import application

        log.discard_staged()
        if HighWater(settings.DATA_DIR).check():
            self.stderr.write("The record is older than what was served before: a new epoch begins.")
        application.url = _address(host, port)
        application.with_demo = with_demo
        self._greet(application.url)
        self._run(host, port)

    def _serve_web_only(self, host: str, port: int) -> None:
        """Serve beside others: tables are theirs to make, and so is everything that one process alone does."""
        self._collect_static(is_alone=False)
        from dashboard.asgi import application

        application.is_web_only = True
        application.engine.url = _address(host, port)
        self.stdout.write(f"Switchboard serves on {application.engine.url} (a web node)")
        self.stdout.flush()
        self._run(host, port)

    def _run(self, host: str, port: int) -> None:
        from dashboard.asgi import application, with_static

        with suppress(KeyboardInterrupt):  # uvicorn raises it again after an orderly end
            Server(config(with_static(application), host, port), application.drain).run()

    def _greet(self, url: str) -> None:
        from conversations.actions.people import first_owner

        self.stdout.write(f"Switchboard serves on {url}")
        if secret := first_owner():
            self.stdout.write(f"Sign in once with: {url}/sign-in/link/?t={secret}")
        self.stdout.flush()

    def _collect_static(self, *, is_alone: bool) -> None:
        """Collect static files when they changed since last time. Others may serve from there: then none is removed."""
        stamp = hashlib.sha256()
        for root in settings.STATICFILES_DIRS:
            for path in sorted(p for p in Path(root).rglob("*") if p.is_file()):
                stamp.update(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}\n".encode())
        mark = Path(settings.STATIC_ROOT).with_suffix(".stamp")
        with datadir.turn(settings.DATA_DIR, "static.lock"):
            if mark.exists() and mark.read_text() == stamp.hexdigest():
                return
            call_command("collectstatic", verbosity=0, interactive=False, clear=is_alone)
            mark.write_text(stamp.hexdigest())


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
