"""Watch for redactions, of this process and of others: rendered rows are discarded, and SQLite's log and index are
purged of the text. Each redaction is written to the journal of this data directory."""

import json
import logging
from pathlib import Path

from django.db import DatabaseError, connection

from conversations.core.write_transaction import write_lock
from conversations.models import Redaction
from conversations.redaction import journal, redact
from conversations.search import index_writer

logger = logging.getLogger(__name__)

LOCK_WITHIN = 1.0  # seconds
READERS_WITHIN_MS = 50  # how long whoever writes waits for those who read


class RedactionWatch:
    """The state of one process's work on redactions. Sync; called in a thread."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._journal = journal.JournalWriter(data_dir)
        self._newest_seen = -1
        self.is_done = True

    def look(self) -> None:
        """Handle new redactions, and repeat those that an older copy in the database's place does not have; what SQLite
        cannot do now because of readers is done at the next check."""
        newest, before = redact.newest(), self._newest_seen
        if newest < before:
            before = -1
        if before < 0:
            if count := journal.apply(self._data_dir / journal.NAME):
                logger.warning("the database is older than redactions.jsonl: %s events were redacted again", count)
            redact.fold_rest()
            newest = redact.newest()
            self._journal = journal.JournalWriter(self._data_dir)
        if newest > before:
            _forget_drawn(before)
            self._journal.update()
            self._newest_seen, self.is_done = newest, newest == 0
        if not self.is_done:
            self.is_done = purge()


def _forget_drawn(after: int) -> None:
    """Drop what this process has drawn of the events of redactions after this one."""
    rows = Redaction.objects.filter(pk__gt=after, conversation__isnull=False)
    for key, seqs in rows.values_list("conversation__key", "seqs").iterator():
        redact.forget_drawn(key, json.loads(seqs))


def purge() -> bool:
    """Purge deleted text from SQLite's index segments and log. Return whether nothing is left."""
    if connection.vendor != "sqlite":
        return True
    try:
        index_writer.purge()
        with write_lock(LOCK_WITHIN), connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout={READERS_WITHIN_MS}")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            is_busy, _, _ = cursor.fetchone()
    except DatabaseError as error:
        logger.warning("redacted text is still in the write-ahead log: %s", error)
        return False
    return not is_busy
