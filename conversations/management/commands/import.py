"""`import FILE`: recorded conversations into the record, whole or not at all (issue 1)."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from conversations.errors import SwitchboardError
from conversations.recordings.formats import recordings
from conversations.recordings.importing import bring
from conversations.recordings.place import place
from conversations.recordings.progress import Progress
from conversations.recordings.source import Source
from conversations.recordings.trouble import Trouble


class Command(BaseCommand):
    """Read a file of any known format, hand it over, say what it became."""

    help = "Import recorded conversations: OpenAI chat messages, tau-bench, tau2-bench, Who&When, or our own export."
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file, how strict to be, and the names to use."""
        parser.add_argument("file", type=Path, help="the recording; gzip is fine, the format is told by content")
        parser.add_argument("--strict", action="store_true", help="refuse the whole file for one bad line")
        parser.add_argument(
            "--conversation", metavar="ID", default="", help="the first conversation's id, then ID-2, …"
        )
        parser.add_argument("--name", default="", help="import as import:NAME (default: the file's name)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; exit with the reason when refused, and then nothing of the file is there."""
        file: Path = options["file"]
        trouble = Trouble(self.stderr.write, is_strict=options["strict"])
        progress = Progress(self.stderr, "Importing: {} conversations, {} events")
        try:
            with place(options["name"] or Source(file).stem) as to:
                items = bring(
                    recordings(file, trouble), to.intake(), trouble, key=options["conversation"], progress=progress.tell
                )
        except (SwitchboardError, OSError) as error:
            raise CommandError(f"{file.name} was not imported: {error}") from None
        finally:
            progress.end()
        for item in items:
            self.stdout.write(
                f"{item.conversation_id}: {item.events:,} events, {item.messages:,} messages,"
                f" {item.tool_calls:,} tool calls, {item.errors:,} errors"
            )
        if trouble.count:
            self.stderr.write(f"{trouble.count:,} bad places were left out")
