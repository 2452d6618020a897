"""The journal of redactions: a file in the data directory, outside of the database and of every backup.

A backup made before a redaction has the words again: whoever restores it calls `apply` before anything is served, as
every server does at its start. It says which events, never what they said.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from conversations.core import data_dir as datadir
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.models import Conversation, Redaction, Run
from conversations.redaction import redact
from conversations.redaction.selection import part_of

NAME = "redactions.jsonl"


class JournalLine(NamedTuple):
    """One redaction of one conversation."""

    mark: str
    conversation: int  # row
    key_digest: str  # SHA-256 of its id, which may be somebody's name
    seqs: list[int]
    at: int
    reason: str


def update(data_dir: Path) -> list[Redaction]:
    """Write down what the database has and the file has not, oldest first; return these."""
    with datadir.turn(data_dir, "redactions.lock"):
        path = data_dir / NAME
        written = {line.mark for line in read(path)} if path.exists() else set()
        fresh = [
            made for made in Redaction.objects.select_related("conversation").order_by("id") if made.mark not in written
        ]
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a") as file:
            for made in fresh:
                file.write(json.dumps(_line(made)._asdict()) + "\n")
            file.flush()
            os.fsync(file.fileno())
    return fresh


def read(path: Path) -> Iterator[JournalLine]:
    """Read the file; a last line that was not finished is none."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("\n"):
            fields: dict[str, Any] = json.loads(line)
            yield JournalLine(**fields)


def apply(path: Path) -> int:
    """Take out again what the file lists and the database does not know of: it is older than the file. Return how many
    events lost their words. What was done has its old mark, so that doing it again does nothing."""
    count = 0
    known = set(Redaction.objects.values_list("mark", flat=True))
    for line in read(path) if path.exists() else ():
        row = Conversation.objects.filter(pk=line.conversation).first() if line.mark not in known else None
        if row is None or _digest(row.key) != line.key_digest:
            continue
        part = part_of(row, line.seqs)
        with write_transaction():
            redact.erase(part, SYSTEM, line.reason, mark=line.mark)
            # What a run remembers while it waits has the words, too: it cannot go on.
            Run.objects.filter(conversation=row).update(state=None, state_mac=None)
        count += len(part.events)
    return count


def _line(made: Redaction) -> JournalLine:
    row = made.conversation
    return JournalLine(made.mark, row.pk, _digest(row.key), json.loads(made.seqs), made.at, made.reason)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
