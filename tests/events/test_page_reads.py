"""How a page of a history is read: by few statements, in bounded bytes, and what one statement brought is asked for no
more."""

import random
import sqlite3

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from conversations.core import principals
from conversations.events import log
from conversations.events.log import bounded_reads, call_events, reads
from tests.support import large_talks
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
ROBOT = principals.token_principal("robot")
TOKEN_READ = "GROUP BY run,turn"


def message(n, text="hello"):
    return unchecked("c", {"type": "message", "sender": f"agent:A{n}", "recipient": "user", "content": text}, ROBOT)


def call(n, text="done"):
    """An observed call: its start and its end."""
    step = {"event": "tool_step", "name": "look_up", "tool_call_id": f"call-{n}"}
    return [
        unchecked("c", {**step, "status": "start", "args": {}}, ROBOT),
        unchecked("c", {**step, "status": "success", "output": text}, ROBOT),
    ]


def token(text, **fields):
    return unchecked("c", {"event": "token", "agent": "A1", "text": text, **fields}, ROBOT)


def statements_of(read):
    with CaptureQueriesContext(connection) as captured:
        read()
    return [query["sql"] for query in captured if "conversations_" in query["sql"]]


def test_a_page_of_messages_takes_two_statements():
    log.append([message(n) for n in range(150)])

    for read in (lambda: log.newest_page("c"), lambda: log.page_before("c", 90)):
        assert len(statements_of(read)) == 2


def test_a_page_with_calls_reads_each_call_once():
    log.append([new for n in range(60) for new in (message(n), *call(n), message(n))])

    statements = statements_of(lambda: log.page_before("c", 200))

    assert sum("conversations_approval" in sql and "conversations_toolcall" not in sql for sql in statements) == 0
    assert sum("finished_seq IN" in sql for sql in statements) == sum("NOT kind='token'" in sql for sql in statements)
    assert len(statements) <= 6


def test_tokens_are_looked_for_only_where_a_number_is_missing():
    log.append([message(n) for n in range(80)])
    log.append([token("one"), token("two")])
    log.append([message(n) for n in range(3)])

    page = log.newest_page("c")

    assert [token.seq for token in page.open_tokens] == [81, 82]
    assert any(TOKEN_READ in sql for sql in statements_of(lambda: log.newest_page("c")))
    assert not any(TOKEN_READ in sql for sql in statements_of(lambda: log.page_before("c", 81)))


@pytest.mark.slow
def test_the_neighbours_of_a_page_are_those_that_a_statement_of_its_own_finds():
    dice = random.Random(5)
    for n in range(60):
        log.append(dice.choice([[message(n), message(n)], call(n), [token("a"), token("b")], [message(n)]]))
    large_talks.write("large", events=200)

    for key in ("c", "large"):
        for seq in range(2, log.head(key) + 2):
            for limit in (5, 60):
                page = log.page_before(key, seq, limit)
                assert page.before == reads.neighbours(key, page.first_seq), (key, seq, limit)


def test_pages_of_large_bodies_and_folded_ends_are_bounded_and_reach_every_entry():
    dice = random.Random(3)
    for n in range(70):
        log.append([message(n, "m" * dice.randrange(40_000)), *call(n, "r" * dice.randrange(30_000))])
    entries, before = [], None

    while before is None or before > 1:
        page = log.page_before("c", before)
        assert sum(len(event.body) for event in page.events) < 2 * reads.ENTRY_BYTES
        entries = [event.seq for event in page.events] + entries
        before = page.first_seq

    assert entries == [seq for n in range(70) for seq in (3 * n + 1, 3 * n + 2)]


def test_a_page_is_the_same_when_its_calls_are_forgotten_on_the_way(monkeypatch):
    large_talks.write("large", events=600)
    pages = [log.page_before("large", seq) for seq in range(100, 601, 50)]

    monkeypatch.setattr(call_events, "MAX_ROWS", 1)

    assert [log.page_before("large", seq) for seq in range(100, 601, 50)] == pages


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
