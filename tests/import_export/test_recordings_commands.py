"""`switchboard import` and `switchboard export`: what they print, and that a file is whole or not there at all."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from conversations.models import Conversation, Event
from tests.import_export.test_recordings_imports import ours
from tests.support.recorded import OWN

pytestmark = pytest.mark.django_db(transaction=True)


def test_command_exports_to_a_file_or_not_at_all(tmp_path, settings):
    ours()

    call_command("export", "town", output=tmp_path / "x.jsonl")
    with pytest.raises(CommandError, match="there is no conversation"):
        call_command("export", "nobody", output=tmp_path / "y.jsonl")

    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 11


def test_an_export_is_readable_by_its_owner_alone(tmp_path):
    ours()

    call_command("export", "town", output=tmp_path / "x.jsonl")

    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_named_with_the_file(tmp_path):
    ours()
    (tmp_path / "full").symlink_to("/dev/full")

    with pytest.raises(CommandError, match=r"^town was not exported: .*/full: No space left on device$"):
        call_command("export", "town", "--output", tmp_path / "full")


@pytest.mark.parametrize("place", [".", "/", ".."])
def test_a_directory_is_no_file_to_export_to(place, tmp_path, monkeypatch):
    ours()
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match=r"^town was not exported: .*Is a directory$"):
        call_command("export", "town", "--output", place)

    assert list(tmp_path.iterdir()) == []


def test_command_imports_and_says_what_it_became(tmp_path, settings, capsys):
    settings.DATA_DIR = tmp_path

    call_command("import", Path(OWN / "chat.json"), name="maria's file")

    assert capsys.readouterr().out.strip() == "chat: 12 events, 4 messages, 3 tool calls, 1 error"
    assert set(Event.objects.values_list("principal", flat=True)) == {"import:maria-s-file"}


def test_command_imports_files_and_folders_each_whole_or_not_at_all(tmp_path, settings, capsys):
    settings.DATA_DIR = tmp_path / "data"
    folder = tmp_path / "recordings"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "one.json").write_bytes((OWN / "chat.json").read_bytes())
    (folder / "two.json").write_text('[{"role": "user", "content": "hi"}]')
    (folder / "bad.jsonl").write_text("this is no recording\n")
    (folder / "README.md").write_text("no recording, and not looked at")

    with pytest.raises(CommandError, match="1 file not imported") as failed:
        call_command("import", folder, folder / "two.json", OWN / "simulations.json")

    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert failed.value.returncode == 1
    assert "bad.jsonl was not imported" in output.err
    assert f"{folder / 'deep' / 'one.json'}: 1 conversation" in lines
    assert "  one: 12 events, 4 messages, 3 tool calls, 1 error" in lines
    assert any(line.startswith("  two: ") and ", 1 message, 0 tool calls, 0 errors" in line for line in lines)
    assert lines[-1] == "3 of 4 files imported"
    assert {"one", "two"} < set(Conversation.objects.values_list("key", flat=True))


def test_command_names_a_file_whose_name_is_too_long(tmp_path, settings):
    settings.DATA_DIR = tmp_path / "data"

    with pytest.raises(CommandError, match=r"^x{300} was not imported: .*File name too long"):
        call_command("import", tmp_path / ("x" * 300))


def test_command_names_conversations_of_one_file_alone(tmp_path, settings):
    settings.DATA_DIR = tmp_path / "data"

    with pytest.raises(CommandError, match="works with a single file; got 2"):
        call_command("import", OWN / "chat.json", OWN / "simulations.json", conversation="x")
    with pytest.raises(CommandError, match="No recordings"):
        call_command("import", tmp_path)


def test_command_says_why_a_file_was_not_imported(tmp_path, settings):
    settings.DATA_DIR = tmp_path

    with pytest.raises(CommandError, match=r"nowhere\.json was not imported: .*No such file"):
        call_command("import", tmp_path / "nowhere.json")
