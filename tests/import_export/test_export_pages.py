"""A long export, read by one thread after the other, as `GET …/export` reads it: it holds nothing of the database
between two pages."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from conversations.core import principals
from conversations.events import log
from conversations.events.log.bounded_reads import READ_BYTES
from conversations.import_export.export import export
from tests.support.unchecked import unchecked

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
ROBOT = principals.token_principal("robot")
SIZE = READ_BYTES // 5
EVENTS = 12  # in more than two pages


def say(words: str, key: str = "c"):
    payload = {"type": "message", "sender": "Rosa", "recipient": f"chat:{key}", "content": words}
    log.append([unchecked(key, payload, ROBOT, topic=f"chat:{key}")])


@pytest.fixture
def parts():
    for _ in range(EVENTS):
        say("x" * SIZE)
    return export("c")


def in_thread_that_ends(work, *given):
    """Run work in a new thread, whose connection is closed with it, past the pool of PostgreSQL's."""

    def run():
        try:
            return work(*given)
        finally:
            if connection.connection is not None:
                connection.connection.close()
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def test_each_page_is_read_with_the_connection_of_the_thread_that_asks_for_it(parts):
    lines = [in_thread_that_ends(next, parts) for _ in range(1 + EVENTS)]

    assert [json.loads(line)["seq"] for line in lines[1:]] == list(range(1, EVENTS + 1))
    assert in_thread_that_ends(next, parts, None) is None


def test_a_thread_that_has_read_a_page_can_write_what_others_have_written_after_it(parts):
    next(parts), next(parts)
    other = threading.Thread(target=lambda: (say("meanwhile", "other"), connection.close()))
    other.start()
    other.join()

    say("here", "own")

    assert sum(1 for _ in parts) == EVENTS - 1
