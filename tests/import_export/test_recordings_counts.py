"""Counts after import and after play equal those taken from the files themselves."""

import pytest
from django.db import connection
from django.db.models import Count

from conversations.core import principals
from conversations.import_export.destination import LocalDatabase
from conversations.import_export.detect_format import recordings
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.player import part_of, play
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation, Event, ToolCall
from tests.support.recorded import Counts, counts_of, own_files, their_files

pytestmark = pytest.mark.django_db(transaction=True)
PRINCIPAL = principals.import_principal("test")


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk():
    """Play commits each event alone; here the disk is not what is tested."""
    connection.cursor().execute("PRAGMA synchronous=OFF" if connection.vendor == "sqlite" else "SELECT 1")
    yield
    connection.close()


class NoTime:
    """A clock on which nothing takes time."""

    def now(self):
        return 0.0

    def wait_until(self, moment):
        pass


def strict():
    return ImportReport(pytest.fail, is_strict=True)


def imported(path):
    """Import a file; return the keys in the file's order."""
    items = import_recordings(recordings(path, strict()), StagedImport(PRINCIPAL), strict(), progress=lambda *_: None)
    return [item.conversation_id for item in items]


def played(path, *, tokens):
    """Play a file in no time; return the keys in the file's order."""
    parts = []
    for recording in recordings(path, strict()):
        recording = recording.__class__(recording.name, recording.title, list(recording.steps))
        parts.append(part_of(recording, recording.name, speed=200, tokens=tokens))
    play(parts, LocalDatabase("test").publish, clock=NoTime())
    return [part.key for part in parts]


def counted(keys):
    """Return what the record counts."""
    repeated = dict(
        ToolCall.objects.filter(nth=2).values_list("conversation__key").annotate(Count("call_id", distinct=True))
    )
    rows = {c.key: c for c in Conversation.objects.visible()}
    return [Counts(rows[k].messages, rows[k].tool_calls, rows[k].errors, repeated.get(k, 0)) for k in keys]


@pytest.mark.parametrize("path", own_files(), ids=lambda path: path.name)
def test_imported_sample_counts_as_the_file(path):
    assert counted(imported(path)) == counts_of(path)


@pytest.mark.parametrize("tokens", [False, True], ids=["words", "tokens"])
@pytest.mark.parametrize("path", own_files(), ids=lambda path: path.name)
def test_played_sample_counts_as_the_file(path, tokens):
    assert counted(played(path, tokens=tokens)) == counts_of(path)


def test_samples_cover_what_is_counted():
    counts_found = [counts for path in own_files() for counts in counts_of(path)]

    assert all(any(values) for values in zip(*counts_found, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["tau2-bench", "tau-bench", "who-and-when"])
def test_recorded_family_counts_as_its_files_after_import(family):
    paths = of_family(family)

    for number, path in enumerate(paths):
        items = import_recordings(
            recordings(path, strict()), StagedImport(PRINCIPAL), strict(), key=f"{number}", progress=lambda *_: None
        )

        assert counted([item.conversation_id for item in items]) == counts_of(path), path.name


@pytest.mark.thorough
@pytest.mark.parametrize("family", ["tau2-bench", "tau-bench", "who-and-when"])
def test_recorded_family_counts_as_its_files_after_play(family):
    path = max(of_family(family), key=lambda path: len(counts_of(path)))

    assert counted(played(path, tokens=True)) == counts_of(path)


def of_family(family):
    paths = [path for path in their_files() if family in path.parts]
    if not paths:
        pytest.skip(f"{family} is not in SWITCHBOARD_SAMPLES_DIR")
    return paths


def test_every_imported_event_has_the_importing_principal():
    imported(own_files()[0])

    assert set(Event.objects.values_list("principal", flat=True)) == {"import:test"}
