"""Write the whole record to one file, beside a running server. Called by `backup` and `migrate-database`."""

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.utils.crypto import salted_hmac

from conversations.access.audit import chain
from conversations.backup import archive, portable_rows
from conversations.backup.archive import ArchiveWriter, Manifest
from conversations.backup.consistent_copy import OWNER_ALONE, ConsistentCopy, consistent_copy_beside
from conversations.backup.portable_rows import META_LEFT_OUT, RecordTable
from conversations.core import schema_state
from conversations.core.errors import Conflict, Invalid, SwitchboardError
from conversations.core.failpoints import failpoint
from conversations.core.node_heartbeat import release
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import epoch
from conversations.evidence import checkpoints
from conversations.evidence.checkpoints import Signer

PIECE = 1 << 16  # bytes handed over at once

Progress = Callable[[int, int], None]  # events written, events in all


class Backup(NamedTuple):
    """A finished backup."""

    path: Path
    size: int  # bytes
    digest: str
    manifest: Manifest


def make(path: Path, who: Principal, signer: Signer, progress: Progress, *, verb: str = "back_up") -> Backup:
    """Write the record as it is now; the file appears whole or not at all, readable by its owner alone. What moved is
    signed first where the keys are here; a record that cannot be signed is backed up as it is.

    Raises Invalid where something else has that name or no file can be made, Conflict where another process writes
    there, or as files do.
    """
    path = path.absolute()
    if path.exists() and not (path.is_file() and archive.is_backup(path)):
        raise Invalid(f"{path} exists and is not a backup: choose another name")
    if schema_state.is_behind():
        raise Conflict("the database's tables have an older version: run `switchboard migrate` first")
    epoch.current()  # the first one is made by who asks first
    with _draft(path) as (file, draft):
        with write_transaction():
            chain.enter(who, verb, "record")
        with suppress(SwitchboardError):
            if signer.has_keys():  # the server alone makes them
                checkpoints.make(signer)
        with consistent_copy_beside(draft) as copy:
            failpoint("backup-copied")
            digest, manifest = _write(file, copy, progress)
        os.fsync(file.fileno())
        failpoint("backup-written")
        size = draft.stat().st_size
        draft.replace(path)
        failpoint("backup-renamed")
    _sync_folder(path.parent)
    return Backup(path, size, digest, manifest)


@contextmanager
def _draft(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open the file that becomes the backup, of this process alone; what a killed one left is written over."""
    draft = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, OWNER_ALONE)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "r+b") as file:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"another process is writing {path}") from None
        if not (draft.exists() and os.path.samestat(os.fstat(descriptor), draft.stat())):
            raise Conflict(f"another process has just written {path}")  # and what was opened is that backup
        os.fchmod(descriptor, OWNER_ALONE)
        file.truncate(0)
        try:
            yield file, draft
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _write(file: IO[bytes], copy: ConsistentCopy, progress: Progress) -> tuple[str, Manifest]:
    writer = ArchiveWriter(file)
    facts = _facts(copy)
    parts = [_part(writer, copy, table, _Count(facts["events"], progress)) for table in portable_rows.tables()]
    manifest = facts | {"parts": parts, "bytes": sum(part["bytes"] for part in parts)}
    return writer.finish(manifest), manifest


class _Count:
    """Tells how many events were written so far."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress = total, progress

    def tell(self, table: str, rows: int) -> None:
        if table == "conversations_event":
            self._progress(rows, self._total)
            failpoint("backup-events")


def _part(writer: ArchiveWriter, copy: ConsistentCopy, table: RecordTable, count: _Count) -> Manifest:
    rows = 0
    encode = msgspec.json.Encoder().encode

    def pieces() -> Iterator[bytes]:
        nonlocal rows
        piece = bytearray()
        for row in copy.rows(table):
            if table.name == "conversations_meta" and not _is_of_record(row):
                continue
            piece += encode(row)
            piece += b"\n"
            rows += 1
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
                count.tell(table.name, rows)
        yield bytes(piece)
        count.tell(table.name, rows)

    name = f"tables/{table.name.removeprefix('conversations_')}.jsonl"
    size, digest = writer.add(name, pieces())
    columns = [list(column) for column in table.columns]
    return {"name": name, "table": table.name, "columns": columns, "rows": rows, "bytes": size, "sha256": digest}


def _is_of_record(row: list[Any]) -> bool:
    """Return whether a fact about the database goes along: leases name processes, and an index is made anew."""
    name, value = row
    return name not in META_LEFT_OUT and '"holder"' not in value


def _facts(copy: ConsistentCopy) -> Manifest:
    (conversations,) = copy.first_row("SELECT COUNT(*) FROM conversations_conversation")
    (events,) = copy.first_row("SELECT COUNT(*) FROM conversations_event")
    (current,) = copy.first_row("SELECT value FROM conversations_meta WHERE name='epoch'")
    seq, hash_ = copy.first_row("SELECT seq,hash FROM conversations_audithead WHERE id=1")
    return {
        "version": release(),
        "made_at": time.time_ns() // 1000,
        "migration": newest_migration(),
        "epoch": current,
        "conversations": conversations,
        "events": events,
        "audit_head": {"seq": seq, "hash": hash_},
        "heads": _digest_of_heads(copy),
        "secret": secret_mark(current),
        "checkpoint": _checkpoint(copy),
    }


def _checkpoint(copy: ConsistentCopy) -> str:
    """Return the newest signed head that the copy has, as a note; empty for none."""
    row = copy.first_row("SELECT note FROM conversations_checkpoint ORDER BY size DESC LIMIT 1")
    return str(row[0]) if row else ""


def _digest_of_heads(copy: ConsistentCopy) -> str:
    """Return one SHA-256 over all conversations' heads: row, seq and hash of each, by row."""
    digest = hashlib.sha256()
    heads = RecordTable(
        "conversations_conversation", (("id", "int"), ("head_seq", "int"), ("head_hash", "text")), ("id",)
    )
    for row in copy.rows(heads):
        digest.update(f"{row[0]} {row[1]} {row[2]}\n".encode())
    return digest.hexdigest()


def newest_migration() -> str:
    """Return the name of the record's last migration that this version knows."""
    return str(MigrationLoader(None).graph.leaf_nodes("conversations")[0][1])


def secret_mark(epoch: str) -> str:
    """Return what tells whether two places have the same secret key, and nothing else about it."""
    return salted_hmac("conversations.backup", epoch, secret=settings.SECRET_KEY, algorithm="sha256").hexdigest()[:32]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
