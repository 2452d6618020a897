"""`backup FILE`: the whole record in one file, beside a running server."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.backup import make_backup
from conversations.core import schema_state
from conversations.core.errors import SwitchboardError
from conversations.core.plain_text import counted
from conversations.core.principals import SYSTEM
from conversations.evidence.checkpoints import Signer
from conversations.import_export.progress import ProgressLine


class Command(BaseCommand):
    """Works beside a running server, on either database."""

    help = "Back up the whole record to one file, which `restore` reads on SQLite and on PostgreSQL."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to write."""
        parser.add_argument("file", type=Path, metavar="FILE", help="file to write; an older backup there is replaced")

    def handle(self, *args: Any, file: Path, **options: Any) -> None:
        """Back up; the file appears whole or not at all."""
        schema_state.ensure()
        signer = Signer(settings.CONFIG.signing_key_path, settings.CONFIG.record_name)
        progress = ProgressLine(self.stderr, "Backing up: {} of {} events")
        try:
            made = make_backup.make(file, SYSTEM, signer, progress.tell)
        except SwitchboardError as error:
            raise CommandError(f"No backup was made: {error.message}.") from None
        except OSError as error:
            raise CommandError(f"No backup was made: {error.filename or file}: {error.strerror}.") from None
        finally:
            progress.end()
        facts = made.manifest
        self.stdout.write(
            f"Backed up {counted(facts['conversations'], 'conversation')} with {counted(facts['events'], 'event')} to"
            f" {made.path} ({made.size:,} bytes)."
        )
        self.stdout.write(f"SHA-256 of all but its last 64 bytes: {made.digest}")
        self.stdout.write("It contains all recorded text and password and token digests, but not the secret key.")
