"""A backup of a record at work, restored on either database: a whole record, or none; never half of one."""

import json
import random
import resource
import subprocess
import threading
import time
import zipfile

import pytest

from conversations.backup import archive
from tests.events.test_epoch import subscribe
from tests.support.live import until
from tests.support.tiers import IS_SHORT, rounds, variants

PUBLISHERS, PAUSE = rounds(16, 64), 0.05 if IS_SHORT else 0.0  # seconds between two messages of each
# By the restore itself, indexed anew, or signed since.
CHANGED = {"meta", "auditentry", "audithead", "auditspan", "conversation", "treeleaf", "treechain", "checkpoint"}


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
    rows = server.rows(sql)
    keys = dict.fromkeys(key for key, _, _ in rows)
    return {key: [(seq, hash_) for each, seq, hash_ in rows if each == key] for key in keys}


def manifest_of(path):
    with zipfile.ZipFile(path) as parts:
        return json.loads(parts.read("manifest.json"))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.crash
@pytest.mark.thorough  # the tests above kill it at each step
@pytest.mark.parametrize("number", range(12))
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


@pytest.mark.slow
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
