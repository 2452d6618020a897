"""What `migrate-database` takes along beside the rows, and what it says of a place that it cannot write to."""

import errno
import re

import pytest
from django.core.management import CommandError, call_command

from conversations.core import private_file
from conversations.core.errors import Conflict
from dashboard import kept_files

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def data_dir(tmp_path, settings):
    """A data directory of the test's own."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()


@pytest.mark.parametrize("target", ["", "  "])
def test_a_target_must_be_named(target):
    with pytest.raises(CommandError, match="TARGET must be postgresql://… or a directory"):
        call_command("migrate-database", target)


@pytest.mark.parametrize("target", ["mysql://x/y", "postgresql:/h/db", "postgresql+psycopg://h/db", "Sqlite:///x"])
def test_a_misspelled_address_is_no_directory(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match=r"TARGET must be postgresql://… or a directory; got [a-zS+]+:…$"):
        call_command("migrate-database", target)

    assert [path.name for path in tmp_path.iterdir() if path.name != "data"] == []


def test_a_directory_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(CommandError, match=r"^Nothing was copied: .*/x{300}.*: File name too long\.$"):
        call_command("migrate-database", str(tmp_path / ("x" * 300)))


@pytest.mark.slow
def test_a_database_that_is_not_there_is_named_without_a_traceback():
    with pytest.raises(CommandError) as refused:
        call_command("migrate-database", "postgresql://nobody@127.0.0.1:1/record")

    assert re.match(
        r"The database 127\.0\.0\.1/record cannot be used: connection .*port 1 failed: Connection refused",
        str(refused.value),
    )
    assert "Traceback" not in str(refused.value)


@pytest.mark.slow
def test_the_secret_and_the_keys_go_along_to_a_directory(filled, place):
    server, other = filled(place("sqlite")), place("sqlite")

    printed = server.command("migrate-database", str(other.data_dir))

    assert content(other.data_dir) == content(server.data_dir)
    assert {"secret", "keys/checkpoint-key.json", "keys/last-checkpoint", "redactions.jsonl"} <= set(
        content(other.data_dir)
    )
    modes = {path.stat().st_mode & 0o777 for path in files_of(other.data_dir)}
    assert (modes, (other.data_dir / "keys").stat().st_mode & 0o777) == ({0o600}, 0o700)
    assert "keys" not in printed
    assert "is there again" not in printed
    assert "leaves are intact" in other.command("verify")


@pytest.mark.slow
def test_the_secret_of_the_settings_goes_along_to_a_directory(filled, place):
    server, other = filled(place("postgresql")), place("sqlite")
    (server.data_dir / "secret").write_text("of an earlier time " * 3)

    server.command("migrate-database", str(other.data_dir))

    secret = other.data_dir / "secret"
    assert secret.read_text() == server.environment["SWITCHBOARD_SECRET_KEY"]
    assert secret.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_another_secret_at_the_target_is_not_replaced_and_nothing_is_copied(filled, place):
    server, other = filled(place("sqlite")), place("sqlite")
    other.data_dir.mkdir(exist_ok=True)
    (other.data_dir / "secret").write_text("s" * 64)

    with pytest.raises(AssertionError, match=r"the file .*secret differs from that of this record: move it away first"):
        server.command("migrate-database", str(other.data_dir))

    assert [path.name for path in files_of(other.data_dir)] == ["secret"]


@pytest.mark.slow
def test_a_move_to_postgresql_says_which_secret_to_set(filled, place):
    server, other = filled(place("sqlite")), place("postgresql")

    printed = server.command("migrate-database", other.environment["SWITCHBOARD_DATABASE_URL"])

    assert f"Set SWITCHBOARD_SECRET_KEY to the contents of {server.data_dir / 'secret'}" in printed


def files_of(data_dir):
    """Return the files that a data directory has beside the database, and that a record needs."""
    files = [data_dir / "secret", data_dir / "redactions.jsonl", *sorted((data_dir / "keys").glob("*"))]
    return [path for path in files if path.exists()]


def content(data_dir):
    return {str(path.relative_to(data_dir)): path.read_bytes() for path in files_of(data_dir)}


def test_a_disk_that_is_full_half_way_leaves_no_file_at_the_target(tmp_path, monkeypatch):
    source, target = tmp_path / "old", tmp_path / "new"
    (source / "keys").mkdir(parents=True)
    (source / "keys/checkpoint-key.json").write_text("{}")
    create = private_file.create

    def create_until_full(path, content):
        if path.name == "checkpoint-key.json":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        create(path, content)

    monkeypatch.setattr(private_file, "create", create_until_full)

    with pytest.raises(OSError, match="No space left"):
        kept_files.copy(source, target, secret="s" * 64)

    assert [path for path in target.rglob("*") if path.is_file()] == []


def test_a_secret_that_a_file_cannot_keep_is_refused(tmp_path):
    with pytest.raises(Conflict, match="begins or ends with white space"):
        kept_files.copy(tmp_path / "old", tmp_path / "new", secret="x" * 50 + "\n")

    assert not (tmp_path / "new").exists()
