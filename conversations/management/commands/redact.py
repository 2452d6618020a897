"""`redact CONVERSATION EVENT…`: take the words of events out of the record, for good."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection

from conversations.core import data_dir, schema_state
from conversations.core.errors import SwitchboardError, Unavailable
from conversations.core.plain_text import counted
from conversations.core.principals import SYSTEM
from conversations.management import option_rules
from conversations.management.recorded_text import RecordedTextCommand
from conversations.realtime import redaction_watch
from conversations.redaction import journal, requests, scope
from conversations.redaction.audit_entries import MAX_ENTRIES
from conversations.redaction.scope import RedactionOutcome, RedactionScope
from conversations.redaction.selection import MAX_EVENTS, range_of

NOT_WITH_JOURNAL = ("CONVERSATION", "id", "call", "field", "person", "word", "audit", "reason")


class Command(RecordedTextCommand):
    """Works beside a running server, which takes them off open pages and out of SQLite's log within a second."""

    help = "Remove the words of events from the record, forks, search and agents' memory. This cannot be undone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take which events, and why."""
        parser.add_argument("conversation", nargs="?", metavar="CONVERSATION")
        parser.add_argument("events", nargs="*", metavar="EVENT", help="event numbers: 3, or 3-7")
        parser.add_argument("--id", action="store_true", help="the conversation's id, wherever the record has it")
        parser.add_argument("--call", default="", metavar="ID", help="a tool call, instead of a conversation")
        parser.add_argument("--field", default="", help="one field of that call: args.phone, output")
        parser.add_argument(
            "--person", default="", metavar="NAME", help="everything this person said, received or is named in"
        )
        parser.add_argument("--word", action="append", default=[], help="all events that contain it; repeatable")
        parser.add_argument(
            "--audit",
            nargs="+",
            default=[],
            metavar="ENTRY",
            help="audit entries: their reasons, addresses and other texts",
        )
        parser.add_argument("--reason", default="", help="reason, stored in the record and in the audit log")
        parser.add_argument(
            "--dry-run", action="store_true", help="show what would be removed, and where; change nothing"
        )
        parser.add_argument("--journal", type=Path, metavar="FILE", help="repeat the redactions in this journal")

    def handle(self, *args: Any, conversation: str | None, events: list[str], **options: Any) -> None:
        """Redact, or say what would be."""
        schema_state.ensure()
        if options["journal"]:
            self._again(options["journal"], options | {"conversation": conversation})
            return
        if not any((conversation, options["audit"], *(options[name] for name in ("call", "person", "word")))):
            raise CommandError(
                "name a conversation and its events, a --call, a --person, a --word, --audit entries or a --journal"
            )
        seqs = [seq for text in events for seq in _numbers(text, MAX_EVENTS)]
        try:
            what = RedactionScope(
                conversation or "",
                seqs,
                call=options["call"],
                field=options["field"],
                person=options["person"].removeprefix("user:"),
                words=options["word"],
                entries=[seq for text in options["audit"] for seq in _numbers(text, MAX_ENTRIES)],
                is_id=options["id"],
            )
            if options["dry_run"]:
                self._preview(what)
                return
            outcome, pending_request = requests.submit(SYSTEM, what, options["reason"])
        except SwitchboardError as error:
            raise CommandError(error.full_message) from None
        if outcome is None:
            number = pending_request.pk if pending_request else 0
            self.stdout.write(f"Request {number} waits for an admin to confirm it on the Redaction page.")
            return
        journal.update(settings.DATA_DIR)
        self._tell(what, outcome)
        purge(self.stdout)

    def _tell(self, what: RedactionScope, outcome: RedactionOutcome) -> None:
        for done in outcome.redacted:
            self.stdout.write(f"Redacted {counted(len(done.seqs), 'event')} of {done.conversation}.")
        if outcome.entries:
            self.stdout.write(f"Erased the personal text of {outcome.entries:,} audit entries.")
        for key, why in outcome.refused:
            self.stderr.write(f"Nothing was redacted in {key}: {why}")
        self._list_ids(what)
        if what.is_about_person and not any(outcome):
            raise CommandError(f"nothing was redacted: {_none_about(what)}")

    def _again(self, path: Path, options: dict[str, Any]) -> None:
        option_rules.refuse_beside("--journal", options, NOT_WITH_JOURNAL)
        if not path.is_file():
            raise CommandError(f"there is no file {path}")
        try:
            if options["dry_run"]:
                count = sum(1 for _ in journal.pending(path))
                were = "redaction of this journal" if count == 1 else "redactions of this journal"
                self.stdout.write(f"{count:,} {were} would be repeated. Nothing was changed.")
                return
            count = journal.apply(path)
        except Unavailable as error:
            raise CommandError(error.full_message) from None
        self.stdout.write(f"Redacted {counted(count, 'event')} again.")
        journal.update(settings.DATA_DIR)
        purge(self.stdout)

    def _preview(self, what: RedactionScope) -> None:
        places = scope.preview(what)
        for place in places:
            listed = ", ".join(f"{count:,} {kind}" for kind, count in place.kinds.items())
            self.stdout.write(f"{place.conversation}: {listed} (events {', '.join(map(str, place.seqs))})")
            for name, count in place.elsewhere.items():
                self.stdout.write(f"{place.conversation}: {name}: {count:,}")
            if place.blocked:
                self.stdout.write(f"{place.conversation}: {place.blocked}")
        if entries := scope.preview_entries(what):
            self.stdout.write(f"audit log: {len(entries):,} entries ({', '.join(map(str, entries))})")
        self._list_ids(what)
        if what.is_about_person and not places and not entries:
            text = _none_about(what)
            self.stdout.write(f"{text[:1].upper()}{text[1:]}.")
        self.stdout.write("Nothing was changed. Earlier backups and exports still contain the text.")

    def _list_ids(self, what: RedactionScope) -> None:
        for key in scope.preview_ids(what):
            self.stdout.write(f"{key}: the id of this conversation has it, too: redact it with --id")


def purge(out: OutputWrapper) -> None:
    """Take deleted words out of SQLite's log, too: the server that runs does it, else this process."""
    if connection.vendor != "sqlite":
        out.write("Run VACUUM to remove the old rows from PostgreSQL. You must clear its log and its backups yourself.")
        return
    try:
        with data_dir.hold(settings.DATA_DIR):
            if not redaction_watch.purge():
                raise CommandError(
                    "another process is reading the database: its log keeps the text until that process ends"
                )
    except Unavailable:
        out.write("The running server removes them from open pages and from its log within seconds.")


def _none_about(what: RedactionScope) -> str:
    names = ", ".join(filter(None, (what.person, *what.words)))
    return f"no event or audit entry names {names}, or all that do are redacted already"


def _numbers(text: str, most: int) -> range:
    numbers = range_of(text, most)
    if numbers is None:
        raise CommandError(f"{text} must be an event number, or a range of at most {most:,} such as 5-7")
    return numbers
