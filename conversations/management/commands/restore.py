"""`restore FILE`: the record of a backup, in a place that has none."""

from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from conversations.backup import archive
from conversations.backup.restore import restore
from conversations.core import data_dir
from conversations.core.errors import SwitchboardError, Unavailable
from conversations.core.plain_text import counted
from conversations.evidence.checkpoints import Signer
from conversations.import_export.progress import ProgressLine


class Command(BaseCommand):
    """On SQLite it needs the data directory for itself; on PostgreSQL a database without a record."""

    help = "Check a backup and restore it into an empty place."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file."""
        parser.add_argument("file", type=Path, metavar="FILE", help="a file that `backup` wrote")
        parser.add_argument("--check", action="store_true", help="check the file's bytes and restore nothing")

    def handle(self, *args: Any, file: Path, check: bool, **options: Any) -> None:
        """Restore all of it or nothing."""
        try:
            self._check(file) if check else self._restore(file)
        except SwitchboardError as error:
            raise CommandError(error.message) from None

    def _check(self, file: Path) -> None:
        with archive.opened(file) as backup:
            facts = backup.manifest
            for part in facts["parts"]:
                with backup.lines(part) as lines:
                    for _ in lines:
                        pass
        self.stdout.write(
            f"{file} is complete: {counted(facts['conversations'], 'conversation')} with"
            f" {counted(facts['events'], 'event')}."
        )
        if facts.get("checkpoint"):
            self.stdout.write(f"Its checkpoint:\n\n{facts['checkpoint']}")

    def _restore(self, file: Path) -> None:
        progress = ProgressLine(self.stderr, "Restoring: {} of {} events")
        try:
            with data_dir.hold(settings.DATA_DIR) if connection.vendor == "sqlite" else nullcontext():
                config = settings.CONFIG
                signer = Signer(config.signing_key_path, config.record_name)
                done = restore(file, settings.DATA_DIR, signer, progress.tell)
        except Unavailable as error:
            advice = ": stop it first, and restore into an empty place" * (error.code == data_dir.HELD)
            raise CommandError(error.message + advice) from None
        finally:
            progress.end()
        facts = done.manifest
        self.stdout.write(
            f"Restored {counted(facts['conversations'], 'conversation')} with {counted(facts['events'], 'event')} and"
            f" checked them. A new epoch has begun: {done.epoch}."
        )
        for note in done.notes:
            self.stdout.write(note)
