"""What others have written is printed as text: a terminal obeys none of it."""

import io
import json

import pytest
from django.core.management import CommandError, call_command

from conversations.core.principals import SYSTEM
from conversations.import_export.progress import ProgressLine
from conversations.management.recorded_text import PlainOutput
from conversations.redaction import legal_holds
from tests.redaction.test_redact import spoken

ESCAPES = "\x1b[31mred\x1b]0;owned\x07\u202e"
HOSTILE = ("\x1b", "\x07", "\u202e")


@pytest.fixture
def hostile_chat(tmp_path, settings):
    """A recording whose title is what a terminal would obey."""
    settings.DATA_DIR = tmp_path / "data"
    file = tmp_path / "chat.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": f"hi {ESCAPES}"}]}))
    return file


def printed(*arguments):
    """Return what a command wrote to either stream, and the error that ended it."""
    out = io.StringIO()
    try:
        call_command(*arguments, stdout=out, stderr=out)
    except CommandError as error:
        PlainOutput(out).write(str(error))
    return out.getvalue()


@pytest.mark.django_db(transaction=True)
def test_play_prints_a_title_without_its_escape_sequences(hostile_chat):
    text = printed("play", str(hostile_chat), "--speed", "10000")

    assert "hi [U+001B][31mred" in text
    assert not any(char in text for char in HOSTILE)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["redact", "hold"])
def test_ids_and_reasons_are_printed_without_their_escape_sequences(command):
    spoken(f"talk{ESCAPES}", "hedgehog")
    legal_holds.place(SYSTEM, f"talk{ESCAPES}", f"because {ESCAPES}")

    text = printed(command) if command == "hold" else printed("redact", "--word", "hedgehog", "--dry-run")

    assert "talk[U+001B][31mred" in text
    assert not any(char in text for char in HOSTILE)


def test_an_import_prints_a_conversations_id_without_its_escape_sequences(hostile_chat):
    text = printed("import", str(hostile_chat), "--dry-run", "--conversation", f"talk{ESCAPES}")

    assert "talk[U+001B][31mred" in text
    assert not any(char in text for char in HOSTILE)


def test_progress_still_overwrites_its_line_on_a_terminal(monkeypatch):
    out = io.StringIO()
    out.isatty = lambda: True
    line = ProgressLine(PlainOutput(out), "Expired: {} of {}")
    monkeypatch.setattr(line, "_every", 0)

    line.tell(1, 2)
    line.tell(2, 2)
    line.end()

    assert out.getvalue() == "Expired: 1 of 2\rExpired: 2 of 2\r\n"
