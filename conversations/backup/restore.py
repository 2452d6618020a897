"""Restore a backup into an empty database. Called by the commands `restore` and `migrate-database`.

All or nothing: on SQLite, the file is written under another name and renamed at the end; on PostgreSQL, everything is
one transaction.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from django.apps import apps
from django.core.management.color import no_style
from django.db import connection

from conversations.access.audit import chain
from conversations.access.audit.anchor_file import AuditAnchorFile
from conversations.backup import archive
from conversations.backup.archive import BackupArchive, Manifest
from conversations.backup.make_backup import Progress, secret_mark, sync
from conversations.backup.portable_rows import TO_POSTGRESQL, TO_SQLITE, converter
from conversations.core import schema_state
from conversations.core.bounded_groups import bounded_groups
from conversations.core.errors import Conflict, Invalid, Unavailable
from conversations.core.failpoints import failpoint
from conversations.core.plain_text import counted
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.events import epoch
from conversations.events.log.import_staging import discard_all_staged
from conversations.evidence import checkpoints, tree, verify_record
from conversations.evidence.checkpoints import Signer
from conversations.evidence.verify_record import RecordCheck
from conversations.redaction import journal
from conversations.runs import leases

PAGE = 500  # rows stored at once, fewer if they are large
PAGE_BYTES = 4 << 20
# The draft is discarded unless it is completed, so it is synced only once, at the end.
DRAFT_PRAGMAS = "PRAGMA journal_mode=MEMORY;PRAGMA synchronous=OFF;PRAGMA secure_delete=OFF;"
INTERRUPTED = "it was queued when the backup was made, and may have run since; nothing was repeated"
RECORD_TABLES = ("event", "conversation", "auditentry", "user", "token")

_decode = msgspec.json.Decoder(list[Any]).decode  # created at import, like every typed decoder


class Restored(NamedTuple):
    """A completed restore: the backup's manifest, the new epoch, and notes that the operator has to read."""

    manifest: Manifest
    epoch: str
    notes: Sequence[str]


def restore(path: Path, data_dir: Path, signer: Signer, progress: Progress) -> Restored:
    """Check the backup, restore it, and verify the restored record.

    Raises Conflict if the database already contains a record, and Invalid if the backup is damaged or its record is not
    intact; then nothing has changed.
    """
    with archive.opened(path) as backup:
        _require_known(backup.manifest)
        with _place() as is_apart:
            with schema_state.migration_lock(), nullcontext() if is_apart else write_transaction():
                _hold_record()
                _require_empty()  # again: what came before the lock, another restore, too, is not overwritten
                _load(backup, progress)
                _require_intact()
                new_epoch, interrupted = _begin_epoch(backup)
            failpoint("restore-stored")
        failpoint("restore-renamed")
        notes = [*_notes(backup.manifest), *_about_runs(interrupted), *_redact_again(data_dir / journal.NAME)]
        notes += [*_about_signatures(signer), *_put_aside(data_dir, new_epoch)]
        return Restored(backup.manifest, new_epoch, notes)


def _require_known(manifest: Manifest) -> None:
    if not schema_state.is_known(manifest["migration"]):
        made_by = f"made by version {manifest['version']} (migration {manifest['migration']})"
        raise Invalid(
            f"the backup was {made_by}; this one knows migrations up to {schema_state.newest()}: update it first"
        )


@contextmanager
def _place() -> Iterator[bool]:
    """Point the connection at the place to write to. Yields whether that is a draft (SQLite), renamed at the end."""
    _require_empty()
    if connection.vendor != "sqlite":
        yield False
        return
    config = connection.settings_dict
    place, options = Path(str(config["NAME"])), config["OPTIONS"]
    draft = place.with_name(f"{place.name}.restoring")
    _remove(draft)
    connection.close()
    config["NAME"], config["OPTIONS"] = draft, options | {"init_command": DRAFT_PRAGMAS}
    try:
        yield True
        connection.close()
        sync(draft)
        _remove(place)  # `_require_empty`: it contains no record
        draft.replace(place)
        sync(place.parent)
    finally:
        connection.close()
        config["NAME"], config["OPTIONS"] = place, options
        _remove(draft)


def _require_empty() -> None:
    """Raise Conflict if there is a record: a restore neither overwrites nor extends one."""
    if connection.vendor == "sqlite" and not Path(str(connection.settings_dict["NAME"])).exists():
        return
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
        for table in RECORD_TABLES:
            if (name := f"conversations_{table}") not in there:
                continue
            cursor.execute(f"SELECT 1 FROM {name} LIMIT 1")
            if cursor.fetchone():
                raise Conflict(
                    "there is already a record here; restore into an empty place: set SWITCHBOARD_DATA_DIR"
                    " to an empty directory, or SWITCHBOARD_DATABASE_URL to a new database"
                )


def _hold_record() -> None:
    """Let nobody else write to the record's tables until the transaction ends. On SQLite the place is a draft."""
    if connection.vendor == "sqlite":
        return
    with connection.cursor() as cursor:
        there = set(connection.introspection.table_names(cursor))
        tables = [name for table in RECORD_TABLES if (name := f"conversations_{table}") in there]
        if tables:
            cursor.execute(f"LOCK TABLE {','.join(tables)} IN SHARE ROW EXCLUSIVE MODE")


def _load(backup: BackupArchive, progress: Progress) -> None:
    """Create the tables as of the backup's migration, fill them, and run the later migrations."""
    manifest = backup.manifest
    schema_state.create_as_of(manifest["migration"])
    with write_transaction():
        for part in manifest["parts"]:
            _empty(part["table"])
            _fill(backup, part, progress)
        connection.check_constraints()
    schema_state.migrate()
    _reset_sequences()
    discard_all_staged()


def _empty(table: str) -> None:
    """Delete the rows that migrations inserted."""
    with connection.cursor() as cursor:
        cursor.execute(f'DELETE FROM "{table}"')


def _fill(backup: BackupArchive, part: Manifest, progress: Progress) -> None:
    names, kinds = zip(*part["columns"], strict=True)
    is_sqlite = connection.vendor == "sqlite"
    convert = converter(kinds, TO_SQLITE if is_sqlite else TO_POSTGRESQL)
    unindexed = names.index("indexed_seq") if "indexed_seq" in names else None
    store = _insert if is_sqlite else _copy
    stored = 0
    with backup.lines(part) as lines:
        for some_lines in bounded_groups(lines, len, most_items=PAGE, most_bytes=PAGE_BYTES):
            page = [convert(_decode(line)) for line in some_lines]
            if unindexed is not None:  # the search index is built again from the events
                for row in page:
                    row[unindexed] = 0
            store(part["table"], names, page)
            stored += len(page)
            if part["table"] == "conversations_event":
                progress(stored, part["rows"])
                failpoint("restore-events")
    if stored != part["rows"]:
        raise Invalid(f"the part {part['name']} has {stored:,} rows; the manifest lists {part['rows']:,}")


def _insert(table: str, names: Sequence[str], page: list[list[Any]]) -> None:
    columns, marks = ",".join(f'"{name}"' for name in names), ",".join("?" * len(names))
    with connection.wrap_database_errors:
        connection.connection.executemany(f'INSERT INTO "{table}" ({columns}) VALUES ({marks})', page)


def _copy(table: str, names: Sequence[str], page: list[list[Any]]) -> None:
    columns = ",".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor, cursor.copy(f'COPY "{table}" ({columns}) FROM STDIN') as copy:
        for row in page:
            copy.write_row(row)


def _reset_sequences() -> None:
    models = list(apps.get_app_config("conversations").get_models())
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), models):
            cursor.execute(statement)


def _require_intact() -> None:
    """Run all checks of `verify` except those against files of this data directory. Raises Invalid."""
    record = RecordCheck(verify_record.Settings())
    for check in (record.audit, record.events, record.tree, record.state):
        verdict = check()
        if not verdict.ok:
            raise Invalid(
                f"the backup's record is not intact: {verdict.first_bad}: {verdict.why}. Nothing was restored"
            )


def _begin_epoch(backup: BackupArchive) -> tuple[str, int]:
    """Begin a new epoch, so that followers notice that the record went back in time, and write an audit entry. End the
    queued runs, which may have run since the backup, unless it is a move; return how many."""
    is_older = not backup.manifest.get("is_move", False)
    with write_transaction():
        new_epoch = epoch.change(epoch.current(), is_older=is_older)
        interrupted = leases.interrupt_queued(INTERRUPTED) if is_older else 0
        facts = {"sha256": backup.digest, "made_at": backup.manifest["made_at"], "epoch": backup.manifest["epoch"]}
        chain.add_entry(SYSTEM, "restore", "record", correlation=facts)
    return new_epoch, interrupted


def _about_runs(interrupted: int) -> Iterator[str]:
    if interrupted:
        yield (
            f"Queued runs that are interrupted now, as they may have run since the backup: {interrupted:,}. Run again"
            " those that did not."
        )


def _notes(manifest: Manifest) -> Iterator[str]:
    if manifest["secret"] != secret_mark(manifest["epoch"]):
        yield (
            "The secret key here is another one than where the backup was made: runs that wait cannot be resumed. To"
            " keep them, restore with that key: SWITCHBOARD_SECRET_KEY, or the file `secret` of that data directory."
        )
    if not manifest.get("is_move", False):
        yield "Messages that were sent over Redis before this restore are recorded, but start no run."
    yield "People, tokens and rules are as they were then: revoke again what was revoked since. All sign in again."


def _redact_again(path: Path) -> Iterator[str]:
    """Repeat the redactions made since the backup, if the redaction journal is in this data directory."""
    try:
        if count := journal.apply(path):
            yield f"Redacted again: {counted(count, 'event')} that had been redacted since the backup."
    except Unavailable as error:
        yield f"What was redacted since the backup is there again, and the server will not start: {error.message}."
    if not path.exists():
        yield (
            f"What was redacted since the backup is there again, unless the file `{path.name}` of the old data"
            f" directory is put into {path.parent} before the first start."
        )


def _about_signatures(signer: Signer) -> Iterator[str]:
    """Say what the operator must do before the record can be signed again."""
    if not checkpoints.verifier_keys():
        return
    last, size = signer.last(), tree.size()
    if not signer.has_keys():
        yield (
            f"The record is signed up to leaf {size:,}; its keys are in no backup, and not in {signer.path}: put them"
            " there, with `last-checkpoint`, or begin another tree with `switchboard new-tree`."
        )
    elif last is not None and last.size > size:
        yield (
            f"The record was signed up to leaf {last.size:,}, and the backup has {size:,}: nothing is signed until you"
            " say that this was on purpose, by `switchboard new-tree`."
        )


def _put_aside(data_dir: Path, new_epoch: str) -> Iterator[str]:
    """Rename the audit anchor file of this data directory if it belongs to a longer audit log than the restored one."""
    anchor = AuditAnchorFile(data_dir)
    if anchor.path.exists() and not anchor.verify().ok:
        aside = anchor.path.with_name(f"{anchor.path.name}.before-{new_epoch}")
        anchor.path.replace(aside)
        yield f"The audit log here had more entries than the backup: what was remembered of it is now in {aside}."


def _remove(database: Path) -> None:
    for path in (database, *(Path(f"{database}{end}") for end in ("-journal", "-wal", "-shm"))):
        with suppress(FileNotFoundError):
            path.unlink()
