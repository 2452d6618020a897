"""`manage.py verify`: check the file, the signed tree, both kinds of chains and the rows made of them; exit 1 at the
first bad thing."""

import sys
import time
from argparse import ArgumentParser
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from conversations.core import schema_state, sqlite_integrity
from conversations.core.errors import Invalid, reason_of
from conversations.core.plain_text import counted
from conversations.events import verify_chains
from conversations.evidence import verify_record, witnesses
from conversations.evidence.notes import SignedNote
from conversations.evidence.verdicts import verdicts
from conversations.evidence.verify_record import RecordCheck
from conversations.management.recorded_text import RecordedTextCommand

STAGED = (
    "Unfinished imports or removals have staged {} with {}. That is not part of the record and was not checked. What"
    " was abandoned is removed by `switchboard serve`: with SQLite when it starts, with PostgreSQL within two hours."
)
TELL_EVERY = 2.0  # seconds


class Command(RecordedTextCommand):
    """Reads by pages, beside a running server if there is one."""

    help = "Check against the signatures that no audit entry, event or right was changed, removed or inserted."
    _told_at = 0.0

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a checkpoint that was kept elsewhere, and how much to check."""
        words = "checkpoint stored elsewhere, or a witness's file, that the record must extend"
        parser.add_argument("--since", metavar="CHECKPOINT", type=Path, help=words)
        parser.add_argument("--new", action="store_true", help="skip what --since already covers")
        parser.add_argument(
            "--chains", action="store_true", help="check only the hash chains, not computed state: three times faster"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Check all, say the counts, exit 1 when anything is wrong."""
        if options["new"] and not options["since"]:
            raise CommandError("--new needs --since CHECKPOINT")
        schema_state.ensure()
        self._check_file()
        self._told_at = time.monotonic()
        since = _read(options["since"]) if options["since"] else None
        known = verify_record.settings_of_server()
        check = RecordCheck(known, since=since, is_short=options["new"], progress=self._show_progress)
        try:
            is_ok = True
            for verdict in verdicts(check, only_chains=options["chains"]):
                self.stdout.write(verdict.words)
                is_ok &= verdict.is_ok
        except DatabaseError as error:
            raise CommandError(f"the database cannot be read completely: {error}") from None
        conversations, events = verify_chains.staged()
        if conversations:
            self.stdout.write(STAGED.format(counted(conversations, "conversation"), counted(events, "event")))
        if not is_ok:
            sys.exit(1)

    def _show_progress(self, noun: str, count: int) -> None:
        """Say how far it came, on a terminal."""
        if sys.stderr.isatty() and time.monotonic() - self._told_at > TELL_EVERY:
            self._told_at = time.monotonic()
            self.stderr.write(f"{count:,} {noun} checked …")

    def _check_file(self) -> None:
        """Name what is damaged. Raises CommandError: of a damaged file, chains tell nothing that can be relied on."""
        if problems := list(islice(sqlite_integrity.problems(), sqlite_integrity.MAX_PROBLEMS)):
            raise CommandError(sqlite_integrity.damaged("; ".join(problems)))


def _read(path: Path) -> SignedNote:
    try:
        return witnesses.newest_of_file(path.read_text())
    except (OSError, UnicodeError) as error:
        raise CommandError(f"{path} cannot be read: {reason_of(error, path)}") from None
    except Invalid as error:
        raise CommandError(f"{path} {error.message}") from None
