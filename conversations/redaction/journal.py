"""The journal of redactions: a file in the data directory, outside the database and of every backup.

A backup made before a redaction has the words again: whoever restores it calls `apply` before anything is served, as
every server does at its start. It says which events, never what they said.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from conversations.core import data_dir as datadir
from conversations.core.errors import Unavailable
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.models import Conversation, Redaction, Run
from conversations.redaction import audit_entries, erase_id, redact
from conversations.redaction.selection import part_of

NAME = "redactions.jsonl"


class JournalLine(NamedTuple):
    """One redaction of one conversation, or one erasure of audit entries."""

    mark: str
    conversation: int  # row; 0: the audit log
    key_digest: str  # of its id, which may be somebody's name; of audit entries: `mark_of_entries`
    seqs: list[int]
    at: int
    reason: str
    field: str = ""  # of a tool call; empty: all that the events said


class JournalWriter:
    """Writes redactions into the file of one directory, and remembers up to where it has read the file and the table.
    Redactions commit in the order of their ids: each holds `lock_actions`."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._inode = self._size = 0  # of the file, up to the last whole line
        self._last = 0  # id of the newest redaction that is in it

    def update(self) -> list[Redaction]:
        """Write down what the database has and the file has not, oldest first; return these."""
        with datadir.file_lock(self._data_dir, "redactions.lock"):
            path = self._data_dir / NAME
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "a") as file:
                there = os.fstat(descriptor)
                if there.st_ino != self._inode or there.st_size < self._size:  # another one in its place
                    self._inode, self._size, self._last = there.st_ino, 0, 0
                written = {line.mark for line in read(path, self._size)}
                rows = Redaction.objects.select_related("conversation").filter(pk__gt=self._last).order_by("pk")
                fresh, last = [], self._last
                for made in rows.iterator():
                    fresh += [made] if made.mark not in written else []
                    last = made.pk
                os.ftruncate(descriptor, _whole_size(path, self._size))
                for made in fresh:
                    file.write(json.dumps(_line(made)._asdict()) + "\n")
                file.flush()
                os.fsync(file.fileno())
                self._size, self._last = os.fstat(descriptor).st_size, last
        return fresh


def update(data_dir: Path) -> list[Redaction]:
    """Write down what the database has and the file has not, oldest first; return these."""
    return JournalWriter(data_dir).update()


def read(path: Path, start: int = 0) -> Iterator[JournalLine]:
    """Read the file, from a line's beginning on; a last line that was not finished is none. Raises Unavailable for one
    that is damaged."""
    for number, line in enumerate(_rest(path, start).splitlines(keepends=True), 1):
        if line.endswith(b"\n"):
            try:
                fields: dict[str, Any] = json.loads(line)
                yield JournalLine(**fields)
            except (ValueError, TypeError):
                number += path.read_bytes()[:start].count(b"\n")
                raise Unavailable(
                    f"line {number} of {path} is damaged: it lists what has to be redacted again"
                ) from None


def apply(path: Path) -> int:
    """Take out again what the file lists and the database does not know of: it is older than the file. Return how many
    events lost their words. What was done has its old mark, so that doing it again does nothing."""
    count = 0
    for mark, erase in pending(path):
        with write_transaction():
            lock_actions()
            if not Redaction.objects.filter(mark=mark).exists():  # else by another process that starts, too
                count += erase()
    return count


def pending(path: Path) -> Iterator[tuple[str, Callable[[], int]]]:
    """Give what the file lists and the database does not know of: its mark, and what erases it and returns how many
    events lost their words."""
    known = set(Redaction.objects.values_list("mark", flat=True))
    for line in read(path) if path.exists() else ():
        if line.mark not in known and (erase := _erasure(line)) is not None:
            yield line.mark, erase


def _erasure(line: JournalLine) -> Callable[[], int] | None:
    """Return what erases it here, and tells how much; None where the record has something else there."""
    if not line.conversation:
        is_there = audit_entries.mark_of_entries(line.seqs) == line.key_digest
        return partial(audit_entries.erase_again, line.seqs, line.reason, line.mark) if is_there else None
    row = Conversation.objects.filter(pk=line.conversation).first()
    if row is None or _digest(row) != line.key_digest:
        return None
    if line.field == redact.ID_FIELD:  # the other lines are of events that lost the id with it
        is_left = line.mark.startswith(erase_id.MARK) and row.key_salt is not None
        return partial(erase_id.erase_again, row, line.reason, line.mark) if is_left else None
    return partial(_erase_events, row, line)


def _erase_events(row: Conversation, line: JournalLine) -> int:
    part = part_of(row, line.seqs)
    redact.erase(part, SYSTEM, line.reason, mark=line.mark, field=line.field)
    # What a run remembers while it waits has the words, too: it cannot go on.
    Run.objects.filter(conversation=row).update(state=None, state_mac=None)
    return len(part.events)


def _rest(path: Path, start: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read()


def _whole_size(path: Path, start: int) -> int:
    """Return how many bytes are whole lines: a process may have been killed within the last one."""
    return start + _rest(path, start).rfind(b"\n") + 1


def _line(made: Redaction) -> JournalLine:
    row, seqs = made.conversation, json.loads(made.seqs)
    digest = audit_entries.mark_of_entries(seqs) if row is None else _digest(row)
    return JournalLine(made.mark, row.pk if row else 0, digest, seqs, made.at, made.reason, made.field)


def _digest(row: Conversation) -> str:
    """Return the salted digest of a conversation's id; of one from before format 3 the SHA-256 of its id."""
    return row.key_digest or hashlib.sha256(row.key.encode()).hexdigest()
