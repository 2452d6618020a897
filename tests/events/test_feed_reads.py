"""The feed's order of rows: what is not settled is not told, so that nothing is passed over."""

import pytest
from django.db import connection

from conversations.core import principals
from conversations.events import log
from conversations.events.log import feed_reads
from tests.support.databases import IS_POSTGRESQL


@pytest.mark.django_db(transaction=True)
def test_rows_are_read_in_order_and_of_one_conversation():
    for key in ("a", "b", "a"):
        log.append([log.from_internal(key, {"event": "log", "text": key}, principals.SYSTEM)])
    row = feed_reads.settled_row(5)

    assert row is not None
    assert [(fed.event.conversation, fed.event.seq) for fed in feed_reads.between(0, row)] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
    ]
    assert [fed.event.seq for fed in feed_reads.between(0, row, conversation="a")] == [1, 2]
    assert feed_reads.between(0, row, names=("Desk", "agent:Desk")) == []


@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_row_is_not_settled_while_an_earlier_transaction_is_at_work():
    import psycopg

    with psycopg.connect(**_parameters()) as other:
        other.execute("SELECT pg_current_xact_id()")
        log.append([log.from_internal("a", {"event": "log", "text": "a"}, principals.SYSTEM)])

        assert feed_reads.settled_row(0.05) is None
        other.rollback()

        assert feed_reads.settled_row(60) is not None


def _parameters() -> dict[str, object]:
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if name in parameters}
