"""Write the whole record to one file while the server runs. Called by `backup` and `migrate-database`."""

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
from django.utils.crypto import salted_hmac

from conversations.access.audit import chain
from conversations.backup import archive, portable_rows
from conversations.backup.archive import ArchiveWriter, Manifest
from conversations.backup.consistent_copy import OWNER_ALONE, ConsistentCopy, consistent_copy_beside
from conversations.backup.portable_rows import EXCLUDED_META, RecordTable
from conversations.core import schema_state
from conversations.core.errors import Conflict, Invalid, SwitchboardError
from conversations.core.failpoints import failpoint
from conversations.core.node_heartbeat import release
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import epoch
from conversations.events.log.import_staging import PREFIX
from conversations.evidence import checkpoints
from conversations.evidence.checkpoints import Signer

_STAGED = f"c.is_staged AND c.key LIKE '{PREFIX}%'"  # not part of the record; a restore drops it
PIECE = 1 << 16  # bytes passed to the archive at a time

Progress = Callable[[int, int], None]  # events written, events in all


class Backup(NamedTuple):
    """A finished backup."""

    path: Path
    size: int  # bytes
    digest: str
    manifest: Manifest


def make(path: Path, who: Principal, signer: Signer, progress: Progress, *, verb: str = "back_up") -> Backup:
    """Write the record as it is now to a file that only its owner can read, and that appears complete or not at all.

    If the signing keys are here, the record is signed first; a record that cannot be signed is backed up unsigned.
    Raises Invalid if the path is taken by something other than a backup or cannot be written, Conflict if another
    process is writing it, and OSError if the disk fails. The caller has had `schema_state.ensure()` check the tables.
    """
    path = path.absolute()
    if path.exists() and not (path.is_file() and archive.is_backup(path)):
        raise Invalid(f"{path} exists and is not a backup: choose another name")
    epoch.current()  # creates the first epoch if there is none
    with _draft(path) as (file, draft):
        with write_transaction():
            chain.add_entry(who, verb, "record")
        with suppress(SwitchboardError):
            if signer.has_keys():  # only the server creates them
                checkpoints.make(signer)
        with consistent_copy_beside(draft) as copy:
            failpoint("backup-copied")
            digest, manifest = _write(file, copy, progress, is_move=verb == "move")
        os.fsync(file.fileno())
        failpoint("backup-written")
        size = draft.stat().st_size
        draft.replace(path)
        failpoint("backup-renamed")
    sync(path.parent)
    return Backup(path, size, digest, manifest)


@contextmanager
def _draft(path: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """Open the draft of the backup, locked by this process. A draft left by a killed process is overwritten."""
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
            raise Conflict(
                f"another process has just written {path}"
            )  # and this process opened its draft, which is the backup now
        os.fchmod(descriptor, OWNER_ALONE)
        file.truncate(0)
        try:
            yield file, draft
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _write(file: IO[bytes], copy: ConsistentCopy, progress: Progress, *, is_move: bool) -> tuple[str, Manifest]:
    writer = ArchiveWriter(file)
    facts = _facts(copy) | {"is_move": is_move}
    (rows,) = copy.first_row("SELECT COUNT(*) FROM conversations_event")
    parts = [_part(writer, copy, table, _EventCount(rows, progress)) for table in portable_rows.tables()]
    manifest = facts | {"parts": parts, "bytes": sum(part["bytes"] for part in parts)}
    return writer.finish(manifest), manifest


class _EventCount:
    """Reports how many events were written so far."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress = total, progress

    def report(self, table: str, rows: int) -> None:
        if table == "conversations_event":
            self._progress(rows, self._total)
            failpoint("backup-events")


def _part(writer: ArchiveWriter, copy: ConsistentCopy, table: RecordTable, count: _EventCount) -> Manifest:
    rows = 0
    encode = msgspec.json.Encoder().encode

    def pieces() -> Iterator[bytes]:
        nonlocal rows
        piece = bytearray()
        for row in copy.rows(table):
            if table.name == "conversations_meta" and not _belongs_in_backup(row):
                continue
            piece += encode(row)
            piece += b"\n"
            rows += 1
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
                count.report(table.name, rows)
        yield bytes(piece)
        count.report(table.name, rows)

    name = f"tables/{table.name.removeprefix('conversations_')}.jsonl"
    size, digest = writer.add(name, pieces())
    columns = [list(column) for column in table.columns]
    return {"name": name, "table": table.name, "columns": columns, "rows": rows, "bytes": size, "sha256": digest}


def _belongs_in_backup(row: list[Any]) -> bool:
    """Return whether a row of `Meta` belongs in the backup. Leases name processes, and the index is rebuilt."""
    name, value = row
    return name not in EXCLUDED_META and '"holder"' not in value


def _facts(copy: ConsistentCopy) -> Manifest:
    (conversations,) = copy.first_row(f"SELECT COUNT(*) FROM conversations_conversation c WHERE NOT ({_STAGED})")
    (events,) = copy.first_row(
        "SELECT COUNT(*) FROM conversations_event e WHERE NOT EXISTS"
        f" (SELECT 1 FROM conversations_conversation c WHERE c.id=e.conversation_id AND {_STAGED})"
    )
    (current,) = copy.first_row("SELECT value FROM conversations_meta WHERE name='epoch'")
    seq, hash_ = copy.first_row("SELECT seq,hash FROM conversations_audithead WHERE id=1")
    return {
        "version": release(),
        "made_at": time.time_ns() // 1000,
        "migration": schema_state.newest(),
        "epoch": current,
        "conversations": conversations,
        "events": events,
        "audit_head": {"seq": seq, "hash": hash_},
        "heads": _digest_of_heads(copy),
        "secret": secret_mark(current),
        "checkpoint": _checkpoint(copy),
    }


def _checkpoint(copy: ConsistentCopy) -> str:
    """Return the newest checkpoint in the copy, as a signed note; empty if there is none."""
    row = copy.first_row("SELECT note FROM conversations_checkpoint ORDER BY size DESC LIMIT 1")
    return str(row[0]) if row else ""


def _digest_of_heads(copy: ConsistentCopy) -> str:
    """Return one SHA-256 over the heads of all conversations: row id, seq and hash of each, in the order of row ids."""
    digest = hashlib.sha256()
    heads = RecordTable(
        "conversations_conversation", (("id", "int"), ("head_seq", "int"), ("head_hash", "text")), ("id",)
    )
    for row in copy.rows(heads):
        digest.update(f"{row[0]} {row[1]} {row[2]}\n".encode())
    return digest.hexdigest()


def secret_mark(epoch: str) -> str:
    """Return a keyed digest of the epoch, which shows whether two deployments have the same secret key without
    revealing it."""
    return salted_hmac("conversations.backup", epoch, secret=settings.SECRET_KEY, algorithm="sha256").hexdigest()[:32]


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
