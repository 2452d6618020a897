"""What a backup reads is the record as of one moment, whatever is written meanwhile."""

import sqlite3
import threading
from contextlib import closing

import pytest
from django.db import DatabaseError, connection

from conversations.backup.consistent_copy import SqliteCopy, consistent_copy_beside
from conversations.backup.portable_rows import tables
from conversations.core import principals
from conversations.core.db_threads import is_damage
from conversations.events import log
from conversations.models import Event

pytestmark = pytest.mark.django_db(transaction=True)


def append_elsewhere(text):
    """Append an event over another connection, as another process would."""

    def run():
        try:
            log.append([log.from_internal("copied", {"event": "log", "text": text}, principals.SYSTEM)])
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_a_copy_does_not_change_while_others_write(tmp_path):
    append_elsewhere("before")
    events = next(table for table in tables() if table.name == Event._meta.db_table)

    with consistent_copy_beside(tmp_path / "record.backup") as copy:
        (count,) = copy.first_row(f"SELECT count(*) FROM {events.name}")
        append_elsewhere("meanwhile")
        rows = list(copy.rows(events))

    assert 0 < len(rows) == count < Event.objects.count()


@pytest.mark.sqlite("its file")
def test_a_damaged_copy_is_an_error_of_the_database(tmp_path):
    path = tmp_path / "copy"
    path.write_bytes(b"no database" * 1000)

    with closing(sqlite3.connect(path)) as database, pytest.raises(DatabaseError) as raised:
        list(SqliteCopy(database).rows(next(iter(tables()))))

    assert is_damage(raised.value)


@pytest.mark.sqlite("its file")
def test_nothing_that_sqlite_left_beside_the_copy_stays(tmp_path):
    with consistent_copy_beside(tmp_path / "record.backup"):
        for end in ("-journal", "-wal", "-shm"):
            (tmp_path / f"record.backup.copy{end}").write_bytes(b"a page")

    assert list(tmp_path.iterdir()) == []
