"""The database's epoch: it changes when history may have gone back, and then clients start afresh (law D).

Two things show it: a client that has seen more than there is, and the high-water file in the data directory, which
remembers the newest row ever committed. A copy put in the database's place has less. With PostgreSQL each process that
serves has such a file of its own: whichever finds out first changes the epoch, for all.
"""

import secrets
from pathlib import Path

from django.db import connection
from django.db.models import Max

from conversations.log.writing import writing
from conversations.models import Event, Meta


def current() -> str:
    """Answer the epoch; the first one is made here."""
    meta, _ = Meta.objects.get_or_create(name="epoch", defaults={"value": secrets.token_hex(8)})
    return meta.value


def change(old: str) -> str:
    """Change the epoch, unless somebody did already; answer what it is now."""
    with writing():
        Meta.objects.filter(name="epoch", value=old).update(value=secrets.token_hex(8))
    return current()


class HighWater:
    """The file that remembers how far the record ever was: `epoch newest-row-id`."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / "high-water"

    def check(self) -> bool:
        """Change the epoch when the record is behind the file, and remember how far it is. Answer whether it was.

        At start and every second: PostgreSQL may be restored under a running server.
        """
        epoch = current()
        is_behind = self._remembered(epoch) > _newest()
        if is_behind:
            change(epoch)
        self.write()
        return is_behind

    def write(self) -> None:
        """Remember how far it is now; whole or not at all, and in one epoch never less than before.

        What was put back since the last look has less: that is for the next `check` to find out.
        """
        epoch = current()
        newest = max(_newest_committed(), self._remembered(epoch))
        draft = self._path.with_suffix(".new")
        draft.write_text(f"{epoch} {newest}")
        draft.replace(self._path)

    def _remembered(self, of_epoch: str) -> int:
        try:
            epoch, _, newest = self._path.read_text().partition(" ")
            return int(newest) if epoch == of_epoch else 0
        except (FileNotFoundError, ValueError):
            return 0


def _newest() -> int:
    """Answer the newest row id ever given; no discarded import and no crash takes it back.

    PostgreSQL's sequence may be ahead of what was committed (a crash takes ids that were given back), never behind.
    """
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name=%s", [Event._meta.db_table])
        else:
            cursor.execute("SELECT last_value FROM conversations_event_id_seq WHERE is_called")
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _newest_committed() -> int:
    """Answer the newest row id that is certain to be on disk: what the file may remember.

    A sequence tells of ids that no transaction has committed yet, and a crash of PostgreSQL forgets those.
    """
    if connection.vendor == "sqlite":
        return _newest()
    return Event.objects.aggregate(newest=Max("id"))["newest"] or 0
