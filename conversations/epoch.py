"""The database's epoch: it changes when history may have gone back, and then clients start afresh (law D).

Two things show it: a client that has seen more than there is, and the high-water file beside the database, which
remembers the newest row ever committed. A copy put in the database's place has less.
"""

import secrets
from pathlib import Path

from django.db import connection

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
        """At start: change the epoch when the record is behind the file. Answer whether it was."""
        try:
            epoch, _, newest = self._path.read_text().partition(" ")
            is_behind = epoch == current() and int(newest) > _newest()
        except (FileNotFoundError, ValueError):
            is_behind = False
        if is_behind:
            change(current())
        self.write()
        return is_behind

    def write(self) -> None:
        """Remember how far it is now; whole or not at all."""
        draft = self._path.with_suffix(".new")
        draft.write_text(f"{current()} {_newest()}")
        draft.replace(self._path)


def _newest() -> int:
    """Answer the newest row id ever given: SQLite keeps it, also when the row was discarded with its import."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name=%s", [Event._meta.db_table])
        row = cursor.fetchone()
    return int(row[0]) if row else 0
