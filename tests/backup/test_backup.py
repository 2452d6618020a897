"""A backup of a record at work, restored on either database: a whole record, or none; never half of one."""

import json
import random
import resource
import shutil
import subprocess
import threading
import time
import zipfile
from contextlib import closing
from itertools import count

import pytest

from conversations.backup import archive
from conversations.core.errors import Invalid
from tests.events.test_epoch import subscribe
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running
from tests.support.tiers import IS_QUICK, rounds, variants

PUBLISHERS, PAUSE = rounds(16, 64), 0.05 if IS_QUICK else 0.0  # seconds between two messages of each
numbers = count(1)
# By the restore itself, indexed anew, or signed since.
CHANGED = {"meta", "auditentry", "audithead", "auditspan", "conversation", "treeleaf", "treechain", "checkpoint"}


@pytest.fixture(scope="module")
def cluster():
    with running(PostgresServer()) as server:
        yield server


@pytest.fixture
def place(tmp_path, request):
    """Return what makes an empty place of a kind."""

    def make(kind):
        number = next(numbers)
        if kind == "sqlite":
            return Server(tmp_path / f"place{number}")
        cluster = request.getfixturevalue("cluster")
        return Server(tmp_path / f"place{number}", **on_postgresql(cluster.create(f"backup{number}")))

    return make


class Publisher(threading.Thread):
    """Publishes one message after the other; `acknowledged` are those of which the server said so."""

    def __init__(self, server, secret, number):
        super().__init__(daemon=True)
        self.server, self.secret, self.number = server, secret, number
        self.acknowledged, self.done = 0, threading.Event()

    def run(self):
        while not self.done.wait(PAUSE):
            payload = {"event": "log", "n": self.acknowledged, "text": "x" * 500}
            status, body = self.server.publish(self.secret, f"stream:backup{self.number % 8}", payload)
            assert status == 201, body
            self.acknowledged += 1


def history(server):
    """Read every conversation's hashes, in order."""
    sql = (
        "SELECT c.key,e.seq,e.hash FROM conversations_event e"
        " JOIN conversations_conversation c ON c.id=e.conversation_id ORDER BY c.key,e.seq"
    )
    with closing(server.database()) as database:
        rows = database.execute(sql).fetchall()
    keys = dict.fromkeys(key for key, _, _ in rows)
    return {key: [(seq, hash_) for each, seq, hash_ in rows if each == key] for key in keys}


def manifest_of(path):
    with zipfile.ZipFile(path) as parts:
        return json.loads(parts.read("manifest.json"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return what has a server record something and ends it; on SQLite once for all places of so many messages."""
    made = {}

    def fill(server, messages=40):
        if "SWITCHBOARD_DATABASE_URL" in server.environment:
            return recorded(server, messages)
        if messages not in made:
            made[messages] = recorded(Server(tmp_path_factory.mktemp("filled") / "data"), messages).data_dir
        shutil.copytree(made[messages], server.data_dir)
        return server

    return fill


def recorded(server, messages):
    """Have a server record so many messages, and end it."""
    server.start()
    secret = server.token()
    for n in range(messages):
        key, words = f"backup{n % 3}", {"sender": "agent:A", "recipient": "agent:B", "content": f"Size {n}"}
        status, body = server.publish(secret, f"chat:{key}", {"type": "message", "conversation_id": key, **words})
        assert status == 201, body
    server.terminate()
    return server


@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_backup_beside_publishers_is_a_prefix_that_verifies_and_begins_a_new_epoch(place, tmp_path, kind):
    server, copy, file = place(kind), place(kind), tmp_path / "record.backup"
    server.start()
    secret = server.token()
    publishers = [Publisher(server, secret, n) for n in range(PUBLISHERS)]
    [publisher.start() for publisher in publishers]
    until(lambda: all(publisher.acknowledged for publisher in publishers), what="everybody to publish")

    before = sum(publisher.acknowledged for publisher in publishers)
    printed = server.command("backup", str(file))
    after = sum(publisher.acknowledged for publisher in publishers)
    until(lambda: sum(p.acknowledged for p in publishers) > after + PUBLISHERS, what="them to go on")
    [publisher.done.set() for publisher in publishers]
    [publisher.join() for publisher in publishers]
    all_events, epoch = history(server), subscribe_epoch(server, secret)
    server.terminate()
    restored = copy.command("restore", str(file))

    part = history(copy)
    assert before <= sum(map(len, part.values())) < sum(map(len, all_events.values()))
    assert part
    assert all(events == all_events[key][: len(events)] for key, events in part.items())
    assert f"({file.stat().st_size:,} bytes)" in printed
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.glob("*record*")] == [file.name]
    assert "events are intact" in copy.command("verify")
    assert epoch not in restored
    copy.start()
    key = next(iter(part))
    frames = subscribe_to(copy, copy.token("again"), key, after=len(all_events[key]), epoch=epoch)
    assert next(frame["t"] for frame in frames) == "reset"
    status, body = copy.publish(copy.token("more"), f"stream:{key}", {"event": "log", "n": -1})
    assert (status, body["seq"]) == (201, len(part[key]) + 1)
    copy.terminate()


def subscribe_to(server, secret, key, **more):
    return subscribe(server, secret, topic=f"stream:{key}", **more)


def subscribe_epoch(server, secret):
    return subscribe_to(server, secret, "backup0")[-1]["epoch"]


@pytest.mark.parametrize(("source", "target"), variants([("sqlite", "postgresql"), ("postgresql", "sqlite")]))
def test_a_record_moves_between_databases_without_a_changed_row(filled, place, tmp_path, source, target):
    server, other = filled(place(source)), place(target)
    first, second = tmp_path / "first.backup", tmp_path / "second.backup"

    server.command("backup", str(first))
    where = other.environment.get("SWITCHBOARD_DATABASE_URL") or str(other.data_dir)
    printed = server.command("migrate-database", where)
    other.command("backup", str(second))

    parts = [{part["table"].partition("_")[2]: part for part in manifest_of(file)["parts"]} for file in (first, second)]
    same = {name for name, part in parts[0].items() if part["sha256"] == parts[1][name]["sha256"]}
    assert set(parts[0]) - same <= CHANGED
    assert parts[0]["event"]["rows"] >= 40
    assert "old database was not changed" in printed
    assert "secret key" not in printed
    assert history(server) == history(other)


BACKUP_DEATHS = ("backup-events", "backup-copied", "backup-written", "backup-renamed")
RESTORE_DEATHS = ("restore-events", "restore-stored", "restore-renamed")


@pytest.mark.crash
@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_killed_backup_leaves_the_old_one_or_the_new_one(filled, place, tmp_path, kind):
    server, file = filled(place(kind)), tmp_path / "record.backup"
    server.command("backup", str(file))
    old = file.read_bytes()

    for death in BACKUP_DEATHS[: rounds(2, 4)]:
        assert killed(server, death, "backup", str(file)) == -9
        with archive.opened(file) as backup:
            assert backup.manifest["events"] >= 40
        assert (file.read_bytes() == old) == (death != "backup-renamed")

    server.command("backup", str(file))  # over what the killed ones left
    assert [path.name for path in file.parent.glob(".record*")] == []


@pytest.mark.crash
@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_killed_restore_leaves_no_record_or_all_of_it(filled, place, tmp_path, kind):
    server, file = filled(place(kind)), tmp_path / "record.backup"
    server.command("backup", str(file))

    for death in RESTORE_DEATHS[: rounds(1, 3)]:
        other = place(kind)
        assert killed(other, death, "restore", str(file)) == -9
        is_stored = death == "restore-renamed" or (kind == "postgresql" and death == "restore-stored")
        if not is_stored:
            other.command("restore", str(file))
        assert history(other) == history(server)
        assert "events are intact" in other.command("verify")


def killed(server, death, *command):
    """Run a command that dies there; return its exit code."""
    server.environment["SWITCHBOARD_FAILPOINT"] = f"{death}:1"
    try:
        log = server.data_dir.parent / "killed.log"
        return server.spawn(command, log, log).wait(120)
    finally:
        del server.environment["SWITCHBOARD_FAILPOINT"]


def small_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))


def on_a_small_disk(server, *command):
    """Run a command whose files cannot grow over 20 kB; return its exit code and what it said."""
    line = server.command_line(*command)
    done = subprocess.run(
        line, cwd=server.folder, env=server.env(), capture_output=True, text=True, preexec_fn=small_disk
    )
    return done.returncode, done.stderr


@pytest.mark.thorough
def test_a_full_disk_leaves_the_old_backup_and_no_half_of_a_record(filled, place, tmp_path):
    server, other, file = filled(place("sqlite")), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    old = file.read_bytes()

    backing_up = on_a_small_disk(server, "backup", str(file))
    restoring = on_a_small_disk(other, "restore", str(file))

    assert backing_up[0] == restoring[0] == 1
    assert "disk" in backing_up[1].lower()
    assert "disk" in restoring[1].lower()
    assert "Traceback" not in backing_up[1] + restoring[1]
    assert file.read_bytes() == old
    assert not list(other.data_dir.glob("*.sqlite3*"))
    other.command("restore", str(file))
    assert history(other) == history(server)


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
    with pytest.raises(AssertionError, match="There is already a record here"):
        server.command("restore", str(file))
    assert "is complete" in server.command("restore", "--check", str(file))


CHANGES = {
    "event": (b"Size 3", b"Size 9", r"the body was changed after it was written"),
    "token": (b'"admin"', b'"agent"', r"token 'publisher' has role agent"),
    "checkpoint": (b"switchboard/", b"switchbord/", r"the note of checkpoint|not signed by"),
    "conversation": (b'"backup1"', b'"backup9"', r"conversation 'backup9'"),
}


@pytest.mark.parametrize("table", variants(CHANGES))
def test_a_changed_record_is_refused_although_its_file_is_whole(filled, place, tmp_path, table):
    old, new, words = CHANGES[table]
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    changed = tmp_path / "changed.backup"
    with archive.opened(file) as backup, changed.open("w+b") as out:
        writer, parts = archive.ArchiveWriter(out), []
        for part in backup.manifest["parts"]:
            with backup.lines(part) as lines:
                content = list(lines)
            if part["table"] == f"conversations_{table}":
                assert any(old in line for line in content)
                content = [line.replace(old, new) for line in content]
            size, digest = writer.add(part["name"], iter(content))
            parts.append(part | {"bytes": size, "sha256": digest})
        writer.finish(backup.manifest | {"parts": parts})

    with pytest.raises(AssertionError, match=rf"record is not intact: .*({words})"):
        other.command("restore", str(changed))

    assert not list(other.data_dir.glob("*.sqlite3*"))


def signed_size(server):
    """Return how many leaves the newest checkpoint has."""
    with closing(server.database()) as database:
        ((size,),) = database.execute("SELECT COALESCE(MAX(size),0) FROM conversations_checkpoint").fetchall()
    return size


@pytest.mark.parametrize("kind", variants(["sqlite", "postgresql"]))
def test_a_restored_record_is_signed_further_by_the_keys_that_signed_it(filled, place, tmp_path, kind):
    server, copy, file = filled(place(kind), 5), place(kind), tmp_path / "record.backup"
    server.command("backup", str(file))
    kept = tmp_path / "kept"
    kept.write_text(manifest_of(file)["checkpoint"])

    printed = copy.command("restore", str(file))
    assert "its keys are in no backup" in printed
    assert "leaves are intact" in copy.command("verify", "--since", str(kept))
    shutil.copytree(server.data_dir / "keys", copy.data_dir / "keys")
    before = signed_size(copy)
    copy.start()
    until(lambda: signed_size(copy) > before, what="the restore to be signed")
    copy.terminate()

    assert "leaves are intact" in copy.command("verify", "--since", str(kept))


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


def test_what_was_redacted_since_the_backup_is_redacted_again(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("sqlite"), tmp_path / "record.backup"
    server.command("backup", str(file))
    server.command("redact", "backup1", "1", "--reason", "asked for")
    other.data_dir.mkdir()
    shutil.copy(server.data_dir / "redactions.jsonl", other.data_dir)

    printed = other.command("restore", str(file))

    assert "1 events that were redacted since the backup are redacted again" in printed
    with closing(other.database()) as database:
        assert "Size 1" not in str(database.execute("SELECT body FROM conversations_event").fetchall())
    assert "leaves are intact" in other.command("verify")


@pytest.mark.crash
@pytest.mark.parametrize("number", range(rounds(1, 12)))
def test_killed_at_any_moment_there_is_a_whole_backup_and_a_whole_record_or_none(filled, place, tmp_path, number):
    dice = random.Random(number)
    server, file = filled(place("sqlite"), 5), tmp_path / "record.backup"
    server.command("backup", str(file))
    began = time.monotonic()
    server.command("backup", str(tmp_path / "timed.backup"))
    took = time.monotonic() - began

    killed_after(server, dice.random() * took, "backup", str(file))
    with archive.opened(file):
        pass
    other = place("sqlite")
    killed_after(other, dice.random() * took, "restore", str(file))
    if not (other.data_dir / "switchboard.sqlite3").exists():
        other.command("restore", str(file))

    assert history(other) == history(server)
    assert "leaves are intact" in other.command("verify")


def killed_after(server, seconds, *command):
    """Begin a command and kill it, if it has not ended by then."""
    log = server.data_dir.parent / "killed.log"
    process = server.spawn(command, log, log)
    threading.Event().wait(seconds)
    process.kill()
    process.wait()


def test_a_backup_never_replaces_another_file_and_holds_no_secret_key(filled, place, tmp_path):
    server = filled(place("sqlite"), 1)
    mine = tmp_path / "letter.txt"
    mine.write_text("mine")

    with pytest.raises(AssertionError, match="exists and is not a backup"):
        server.command("backup", str(mine))
    with pytest.raises(AssertionError, match="exists and is not a backup"):
        server.command("backup", str(server.data_dir / "switchboard.sqlite3"))
    server.command("backup", str(tmp_path / "record.backup"))

    secret = (server.data_dir / "secret").read_bytes()
    with zipfile.ZipFile(tmp_path / "record.backup") as parts:
        assert not any(secret in parts.read(name) for name in parts.namelist())
        assert "tables/node.jsonl" not in parts.namelist()
    assert mine.read_text() == "mine"
