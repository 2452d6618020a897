"""The thread that signs the record, over a connection that breaks."""

import pytest
from django.db import connection

from conversations.core.outbound_address import NONE
from conversations.evidence import checkpointer, checkpoints
from tests.evidence.signed_place import say
from tests.support.databases import IS_POSTGRESQL
from tests.support.live import until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has no connection that breaks"),
]


def end_other_sessions() -> None:
    """As a restart of PostgreSQL does, or whoever drops idle connections."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_the_record_is_signed_again_after_a_connection_was_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "EVERY", 0.05)
    say("signed", "before")
    signing = checkpointer.Checkpointer(tmp_path / "keys" / "k.json", "example.com/record", [], [], NONE)
    signing.start()
    try:
        before = until(checkpoints.newest, what="the first checkpoint")
        end_other_sessions()
        say("signed", "after")
        until(lambda: checkpoints.newest().size > before.size, what="the next checkpoint")
    finally:
        signing.close()
