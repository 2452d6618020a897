"""What a backup reads is the record as of one moment, whatever is written meanwhile."""

import threading

import pytest
from django.db import connection

from conversations.backup.consistent_copy import consistent_copy_beside
from conversations.backup.portable_rows import tables
from conversations.core import principals
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
