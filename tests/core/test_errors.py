"""What commands say of a file that cannot be read."""

import io
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from conversations.core.errors import Invalid, reason_of

pytestmark = pytest.mark.django_db(transaction=True)

READ_A_FILE = [["import"], ["play"], ["policy"], ["verify", "--since"], ["restore"]]


def test_a_reason_is_words_without_a_number_and_names_another_file(tmp_path):
    with pytest.raises(OSError, match="No such file") as missing:
        (tmp_path / "missing").read_bytes()
    with pytest.raises(UnicodeDecodeError) as not_text:
        b"ab\xff".decode()

    assert reason_of(missing.value, tmp_path / "missing") == "No such file or directory"
    assert reason_of(missing.value) == f"{tmp_path / 'missing'}: No such file or directory"
    assert reason_of(not_text.value) == "must be UTF-8 text; byte 3 is not"
    assert reason_of(Invalid("must be a number")) == "must be a number"


@pytest.mark.parametrize("command", READ_A_FILE, ids=" ".join)
def test_a_command_names_a_missing_file_once(tmp_path, monkeypatch, settings, command):
    monkeypatch.chdir(tmp_path)
    settings.DATA_DIR = tmp_path

    with pytest.raises(CommandError) as refused:
        call_command(*command, "missing.json", stdout=io.StringIO(), stderr=io.StringIO())

    assert "No such file or directory" in str(refused.value)
    assert str(refused.value).count("missing.json") == 1


@pytest.mark.parametrize("command", [["policy"], ["verify", "--since"]], ids=" ".join)
def test_a_command_says_that_a_file_is_not_text(tmp_path, command):
    file = Path(tmp_path / "binary")
    file.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(CommandError, match="must be UTF-8 text; byte 1 is not"):
        call_command(*command, str(file), stdout=io.StringIO(), stderr=io.StringIO())


def test_a_deep_policy_file_is_refused_in_words(tmp_path):
    file = tmp_path / "deep.json"
    file.write_text("[" * 200_000)

    with pytest.raises(CommandError, match="must be JSON with fewer levels of nesting"):
        call_command("policy", str(file), stdout=io.StringIO())
