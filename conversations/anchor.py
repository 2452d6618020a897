"""The audit chain's anchor: a file in the data directory that remembers the newest entry (law E).

The chain shows a changed entry, its head row a missing one. Who cuts entries off the end and sets the head back leaves
a whole, shorter chain: this file has the entry that is gone. The server writes it each second, `verify` reads it. A
restored backup is told the same way; who means it removes the file.
"""

import logging
from pathlib import Path

from conversations.chains import Verdict
from conversations.models import AuditEntry, AuditHead

logger = logging.getLogger(__name__)

NAME = "audit-head"


class Anchor:
    """The file `audit-head`: the newest entry's number and hash."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / NAME
        self._is_told = False

    def write(self) -> None:
        """Remember the newest entry, unless the one remembered is gone: that stays, and is logged once."""
        if not (verdict := self.verify()).ok:
            if not self._is_told:
                logger.error("%s: %s", verdict.first_bad, verdict.why)
            self._is_told = True
            return
        head = AuditHead.objects.filter(id=1).first()
        if head is not None and head.seq:
            draft = self._path.with_suffix(".new")
            draft.write_text(f"{head.seq} {head.hash}")
            draft.replace(self._path)

    def verify(self) -> Verdict:
        """Look for the entry that the file remembers; without a file there is nothing to compare."""
        try:
            seq, _, remembered = self._path.read_text().strip().partition(" ")
            number = int(seq)
        except FileNotFoundError:
            return Verdict(0, ok=True)
        except ValueError:
            return Verdict(0, ok=False, first_bad=str(self._path), why="expected a number and a hash")
        if AuditEntry.objects.filter(seq=number, hash=remembered).exists():
            return Verdict(1, ok=True)
        why = f"gone, though {self._path} remembers it: the end was cut off, or an older copy was put in place"
        return Verdict(0, ok=False, first_bad=f"audit entry {number}", why=why)
