"""`serve`: one process with everything in it, holding the data directory, or one web node of many (§3.8, 9). It is
stopped by `DrainingServer`."""

import asyncio
import hashlib
import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from conversations.core import crash_reports, data_dir, schema_state
from conversations.core.db_threads import with_connection
from conversations.core.errors import Unavailable
from dashboard import interface_font
from dashboard.command_errors import sentence
from dashboard.config import variables
from dashboard.config_values import unknown_variables
from dashboard.server import listen_addresses
from dashboard.server.draining_server import DrainingServer, config

ONE_PROCESS = "SQLite allows one process; use PostgreSQL to run several"


class Command(BaseCommand):
    """Prepare the data directory, print how to sign in, serve until told to stop."""

    help = "Start the server: dashboard, API and agents."
    requires_system_checks = ()  # they are run by the tests; a start is waited for

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take an address, a port, whether to show the demo, and whether to be a plain web node."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
        parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default 8000)")
        parser.add_argument("--no-demo", action="store_true", help="do not play the demo conversation")
        parser.add_argument(
            "--web-only", action="store_true", help="additional web node on PostgreSQL: no demo, no migrations"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve; exit with the reason when the directory is held or the port is taken."""
        if options["web_only"] and not settings.CONFIG.database_url:
            raise CommandError(f"--web-only requires SWITCHBOARD_DATABASE_URL. {ONE_PROCESS}")
        with crash_reports.recording(settings.DATA_DIR, "serve"):
            self._serve_here(**options)

    def _serve_here(self, *, host: str, port: int, web_only: bool, **options: Any) -> None:
        try:
            listen_addresses.ensure_free(host, port)
        except Unavailable as error:
            raise CommandError(error.message) from None
        if not listen_addresses.is_wildcard(host):
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)  # who names it here wants it served
        if web_only:
            self._serve_web_only(host, port)
            return
        with ExitStack() as held:
            try:
                held.enter_context(data_dir.hold(settings.DATA_DIR))
            except Unavailable as error:
                if not settings.CONFIG.database_url:
                    raise CommandError(f"{error.message}. {ONE_PROCESS}") from None
                self.stdout.write(f"{error.message}: starting as an additional web node.")
                self._serve_web_only(host, port)
                return
            try:
                self._serve(host, port, with_demo=not options["no_demo"])
            except Unavailable as error:
                raise CommandError(sentence(error) or error.message) from None

    def _serve(self, host: str, port: int, *, with_demo: bool) -> None:
        schema_state.bring_up_to_date(lambda: self._write_now("Setting up the database…"))
        self._collect_static(is_alone=True)
        from conversations.events import log
        from conversations.events.epoch import HighWater
        from dashboard.asgi import application

        log.discard_staged()
        if HighWater(settings.DATA_DIR).check():
            self.stderr.write(
                "The database is older than the one served before (restored from a backup?): starting a new epoch."
            )
        application.url = listen_addresses.local_url(host, port)
        application.with_demo = with_demo
        url = listen_addresses.public_url(host, port, settings.CONFIG.allowed_origins)
        self._run(host, port, partial(self._greet_with_agents, host, port, url))

    def _write_now(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _serve_web_only(self, host: str, port: int) -> None:
        """Serve beside others: tables are theirs to make, and so is everything that one process alone does."""
        self._collect_static(is_alone=False)
        from dashboard.asgi import application

        application.is_web_only = True
        application.runtime.url = listen_addresses.local_url(host, port)
        greet = partial(self._greet, host, port, application.runtime.url, is_alone=False)
        self._run(host, port, partial(asyncio.to_thread, greet))

    def _run(self, host: str, port: int, greet: Callable[[], Awaitable[None]]) -> None:
        from dashboard.asgi import application, with_static

        server = DrainingServer(config(with_static(application), host, port), application.drain, greet)
        application.end = server.end
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after an orderly end
            try:
                server.run()
            finally:  # uvicorn exits by itself, with a code of its own
                if failure := application.start_failure or server.failure:
                    raise failure

    async def _greet_with_agents(self, host: str, port: int, url: str) -> None:
        """Say where it runs once its agents are loaded: until then the start may fail."""
        from dashboard.asgi import application

        await application.agents_settled.wait()
        if application.runtime.is_ready and not application.start_failure:
            await asyncio.to_thread(with_connection, partial(self._greet, host, port, url, is_alone=True))

    def _greet(self, host: str, port: int, url: str, *, is_alone: bool) -> None:
        from conversations.access.accounts.people import first_owner
        from conversations.access.accounts.sign_in_links import PATH

        self.stdout.write(f"Switchboard is running at {url}{'' if is_alone else ' (web node)'}")
        self._warn(host, port)
        if is_alone and (secret := first_owner()):
            self.stdout.write(f"One-time sign-in link: {url}{PATH}?t={secret}")
        self.stdout.flush()

    def _warn(self, host: str, port: int) -> None:
        address = listen_addresses.warning(host, port, settings.CONFIG.allowed_origins)
        for warning in filter(None, [address, *unknown_variables(os.environ, variables())]):
            self.stderr.write(warning)

    def _collect_static(self, *, is_alone: bool) -> None:
        """Collect static files when they changed since last time. Others may serve from there: then none is removed."""
        interface_font.prepare()
        stamp = hashlib.sha256()
        for root in settings.STATICFILES_DIRS:
            folder = Path(str(root[1] if isinstance(root, tuple) else root))
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                stamp.update(f"{path} {path.stat().st_mtime_ns} {path.stat().st_size}\n".encode())
        mark = Path(settings.STATIC_ROOT).with_suffix(".stamp")
        with data_dir.file_lock(settings.DATA_DIR, "static.lock"):
            is_whole = (Path(settings.STATIC_ROOT) / "staticfiles.json").exists()
            if is_whole and mark.exists() and mark.read_text() == stamp.hexdigest():
                return
            mark.unlink(missing_ok=True)  # this may fail halfway
            call_command("collectstatic", verbosity=0, interactive=False, clear=is_alone)
            mark.write_text(stamp.hexdigest())


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= listen_addresses.MAX_PORT):
        raise ArgumentTypeError(f"must be a number from 1 to {listen_addresses.MAX_PORT}")
    return int(text)
