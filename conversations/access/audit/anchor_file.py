"""The audit chain's anchor: a file in the data directory with the newest entry (law E).

The chain reveals a changed entry, its head row a missing one. Someone who deletes the last entries and resets the head
leaves a shorter but intact chain; this file still has the missing entry. The server writes it every second, `verify`
reads it. A restored backup is reported the same way; if it was intended, delete the file.
"""

import logging
import time
from pathlib import Path

from django.db import connection

from conversations.core import private_file
from conversations.events.verify_chains import ChainReport
from conversations.models import AuditEntry

logger = logging.getLogger(__name__)

NAME = "audit-head"
VERIFY_EVERY = 10.0  # seconds


class AuditAnchorFile:
    """The file `audit-head`: the newest entry's number and hash."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / NAME
        self._is_told = False
        self._written, self._verified_at = "", float("-inf")

    def write(self) -> None:
        """Store the newest entry, unless the stored one is missing: then it stays, and that is logged once.

        While there are no new entries, the stored one is looked up every `VERIFY_EVERY` seconds.
        """
        head = _newest_entry()
        text = f"{head[0]} {head[1]}" if head else ""
        now = time.monotonic()
        if text == self._written and self.path.exists() and now - self._verified_at < VERIFY_EVERY:
            return
        self._verified_at = now
        if not (verdict := self.verify()).ok:
            if not self._is_told:
                logger.error("%s: %s", verdict.first_bad, verdict.why)
            self._is_told = True
            return
        if head is None or not head[0]:
            return
        private_file.replace(self.path, text.encode())
        self._written = text

    def verify(self) -> ChainReport:
        """Look up the entry that the file names; without a file there is nothing to compare."""
        try:
            seq, _, remembered = self.path.read_text().strip().partition(" ")
            number = int(seq)
        except FileNotFoundError:
            return ChainReport(0, ok=True)
        except ValueError:
            return ChainReport(0, ok=False, first_bad=str(self.path), why="must hold a number and a hash")
        if AuditEntry.objects.filter(seq=number, hash=remembered).exists():
            return ChainReport(1, ok=True)
        why = f"missing, although {self.path} lists it: the end was cut off, or an older backup was restored"
        return ChainReport(0, ok=False, first_bad=f"audit entry {number}", why=why)


def _newest_entry() -> tuple[int, str] | None:
    """Return the head of the audit log; None if it is empty. Plain SQL, since it is read every second."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq,hash FROM conversations_audithead WHERE id=1")
        row = cursor.fetchone()
    return (row[0], row[1]) if row else None
