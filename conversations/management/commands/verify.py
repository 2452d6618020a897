"""`manage.py verify`: walk the audit chain and every conversation's chain; exit 1 at the first bad row."""

import sys
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from conversations import audit, chains
from conversations.anchor import Anchor
from conversations.chains import Verdict
from conversations.management import tables


class Command(BaseCommand):
    """Reads by pages, beside a running server if there is one."""

    help = "Check that nothing in the audit log and in any history was changed, removed or added by hand."

    def handle(self, *args: Any, **options: Any) -> None:
        """Check both, say the counts, exit 1 when anything is wrong."""
        tables.ensure()
        verdicts = {"audit entries": self._audit(), "events": chains.verify_events()}
        for noun, verdict in verdicts.items():
            if verdict.ok:
                self.stdout.write(f"{verdict.count:,} {noun} are whole")
            else:
                self.stdout.write(f"{noun}: {verdict.first_bad}: {verdict.why} ({verdict.count:,} before it are whole)")
        if not all(verdict.ok for verdict in verdicts.values()):
            sys.exit(1)

    def _audit(self) -> Verdict:
        """Check the chain, and that it did not go back behind what the data directory remembers of it."""
        chain, end = audit.verify(), Anchor(settings.DATA_DIR).verify()
        return chain if end.ok or not chain.ok else replace(end, count=chain.count)
