"""`rebuild`: fold the projections again from the events, and correct what differs (law I)."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from conversations.core import data_dir, schema_state
from conversations.core.db_threads import unavailable
from conversations.core.plain_text import counted
from conversations.events.log import rebuild
from conversations.import_export.progress import ProgressLine


class Command(BaseCommand):
    """Works beside a running server; a second one of this data directory waits for the first."""

    requires_system_checks = ()  # they are run by the tests; they import every page
    help = "Recompute every conversation's counters, participants, runs and tool calls from its events."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take where to begin."""
        parser.add_argument(
            "--from-start", action="store_true", help="start over instead of resuming an interrupted rebuild"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Rebuild and say how much."""
        schema_state.ensure()
        try:
            with data_dir.file_lock(settings.DATA_DIR, "rebuild.lock"):
                self._rebuild(from_start=options["from_start"])
        except OperationalError as error:
            raise CommandError(f"{unavailable(error)}. Run it again to resume where it stopped.") from None

    def _rebuild(self, *, from_start: bool) -> None:
        if from_start:
            rebuild.forget()
        if rebuild.position():
            self.stdout.write("Resuming an interrupted rebuild (--from-start starts over).")
        conversations = events = 0
        progress = ProgressLine(self.stderr, "Rebuilt: {} conversations from {} events")
        try:
            for _, count in rebuild.rebuild():
                conversations, events = conversations + 1, events + count
                progress.tell(conversations, events)
        finally:
            progress.end()
        self.stdout.write(f"Rebuilt {counted(conversations, 'conversation')} from {counted(events, 'event')}.")
