"""`export ID`: one conversation as lines of JSON, for another record or an auditor (§5), as a text or as a trace."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from conversations.conversation.conversation_files import FORMATS, FileFormat, pieces
from conversations.core import private_file, schema_state
from conversations.core.errors import SwitchboardError, reason_of
from conversations.import_export.progress import ProgressLine


class Command(BaseCommand):
    """Write a conversation to a file or to standard output."""

    help = "Export one conversation: as JSONL with hashes, which `import` reads, as a text or as a trace."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the conversation, and where to write."""
        parser.add_argument("conversation", metavar="ID")
        parser.add_argument("--format", choices=FORMATS, default="jsonl", help="what to write (default: jsonl)")
        parser.add_argument("--output", type=Path, metavar="FILE", help="file to write to (default: standard output)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Export; a file appears whole or not at all."""
        schema_state.ensure()
        progress = ProgressLine(self.stderr, "Exporting: {} of {} events")
        try:
            if options["output"] is None:
                _write(options["conversation"], options["format"], sys.stdout.buffer, progress)
            else:
                with private_file.written_whole(options["output"]) as file:
                    _write(options["conversation"], options["format"], file, progress)
        except (SwitchboardError, OSError) as error:
            raise CommandError(f"{options['conversation']} was not exported: {reason_of(error)}") from None
        finally:
            progress.end()


def _write(key: str, form: FileFormat, file: IO[bytes], progress: ProgressLine) -> None:
    for piece in pieces(key, form, progress=progress.tell):
        file.write(piece)
    file.flush()
