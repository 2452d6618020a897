"""The database's epoch: it changes when history may have gone back, and then clients start afresh (law D).

Two things show it: a client that has seen more than there is, and two files in the data directory of every process.
`high-water` remembers the newest row ever committed: a copy put in the database's place has less. `newest-head`
remembers the end of the conversation that spoke last, and the epochs there were: a copy that has grown since has
another event there, or none, or an epoch that is over. Whichever process finds out first changes the epoch, for all.
"""

import secrets
from pathlib import Path

from django.db import connection
from django.db.models import Max

from conversations.core import data_dir as datadir
from conversations.core.database_clock import database_now
from conversations.core.write_transaction import write_transaction
from conversations.events.log.settled_rows import newest_given
from conversations.models import Conversation, Event, Meta

EPOCHS = 50  # remembered by a process
WENT_BACK = "went_back"  # the row of `Meta`


def current() -> str:
    """Return the epoch; the first one is made here. Asked each second: plain SQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT value FROM conversations_meta WHERE name='epoch'")
        if row := cursor.fetchone():
            return str(row[0])
    meta, _ = Meta.objects.get_or_create(name="epoch", defaults={"value": secrets.token_hex(8)})
    return meta.value


def change(old: str, *, is_older: bool = True) -> str:
    """Change the epoch, unless somebody did already; return what it is now. `is_older`: the record went back."""
    with write_transaction():
        is_changed = Meta.objects.filter(name="epoch", value=old).update(value=secrets.token_hex(8))
        if is_changed and is_older:
            Meta.objects.update_or_create(name=WENT_BACK, defaults={"value": str(database_now())})
    return current()


def went_back_at() -> int:
    """Return when the record last went back to an earlier state, in µs UTC by the database's clock; 0 if never.

    What others sent before may have had its effects in the history that was lost, so it must not start anything.
    """
    return int(Meta.objects.filter(name=WENT_BACK).values_list("value", flat=True).first() or 0)


class HighWater:
    """What a data directory remembers of how far the record ever was. Processes that share one take turns."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._path = data_dir / "high-water"  # `epoch newest-row-id`
        self._newest_head = NewestHead(data_dir / "newest-head")
        self._written = ""
        self.epoch = ""  # at the last look; empty where it failed

    def check(self) -> bool:
        """Change the epoch when the record is behind the files, and remember how far it is. Return whether it was.

        At start and every second: PostgreSQL may be restored under a running server.
        """
        with datadir.file_lock(self._data_dir, "high-water.lock"):
            self.epoch = ""
            self.epoch, newest = current(), newest_given()
            is_behind = self._remembered(self.epoch) > newest or self._newest_head.is_gone(self.epoch)
            if not is_behind and self._written == f"{self.epoch} {newest}" and self._path.exists():
                return False  # nothing has happened
            if is_behind:
                self.epoch = change(self.epoch)
            self._write()
            return is_behind

    def write(self) -> None:
        """Remember how far it is now; whole or not at all, and in one epoch never less than before.

        What was put back since the last look has less: that is for the next `check` to find out.
        """
        with datadir.file_lock(self._data_dir, "high-water.lock"):
            if not self._newest_head.is_gone(current()):
                self._write()

    def _write(self) -> None:
        epoch = current()
        newest = max(_newest_committed(), self._remembered(epoch))
        draft = self._path.with_suffix(".new")
        draft.write_text(text := f"{epoch} {newest}")
        draft.replace(self._path)
        self._written = text
        self._newest_head.write(epoch)

    def _remembered(self, of_epoch: str) -> int:
        try:
            epoch, _, newest = self._path.read_text().partition(" ")
            return int(newest) if epoch == of_epoch else 0
        except (FileNotFoundError, ValueError):
            return 0


class NewestHead:
    """The file that remembers an event which is never removed: where the conversation that spoke last ended."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def is_gone(self, epoch: str) -> bool:
        """Return whether the record is not the one that was seen here: that event is gone, or this epoch was over."""
        epochs, head = self._read()
        if epoch in epochs[:-1]:
            return True
        if not head or epochs[-1:] != [epoch]:
            return False  # another process has begun a new epoch: what was before it is no longer asked for
        conversation, seq, seen = head
        return not _is_stored(int(conversation), int(seq), seen)

    def write(self, epoch: str) -> None:
        """Remember the newest head and this epoch. Neither a staged conversation nor a demo's: those may be removed."""
        lasting = Conversation.objects.visible().filter(is_demo=False, head_seq__gt=0).newest_first()
        head = lasting.values_list("id", "head_seq", "head_hash").first() or ()
        epochs = [*(earlier for earlier in self._read()[0] if earlier != epoch), epoch][-EPOCHS:]
        draft = self._path.with_suffix(".new")
        draft.write_text(f"{' '.join(epochs)}\n{' '.join(map(str, head))}\n")
        draft.replace(self._path)

    def _read(self) -> tuple[list[str], list[str]]:
        """Return the epochs there were, the newest last, and the event: its conversation's row, seq and hash."""
        try:
            epochs, head = (line.split() for line in self._path.read_text().splitlines())
        except (FileNotFoundError, ValueError):
            return [], []
        is_whole = len(head) == 3 and head[0].isdigit() and head[1].isdigit()
        return epochs, head if is_whole else []


def _is_stored(conversation: int, seq: int, seen: str) -> bool:
    """Return whether an event is in the record as it was seen. Asked each second: plain SQL."""
    with connection.cursor() as cursor:
        sql = "SELECT 1 FROM conversations_event WHERE conversation_id=%s AND seq=%s AND hash=%s"
        cursor.execute(sql, [conversation, seq, seen])
        return cursor.fetchone() is not None


def _newest_committed() -> int:
    """Return the newest row id that is certain to be on disk: what the file may remember.

    A sequence tells of ids that no transaction has committed yet, and a crash of PostgreSQL forgets those.
    """
    if connection.vendor == "sqlite":
        return newest_given()
    return Event.objects.aggregate(newest=Max("id"))["newest"] or 0
