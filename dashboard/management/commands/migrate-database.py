"""`migrate-database TARGET`: move the record between SQLite and PostgreSQL, by a backup that is restored there."""

import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations.backup import make_backup
from conversations.core import data_dir, schema_state
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.evidence.checkpoints import Signer
from conversations.import_export.progress import ProgressLine
from conversations.models import Node
from dashboard import kept_files

RESTORE = "from dashboard.cli import main; main()"  # our own command line, which says in words what a database refuses
TARGET = "TARGET must be postgresql://… or a directory"
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)  # a scheme, which has two letters or more
SEEN_WITHIN = 15_000_000  # µs: a process whose heartbeat is newer still runs


class Command(BaseCommand):
    """Runs while nothing else does: what was written meanwhile would stay behind."""

    help = "Copy the record to another database: to PostgreSQL, or to SQLite in a directory. The old one stays."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to."""
        parser.add_argument("target", metavar="TARGET", help="postgresql://… of a new database, or an empty directory")

    def handle(self, *args: Any, target: str, **options: Any) -> None:
        """Back up, restore there, say what to set."""
        if not target.strip():
            raise CommandError(TARGET)
        if not _is_postgresql(target) and _ADDRESS.match(target):
            raise CommandError(f"{TARGET}; got {target.partition(':')[0]}:…")
        schema_state.ensure()
        signer = Signer(settings.CONFIG.signing_key_path, settings.CONFIG.record_name)
        progress = ProgressLine(self.stderr, "Copying: {} of {} events")
        try:
            with _alone(), tempfile.TemporaryDirectory(prefix=".move-", dir=settings.DATA_DIR) as folder:
                made = make_backup.make(Path(folder) / "record.backup", SYSTEM, signer, progress.tell, verb="move")
                progress.end()
                self._restore(made.path, target)
        except SwitchboardError as error:
            raise CommandError(f"Nothing was copied: {error.message}.") from None

    def _restore(self, file: Path, target: str) -> None:
        command = [sys.executable, "-c", RESTORE, "restore", str(file)]
        with _files_of_record(target):
            done = subprocess.run(command, env=_environment(target), capture_output=True, text=True, check=False)
            if done.returncode:
                raise CommandError(_reason(done.stderr) or done.stdout.strip())
        self.stdout.write(done.stdout.strip())
        if _is_postgresql(target) and not settings.CONFIG.secret_key:
            secret = settings.DATA_DIR / "secret"
            self.stdout.write(
                f"Set SWITCHBOARD_SECRET_KEY to the contents of {secret}, so that waiting runs can go on."
            )
        self.stdout.write(
            "Start the server with the new address. The old database was not changed; remove it yourself."
        )


def _reason(printed: str) -> str:
    """Return what a command ended with, without its log, whose lines are JSON."""
    lines = [line.removeprefix("CommandError: ") for line in printed.splitlines() if not line.startswith('{"at"')]
    return "\n".join(lines).strip()


def _environment(target: str) -> dict[str, str]:
    """Return the settings of the place that the record goes to, with the same secret key."""
    environment = {name: value for name, value in os.environ.items() if name != "SWITCHBOARD_DATABASE_URL"}
    environment |= {"DJANGO_SETTINGS_MODULE": "dashboard.settings", "SWITCHBOARD_SECRET_KEY": settings.SECRET_KEY}
    if _is_postgresql(target):
        return environment | {"SWITCHBOARD_DATABASE_URL": target, "SWITCHBOARD_DATA_DIR": str(settings.DATA_DIR)}
    return environment | {"SWITCHBOARD_DATA_DIR": str(Path(target).absolute())}


def _is_postgresql(target: str) -> bool:
    return target.startswith(("postgresql://", "postgres://"))


@contextmanager
def _files_of_record(target: str) -> Iterator[None]:
    """Have the files beside the database in the target, if that is a directory; remove them if nothing is restored."""
    copied: list[Path] = []
    if not _is_postgresql(target):
        try:
            copied = kept_files.copy(settings.DATA_DIR, Path(target).absolute(), secret=settings.SECRET_KEY)
        except OSError as error:
            raise CommandError(f"Nothing was copied: {error.filename or target}: {error.strerror}.") from None
    try:
        yield
    except BaseException:
        for path in copied:
            path.unlink(missing_ok=True)
        raise


@contextmanager
def _alone() -> Iterator[None]:
    """Hold the data directory. Raises Conflict while another process of the deployment runs, or a command writes."""
    with data_dir.hold(settings.DATA_DIR), data_dir.unused(settings.DATA_DIR):
        if connection.vendor != "sqlite":
            running = Node.objects.filter(seen_at__gt=database_now() - SEEN_WITHIN).values_list("name", flat=True)
            if names := ", ".join(running):
                raise Conflict(f"stop every process of this deployment first: {names}")
        yield
