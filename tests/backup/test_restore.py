"""A backup restored: nothing changed or missing passes, and the record goes on as it is signed and redacted."""

import json
import shutil

import pytest

from conversations.backup import archive
from conversations.core.errors import Invalid
from conversations.evidence import tree
from tests.backup.test_backup import history, manifest_of
from tests.support.live import until
from tests.support.tiers import variants


@pytest.mark.slow
def test_no_changed_or_missing_byte_passes_and_a_place_with_a_record_is_refused(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    whole, damaged = file.read_bytes(), tmp_path / "damaged.backup"

    for at in range(0, len(whole), max(1, len(whole) // 400)):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(Invalid), archive.opened(damaged):
            pass
        damaged.write_bytes(whole[:at])
        with pytest.raises(Invalid), archive.opened(damaged):
            pass
    damaged.write_bytes(whole + b"\n")
    with pytest.raises(AssertionError, match="is not a backup, or its end is missing"):
        other.command("restore", str(damaged))
    damaged.write_bytes(whole[:1000] + b"\0" + whole[1001:])
    with pytest.raises(AssertionError, match="is damaged: its contents do not match the SHA-256"):
        other.command("restore", str(damaged))
    assert not list(other.data_dir.glob("*.sqlite3*"))
    with pytest.raises(AssertionError, match="there is already a record here"):
        server.command("restore", str(file))
    assert "is complete" in server.command("restore", "--check", str(file))


CHANGES = {
    "event": (b"Size 3", b"Size 9", r"the body was changed after it was written"),
    "token": (b'"admin"', b'"agent"', r"token 'publisher' has role agent"),
    "checkpoint": (b"switchboard/", b"switchbord/", r"the note of checkpoint|not signed by"),
    "treeleaf": (tree.AUDIT.encode(), b"zz", r"internal error: ValueError"),
    "conversation": (b'"backup1"', b'"backup9"', r"conversation 'backup9'"),
}


def rewritten(file, changed, *, table="", old=b"", new=b"", without="", missing="", **facts):
    """Write a backup whose table has other bytes or lacks a column, which lacks a table, or whose manifest has other
    facts; return its path."""
    with archive.opened(file) as backup, changed.open("w+b") as out:
        writer, parts = archive.ArchiveWriter(out), []
        for part in backup.manifest["parts"]:
            if part["table"] == f"conversations_{missing}":
                continue
            with backup.lines(part) as lines:
                content = list(lines)
            if part["table"] == f"conversations_{table}":
                assert any(old in line for line in content)
                content = [line.replace(old, new) for line in content]
                columns = [column for column in part["columns"] if column[0] != without]
                if without:
                    assert part["columns"] == [*columns, part["columns"][-1]]
                    content = [json.dumps(json.loads(line)[:-1]).encode() + b"\n" for line in content]
                part = part | {"columns": columns}
            size, digest = writer.add(part["name"], iter(content))
            parts.append(part | {"bytes": size, "sha256": digest})
        writer.finish(backup.manifest | {"parts": parts} | facts)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("table", variants(CHANGES))
def test_a_changed_record_is_refused_although_its_file_is_whole(filled, place, tmp_path, table):
    old, new, words = CHANGES[table]
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    changed = rewritten(file, tmp_path / "changed.backup", table=table, old=old, new=new)

    with pytest.raises(AssertionError, match=rf"record is not intact: .*({words})"):
        other.command("restore", str(changed))

    assert not list(other.data_dir.glob("*.sqlite3*"))


def signed_size(server):
    """Return how many leaves the newest checkpoint has."""
    ((size,),) = server.rows("SELECT COALESCE(MAX(size),0) FROM conversations_checkpoint")
    return size


@pytest.mark.slow
@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_restored_record_is_signed_further_by_the_keys_that_signed_it(filled, place, tmp_path, kind):
    server, copy, file = filled(place(kind), 5), place(kind), tmp_path / "record.backup"
    server.command("backup", str(file))
    checkpoint_file = tmp_path / "kept"
    checkpoint_file.write_text(manifest_of(file)["checkpoint"])

    printed = copy.command("restore", str(file))
    assert "its keys are in no backup" in printed
    assert "leaves are intact" in copy.command("verify", "--since", str(checkpoint_file))
    shutil.copytree(server.data_dir / "keys", copy.data_dir / "keys")
    before = signed_size(copy)
    copy.start()
    until(lambda: signed_size(copy) > before, what="the restore to be signed")
    copy.terminate()

    assert "leaves are intact" in copy.command("verify", "--since", str(checkpoint_file))


@pytest.mark.slow
def test_an_older_backup_is_signed_only_once_somebody_says_that_it_was_on_purpose(filled, place, tmp_path):
    server, file = filled(place("sqlite"), 5), tmp_path / "record.backup"
    server.command("backup", str(file))
    server.start()
    assert server.publish(server.token("later"), "stream:later", {"event": "log"})[0] == 201
    server.terminate()
    for path in server.data_dir.glob("*.sqlite3*"):
        path.unlink()

    printed = server.command("restore", str(file))
    assert "nothing is signed until you say that this was on purpose" in printed
    with pytest.raises(AssertionError, match="the end was cut off"):
        server.command("verify")
    server.command("new-tree", "--reason", "the disk was lost")
    server.start()
    until(lambda: signed_size(server), what="the new tree")
    server.terminate()

    assert "leaves are intact" in server.command("verify")


@pytest.mark.slow
def test_what_was_redacted_since_the_backup_is_redacted_again(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    server.command("redact", "backup1", "1", "--reason", "asked for")
    other.data_dir.mkdir()
    shutil.copy(server.data_dir / "redactions.jsonl", other.data_dir)

    printed = other.command("restore", str(file))

    assert "Redacted again: 1 event that had been redacted since the backup." in printed
    assert "Size 1" not in str(other.rows("SELECT body FROM conversations_event"))
    assert "leaves are intact" in other.command("verify")


@pytest.mark.slow
@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_backup_of_a_replaced_migration_is_restored_and_brought_up_to_date(filled, place, tmp_path, kind):
    server, copy, file = filled(place(kind), 5), place(kind), tmp_path / "record.backup"
    server.command("backup", str(file))
    assert manifest_of(file)["migration"] == "0032_cache_writes"
    older = rewritten(
        file,
        tmp_path / "older.backup",
        table="participant",
        without="asked_at",
        missing="telemetrytrace",
        migration="0022_run_team",
    )

    copy.command("restore", str(older))

    copy.command("migrate", "--check")
    copy.command("verify")
    assert history(copy) == history(server)


def test_a_backup_of_an_unknown_migration_is_refused_by_its_name(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    later = rewritten(file, tmp_path / "later.backup", migration="0099_later")

    with pytest.raises(AssertionError, match=r"0099_later\); this one knows migrations up to 0032_cache_writes"):
        other.command("restore", str(later))

    assert not list(other.data_dir.glob("*.sqlite3*"))
