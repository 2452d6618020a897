"""`manage.py verify`: check the file, walk the audit chain and every conversation's; exit 1 at the first bad row."""

import sys
from dataclasses import replace
from itertools import islice
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from conversations.access.audit import chain as audit
from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.core import schema_state, sqlite_integrity
from conversations.events import verify_chains
from conversations.events.verify_chains import ChainReport

STAGED = (
    "{:,} conversations with {:,} events are staged by unfinished imports or removals. They are not part of the"
    " record and were not checked. Abandoned ones are removed when `switchboard serve` starts."
)


class Command(BaseCommand):
    """Reads by pages, beside a running server if there is one."""

    help = "Check that no audit entry or event was changed, removed or inserted."
    requires_system_checks = ()  # they are run by the tests; they import every page

    def handle(self, *args: Any, **options: Any) -> None:
        """Check all, say the counts, exit 1 when anything is wrong."""
        schema_state.ensure()
        self._check_file()
        verdicts = {"audit entries": self._audit(), "events": verify_chains.verify_events()}
        for noun, verdict in verdicts.items():
            if verdict.ok:
                self.stdout.write(f"{verdict.count:,} {noun} are intact")
            else:
                self.stdout.write(
                    f"{noun}: {verdict.first_bad}: {verdict.why} ({verdict.count:,} before it are intact)"
                )
        conversations, events = verify_chains.staged()
        if conversations:
            self.stdout.write(STAGED.format(conversations, events))
        if not all(verdict.ok for verdict in verdicts.values()):
            sys.exit(1)

    def _check_file(self) -> None:
        """Name what is damaged. Raises CommandError: of a damaged file, chains tell nothing that can be relied on."""
        if problems := list(islice(sqlite_integrity.problems(), sqlite_integrity.MAX_ITEMS)):
            raise CommandError(sqlite_integrity.damaged("; ".join(problems)))

    def _audit(self) -> ChainReport:
        """Check the chain, and that it did not go back behind what the data directory remembers of it."""
        chain, end = audit.verify(), AuditAnchorFile(settings.DATA_DIR).verify()
        return chain if end.ok or not chain.ok else replace(end, count=chain.count)
