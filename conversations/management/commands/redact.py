"""`redact CONVERSATION EVENT…`: take the words of events out of the record, for good."""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.db import connection

from conversations.core import data_dir, schema_state
from conversations.core.errors import SwitchboardError, Unavailable
from conversations.core.principals import SYSTEM
from conversations.realtime import redaction_watch
from conversations.redaction import journal, selection
from conversations.redaction.redact import redact


class Command(BaseCommand):
    """Works beside a running server, which takes them off open pages and out of SQLite's log within a second."""

    help = "Take the words of events out of the record, its forks, search and agents' memory. It cannot be undone."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which events, and why."""
        parser.add_argument("conversation", nargs="?", metavar="CONVERSATION")
        parser.add_argument("events", nargs="*", metavar="EVENT", help="event numbers: 3, or 3-7")
        parser.add_argument("--reason", default="", help="why; it stays in the record and in the audit log")
        parser.add_argument("--dry-run", action="store_true", help="say what would go, and where, and change nothing")
        parser.add_argument("--journal", type=Path, metavar="FILE", help="redact again what this journal lists")

    def handle(self, *args: Any, conversation: str | None, events: list[str], **options: Any) -> None:
        """Redact, or say what would be."""
        schema_state.ensure()
        if options["journal"]:
            self._again(options["journal"])
            return
        if not conversation:
            raise CommandError("name a conversation and its events, or a --journal")
        seqs = [seq for text in events for seq in _numbers(text)]
        try:
            if options["dry_run"]:
                self._preview(conversation, seqs)
                return
            for done in redact(SYSTEM, conversation, seqs, options["reason"]):
                self.stdout.write(f"Redacted {len(done.seqs):,} events of {done.conversation}.")
        except SwitchboardError as error:
            raise CommandError(error.full_message) from None
        journal.update(settings.DATA_DIR)
        purge(self.stdout)

    def _again(self, path: Path) -> None:
        try:
            count = journal.apply(path)
        except (OSError, ValueError, TypeError) as error:
            raise CommandError(f"{path} is not a journal of redactions: {error}") from None
        self.stdout.write(f"Redacted {count:,} events again.")
        journal.update(settings.DATA_DIR)
        purge(self.stdout)

    def _preview(self, conversation: str, seqs: list[int]) -> None:
        for part in selection.parts_of(conversation, seqs):
            kinds = Counter(kind for _, kind in part.events)
            listed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
            self.stdout.write(f"{part.conversation.key}: {listed} (events {', '.join(map(str, part.seqs))})")
            if part.memory:
                self.stdout.write(f"{part.conversation.key}: {part.memory:,} items that agents remember")
        self.stdout.write("Nothing was changed. Backups and exports made before keep the words.")


def purge(out: OutputWrapper) -> None:
    """Take deleted words out of SQLite's log, too: the server that runs does it, else this process."""
    if connection.vendor != "sqlite":
        out.write("VACUUM removes the old rows from PostgreSQL; its log and its backups are yours to clear.")
        return
    try:
        with data_dir.hold(settings.DATA_DIR):
            if not redaction_watch.purge():
                raise CommandError("another process reads the database: the words leave its log when it has ended")
    except Unavailable:
        out.write("The running server takes them off open pages and out of its log within seconds.")


def _numbers(text: str) -> range:
    first, _, last = text.partition("-")
    try:
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise CommandError(f"{text} is not an event number, nor two with a dash between them") from None
