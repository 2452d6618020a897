"""A record of forks, imports with old times, staged conversations and a copy put back is whole, and `rebuild` changes
nothing in it."""

import sqlite3
from contextlib import closing

import pytest
from django.db import connection

from conversations.conversation import fork as forks
from conversations.core import principals, sqlite_integrity
from conversations.events import log, verify_chains
from conversations.events.log.rebuild import rebuild
from conversations.import_export import import_file
from conversations.import_export.detect_format import recordings
from conversations.import_export.export import export
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from tests.conversation.test_forks import everything
from tests.events.test_projections import rows
from tests.support import old_times
from tests.support.verified import verify_events

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def record(team, monkeypatch, tmp_path):
    """Two months of forks, imports and a conversation still staged; one of every kind, its fork, and their copies."""
    old_times.record(monkeypatch, team["operator"])
    parent = everything()
    fork = forks.fork(team["operator"], "parent", parent.head_seq - 3)
    for key in ("old", fork.conversation):
        import_copy(key, f"copy of {key}", tmp_path)
    assert verify_chains.staged()[0] > 0


def import_copy(key, name, folder):
    path = folder / f"{len(list(folder.iterdir()))}.jsonl"
    path.write_bytes(b"".join(export(key)))
    report = ImportReport(lambda _: None)
    intake = StagedImport(principals.import_principal("file"))
    import_file.import_recordings(recordings(path, report), intake, report, progress=lambda *_: None, key=name)


def require_whole_and_folded():
    """Check all chains and the file, and that folding anew changes no row."""
    assert verify_events().ok
    assert list(sqlite_integrity.problems()) == []
    before = rows()
    list(rebuild())
    assert rows() == before


@pytest.mark.slow
def test_record_of_every_origin_is_whole_and_stays_as_it_was_folded(record):
    require_whole_and_folded()

    log.discard_staged()
    assert verify_chains.staged() == (0, 0)

    require_whole_and_folded()


@pytest.mark.slow
@pytest.mark.sqlite("a copy of it is put back")
def test_copy_of_the_file_that_is_put_back_is_whole(record, team, tmp_path):
    before = rows()
    connection.ensure_connection()
    with closing(sqlite3.connect(tmp_path / "copy.sqlite3")) as copy:
        connection.connection.backup(copy)
        forks.fork(team["operator"], "parent", 5)
        log.discard_staged()
        assert rows() != before
        copy.backup(connection.connection)

    assert rows() == before
    require_whole_and_folded()
