"""How a page of a history is read: in bounded bytes."""

import sqlite3

import pytest
from django.db import OperationalError, connection

from conversations.core import principals
from conversations.events import log
from conversations.events.log import bounded_reads
from tests.events.test_projections import event

pytestmark = pytest.mark.django_db
ROBOT = principals.token_principal("robot")


def message(n, text="hello"):
    return event("c", {"type": "message", "sender": f"agent:A{n}", "recipient": "user", "content": text}, ROBOT)


@pytest.mark.sqlite("its client returns row after row")
def test_an_error_between_two_rows_is_one_of_django():
    log.append([message(n) for n in range(1000)])
    looks = 0

    def is_over():
        nonlocal looks
        looks += 1
        return looks > 20

    connection.connection.set_progress_handler(is_over, 100)
    try:
        with connection.cursor() as cursor, pytest.raises(OperationalError) as raised:
            bounded_reads.rows(cursor, "seq,body", "FROM conversations_event WHERE seq>%s", [0], order="id")
    finally:
        connection.connection.set_progress_handler(None, 0)
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)
