"""What `backup` and `restore` say of a path that cannot be read or written."""

import resource
import subprocess

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("options", [[], ["--check"]])
def test_restore_names_a_file_that_is_not_there(tmp_path, settings, options):
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()

    with pytest.raises(CommandError, match=r"missing\.zip cannot be read: No such file or directory"):
        call_command("restore", str(tmp_path / "missing.zip"), *options)


def test_restore_names_a_directory(tmp_path, settings):
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()

    with pytest.raises(CommandError, match="cannot be read: Is a directory"):
        call_command("restore", str(tmp_path))


def test_backup_names_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(CommandError, match=r"missing/record\.zip cannot be written: No such file or directory"):
        call_command("backup", str(tmp_path / "missing" / "record.zip"))


def test_backup_names_a_path_through_a_file(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(CommandError, match=r"file/record\.zip cannot be written: Not a directory"):
        call_command("backup", str(tmp_path / "file" / "record.zip"))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "limit"), [("sqlite", 200_000), ("postgresql", 8_000)])  # bytes of a file
def test_backup_names_its_own_file_where_the_disk_of_that_is_full(place, tmp_path, kind, limit):
    server, file = place(kind), tmp_path / "record.backup"
    server.command("user", "ida", "--role", "admin")

    done = subprocess.run(
        server.command_line("backup", str(file)), cwd=server.folder, env=server.env(), capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY)),
    )  # fmt: skip

    assert done.returncode == 1
    assert f"No backup was made: {file}: " in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir() if "record.backup" in path.name] == []
