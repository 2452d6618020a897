"""`import FILE…`: recorded conversations into the record, each file whole or not at all (issue 1)."""

import os
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from conversations.core.errors import SwitchboardError, reason_of
from conversations.core.plain_text import counted
from conversations.events.log.import_staging import EXISTS
from conversations.import_export.destination import open_destination
from conversations.import_export.detect_format import NAMES, recordings
from conversations.import_export.dry_run import DryRun
from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_lines import ImportedConversation
from conversations.import_export.import_report import ImportReport
from conversations.import_export.progress import ProgressLine
from conversations.management.recorded_text import RecordedTextCommand

# Of what a folder is looked through for, packed ones too.
ENDINGS = (".json", ".jsonl", ".ndjson", ".traj", ".eval", ".ipynb", ".db", ".sqlite", ".sqlite3")


class Command(RecordedTextCommand):
    """Read files of any known format, hand them over, say what each became."""

    help = f"Import recorded conversations. The format is detected from the content: {', '.join(NAMES)}."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the files, how strict to be, and the names to use."""
        parser.add_argument(
            "files", nargs="+", type=Path, metavar="FILE",
            help="recording or folder of recordings, optionally gzipped; the format is detected",
        )  # fmt: skip
        parser.add_argument("--strict", action="store_true", help="reject a file if any line is invalid")
        parser.add_argument(
            "--conversation",
            metavar="ID",
            default="",
            help="id of the first conversation, then ID-2, …; single file only",
        )
        parser.add_argument(
            "--update", action="store_true", help="add new events to conversations that were imported before"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="count everything and store nothing; needs no server"
        )
        parser.add_argument("--name", default="", help="import as import:NAME (default: the file name)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import; exit with the reason when a file was refused, and then nothing of that file is there."""
        files = list(_files(options["files"]))
        if not files:
            raise CommandError(f"No recordings ({', '.join(ENDINGS)}) found.")
        if len(files) > 1 and options["conversation"]:
            raise CommandError(f"--conversation works with a single file; got {len(files):,}.")
        refused = [reason for file in files if (reason := self._import(file, options))]
        if len(files) == 1 and refused:
            raise CommandError(refused[0])
        if len(files) > 1:
            done = "can be imported" if options["dry_run"] else "imported"
            self.stdout.write(f"{len(files) - len(refused):,} of {len(files):,} files {done}")
        if refused:
            raise CommandError(f"{counted(len(refused), 'file')} not imported")

    def _import(self, file: Path, options: dict[str, Any]) -> str:
        """Import one file; return why it was refused, or nothing. Of several files that is reported at once."""
        is_alone = len(options["files"]) == 1 and file == options["files"][0]
        report = ImportReport(lambda text: self.stderr.write(f"{file.name}, {text}"), is_strict=options["strict"])
        progress = ProgressLine(self.stderr, "Importing: {} conversations, {} events")
        try:
            with ExitStack() as stack:
                name = options["name"] or RecordingFile(file).stem
                to = None if options["dry_run"] else stack.enter_context(open_destination(name))
                receiver = to.intake() if to else DryRun()
                items = import_recordings(
                    recordings(file, report), receiver, report,
                    key=options["conversation"], is_update=options["update"], progress=progress.tell,
                )  # fmt: skip
        except (SwitchboardError, OSError) as error:
            reason = f"{file.name} was not imported: {reason_of(error, file)}{_what_helps(error)}"
            if not is_alone:
                self.stderr.write(reason)
            return reason
        finally:
            progress.end()
        if not is_alone:
            self.stdout.write(f"{file}: {counted(len(items), 'conversation')}")
        for item in items:
            page = to.page_of(item.conversation_id) if to else ""
            address = f", {page}" if page else ""
            self.stdout.write(f"{'' if is_alone else '  '}{item.conversation_id}: {_summary(item)}{address}")
        if report.count:
            were = "was" if report.count == 1 else "were"
            self.stderr.write(f"{counted(report.count, 'problem')} {were} skipped")
        if options["dry_run"] and is_alone:
            self.stdout.write("Nothing was stored (--dry-run).")
        return ""


def _what_helps(error: Exception) -> str:
    if isinstance(error, SwitchboardError) and error.code == EXISTS:
        return ": import it under another id (--conversation), or add new events to an earlier import (--update)"
    return ""


def _files(named: Iterable[Path]) -> Iterator[Path]:
    """Yield each file once; of a folder those with the endings of recordings, at any depth, by name."""
    seen: set[Path] = set()
    for path in named:
        files = (
            sorted(candidate for candidate in path.rglob("*") if _is_recording(candidate, path))
            if os.path.isdir(path)  # false for a name that no file can have, which is refused by its own words
            else [path]
        )
        for file in files:
            if (whole := file.absolute()) not in seen:
                seen.add(whole)
                yield file


def _is_recording(file: Path, folder: Path) -> bool:
    is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return not is_hidden and file.name.removesuffix(".gz").endswith(ENDINGS) and file.is_file()


def _summary(item: ImportedConversation) -> str:
    counts = (item.events, "event"), (item.messages, "message"), (item.tool_calls, "tool call"), (item.errors, "error")
    return ", ".join(counted(count, name) for count, name in counts)
