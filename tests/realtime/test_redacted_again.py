"""A server whose database is replaced by an older copy while it runs takes out again what had been redacted."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Event, Redaction
from conversations.realtime.redaction_watch import RedactionWatch
from conversations.redaction import journal, redact

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_older_copy_under_a_running_server_is_redacted_again(tmp_path):
    log.append([log.from_internal("talk", {"event": "log", "text": text}, SYSTEM) for text in ("secret", "hidden")])
    watch = RedactionWatch(tmp_path)
    redact.redact(SYSTEM, "talk", [1], "asked for")
    watch.look()
    with transaction.atomic():
        redact.redact(SYSTEM, "talk", [2], "asked for")
        watch.look()
        transaction.set_rollback(True)  # as an older copy in its place
    assert "hidden" in Event.objects.get(seq=2).body

    watch.look()

    assert "hidden" not in Event.objects.get(seq=2).body


def say(*texts):
    log.append([log.from_internal("talk", {"event": "log", "text": text}, SYSTEM) for text in texts])


def written(folder):
    """Return the events that the lines of the journal name."""
    return [line.seqs for line in journal.read(folder / journal.NAME)]


def test_each_look_reads_only_what_is_new(tmp_path):
    say("one", "two", "three")
    watch, path = RedactionWatch(tmp_path), tmp_path / journal.NAME
    redact.redact(SYSTEM, "talk", [1], "asked for")
    watch.look()
    Redaction.objects.update(mark="seen before")  # it would be written again if it were read again
    path.write_bytes(b"x" * (path.stat().st_size - 1) + b"\n")  # as would be refused if it were read again

    redact.redact(SYSTEM, "talk", [2], "asked for")
    watch.look()

    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["seqs"] for line in lines[1:]] == [[2]]


def test_processes_of_one_directory_write_each_redaction_once(tmp_path):
    say("one", "two", "three")
    watches = [RedactionWatch(tmp_path) for _ in range(2)]
    for seq in (1, 2, 3):
        redact.redact(SYSTEM, "talk", [seq], "asked for")
        for watch in watches[:: 1 if seq % 2 else -1]:
            watch.look()

    assert written(tmp_path) == [[1], [2], [3]]


@pytest.mark.parametrize("is_replaced", [False, True], ids=["removed", "replaced"])
def test_a_journal_that_was_taken_away_is_written_anew(tmp_path, is_replaced):
    say("one", "two")
    watch, path = RedactionWatch(tmp_path), tmp_path / journal.NAME
    redact.redact(SYSTEM, "talk", [1], "asked for")
    watch.look()
    path.rename(tmp_path / "old")
    if is_replaced:
        path.write_bytes((tmp_path / "old").read_bytes() * 2)

    redact.redact(SYSTEM, "talk", [2], "asked for")
    watch.look()

    assert written(tmp_path) == ([[1], [1], [2]] if is_replaced else [[1], [2]])


def test_an_unfinished_line_is_replaced(tmp_path):
    say("one", "two")
    watch, path = RedactionWatch(tmp_path), tmp_path / journal.NAME
    redact.redact(SYSTEM, "talk", [1], "asked for")
    watch.look()
    with path.open("ab") as file:
        file.write(b'{"mark": "of a process that was kill')

    redact.redact(SYSTEM, "talk", [2], "asked for")
    watch.look()

    assert written(tmp_path) == [[1], [2]]
